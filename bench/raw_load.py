"""The load of a client that costs next to nothing: `raw_load.c`, compiled at first use.

It shows what the broker can do where confluent-kafka is the slower of the two.
"""

import hashlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from msgspec import Struct, convert

from bench.brokers import CACHE, Broker, Unavailable
from bench.client_load import LoadFailed, check_held
from bench.processes import Meter
from ropewalk.records.record import Record, build

_SOURCE: Final = Path(__file__).with_name("raw_load.c")


class RawResult(Struct, frozen=True):
    """What `raw_load` prints. The totals cover the whole run, the rest what came after the warm-up."""

    requests: int
    records: int
    bytes: int
    measured_requests: int
    measured_seconds: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


class RawProduced(Struct, frozen=True):
    """A run of `raw_load produce`."""

    records_per_second: float
    bytes_per_second: float
    p50_ms: float
    p99_ms: float
    record_count: int
    cpu_seconds_per_gb: float
    foreign_cores: float


def produce(
    broker: Broker,
    topic: str,
    *,
    partition_count: int,
    connection_count: int,
    depth: int,
    seconds: float,
    batch_bytes: int,
    record_bytes: int = 1024,
) -> RawProduced:
    """Keep `connection_count` × `depth` batches of about `batch_bytes` unanswered for so many seconds."""
    record_count = max(1, batch_bytes // record_bytes)
    # A timestamp of long ago would make the broker's retention delete what was just measured.
    now_ms = time.time_ns() // 1_000_000
    batch = build([Record(timestamp=now_ms, value=os.urandom(record_bytes)) for _ in range(record_count)])
    batch_file = broker.directory / "batch"
    batch_file.write_bytes(batch)
    with Meter(broker.pid) as meter:
        result = _run(
            broker,
            "produce",
            topic,
            partition_count,
            connection_count,
            depth,
            seconds,
            batch_file,
            record_count,
        )
    check_held(broker, topic, result.records, partition_count)
    requests_per_second = result.measured_requests / result.measured_seconds
    return RawProduced(
        records_per_second=requests_per_second * record_count,
        bytes_per_second=requests_per_second * record_count * record_bytes,
        p50_ms=result.p50_ms,
        p99_ms=result.p99_ms,
        record_count=result.records,
        cpu_seconds_per_gb=meter.broker_cpu_seconds / (result.records * record_bytes / 1e9),
        foreign_cores=meter.foreign_cores,
    )


def fetch(
    broker: Broker, topic: str, *, partition_count: int, connection_count: int, record_count: int
) -> dict[str, float]:
    """Read a whole topic once, a mebibyte at a time."""
    with Meter(broker.pid) as meter:
        result = _run(broker, "fetch", topic, partition_count, connection_count, 1 << 20)
    if result.records != record_count:
        raise LoadFailed(f"{broker.name} holds {record_count} records and gave {result.records}")
    return {
        "MB/s": result.bytes / 1e6 / result.measured_seconds,
        "CPU s/GB": meter.broker_cpu_seconds / (result.bytes / 1e9),
        "foreign cores": meter.foreign_cores,
    }


def _run(broker: Broker, mode: str, topic: str, *numbers: int | float | Path) -> RawResult:
    command: list[str | Path] = [_compile(), mode, broker.host, str(broker.port), topic, *map(str, numbers)]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        raise LoadFailed(f"{broker.name}, raw {mode}: {finished.stderr.strip()}")
    return convert(json.loads(finished.stdout), RawResult)


def _compile() -> Path:
    """The program, compiled once for every state of its source."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Unavailable("the raw load needs a C compiler (cc), which is not on the PATH")
    program = CACHE / f"raw_load-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", program, _SOURCE], check=True)
    return program
