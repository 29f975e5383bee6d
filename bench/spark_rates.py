"""Topics in Spark beside Spark's own Kafka connector: one session, `local[2]`, the two in turn.

    bench/spark                  # all of it
    bench/spark read             # a query over a topic: ours from Ropewalk, theirs from Apache Kafka
    bench/spark decoder          # record batches to Arrow columns, in one thread, without Spark
    bench/spark sink             # rows in memory to a topic: beside the connector, and exactly once beside at least once
    bench/spark archive          # a topic to a Delta table: beside the connector with Delta for Spark

The query is sum(length(value)), count(key), max(offset). Each side is run twice before it is measured: the JVM compiles what runs
often, and Python's workers stay. Needs Java and Maven; `--alone` needs no Maven.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.brokers import KAFKA_VERSION, NO_SETTINGS, Broker, Unavailable, start_kafka, start_ropewalk
from bench.client_load import LoadFailed
from bench.processes import cpu_seconds, machine_cpu_seconds
from bench.report import Row, Samples, Target, at_least, compare, figure, markdown
from bench.spark_archive import DELTA_SETTINGS, archive, archive_by_connector
from bench.spark_jars import CONNECTOR, DELTA, fetch
from bench.spark_load import PARTITION_COUNT, Records, fill, rows, scan, write

MODES: Final = ("read", "decoder", "sink", "archive")
RECORDS_FIGURE: Final = "records/s"
CPU_FIGURE: Final = "CPU µs each"
"""Of Spark, its workers and the broker together: other work on the machine changes it less than the rate."""

_WARM_UPS: Final = 2
_DECODED: Final = Records(200_000, 100, has_headers=True)
_DECODED_AIM: Final = 2_000_000
_FETCHED_BYTES: Final = 64 << 20

_NEEDED: Final = "key binary, value binary, offset long"

_ARCHIVED: Final = Records(400_000, 1024)
_BATCHED: Final = {"kafka.batch.size": "262144"}
_LINGERING: Final = {
    **_BATCHED,
    "kafka.linger.ms": "5",
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
}
"""What our sink does unless told otherwise, for the connector: its own settings send 16 KiB at a time."""

_CONNECTOR: Final = f"Spark's connector, Kafka {KAFKA_VERSION}"

Load = Callable[[], float]
"""Does the work once and answers with records per second."""


class Comparison:
    def __init__(self, stack: ExitStack, arguments: argparse.Namespace) -> None:
        self._stack = stack
        self._repetitions: int = arguments.repetitions
        self._scale: float = arguments.scale
        self._alone: bool = arguments.alone
        self._session: Any = None
        self._sinks = 0
        self._brokers: dict[str, Broker] = {}
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.foreign_cores_max = 0.0
        stack.callback(self._end_session)

    def read(self) -> None:
        """Once as it comes, and once with the columns named that the query needs: Spark does not tell a Python source which."""
        for records, wanted in ((Records(800_000, 1024), 1.0), (Records(4_000_000, 100), 1.5)):
            records = self._scaled(records)
            ours = self._ropewalk()
            reader = self._reader("ropewalk").options(
                bootstrap=ours.bootstrap, subscribe=fill(ours, "read", records)
            )
            whole, named = reader.load(), reader.schema(_NEEDED).load()
            theirs: dict[str, Load] = {}
            if not self._alone:
                kafka = self._kafka()
                reader = self._reader("kafka").options(
                    **{"kafka.bootstrap.servers": kafka.bootstrap}, subscribe=fill(kafka, "read", records)
                )
                theirs["kafka"] = partial(scan, reader.load(), records)
            for what, frame in (("", whole), (", three columns", named)):
                loads: dict[str, Load] = {"ropewalk": partial(scan, frame, records), **theirs}
                self._compare(f"read {records.title}{what}", _CONNECTOR, loads, at_least(wanted))

    def sink(self) -> None:
        for records in (Records(200_000, 1024), Records(1_000_000, 100)):
            records = self._scaled(records)
            frame = rows(self._spark(), records)
            plain = partial(write, self._spark(), frame, self._ropewalk(), records, "ropewalk", **_BATCHED)
            loads: dict[str, Load] = {"ropewalk": plain}
            if not self._alone:
                loads["kafka"] = partial(
                    write, self._spark(), frame, self._kafka(), records, "kafka", **_LINGERING
                )
            self._compare(f"write {records.title}", _CONNECTOR, loads, at_least(1.0))
            loads = {"ropewalk": partial(self._write_exactly_once, frame, records), "kafka": plain}
            self._compare(f"write {records.title} exactly once", "at least once", loads, at_least(0.5))
            frame.unpersist()

    def archive(self) -> None:
        records = self._scaled(_ARCHIVED)
        self._end_session()
        session = self._spark({} if self._alone else DELTA_SETTINGS)
        ours = self._ropewalk()
        loads: dict[str, Load] = {
            "ropewalk": partial(archive, session, ours, fill(ours, "archive", records), records)
        }
        if not self._alone:
            theirs = self._kafka()
            loads["kafka"] = partial(
                archive_by_connector, session, theirs, fill(theirs, "archive", records), records
            )
        self._compare(f"archive {records.title}", f"{_CONNECTOR}, Delta 4.4.0", loads, None)

    def decoder(self) -> None:
        """CRC, keys, values and headers, as processor time: one core's worth, whatever else the machine does."""
        from ropewalk.base.ids import TopicPartition
        from ropewalk.spark.brokers import Brokers
        from ropewalk.spark.columns import all_columns
        from ropewalk.spark.decoding import kernels
        from ropewalk.spark.decoding.decoder import Decoder
        from ropewalk.spark.decoding.records_found import Wanted
        from ropewalk.spark.options import parse_source

        node = self._ropewalk()
        topic = fill(node, "decoder", _DECODED)
        options = parse_source(
            {
                "bootstrap": node.bootstrap,
                "subscribe": topic,
                "kafka.max.partition.fetch.bytes": str(_FETCHED_BYTES),
            },
            streaming=False,
        )
        with Brokers(options) as brokers:
            fetched = brokers.wait(brokers.client.fetch({TopicPartition(topic, 0): 0}))[0].records
        decoder = Decoder(all_columns(with_headers=True), topic=topic, partition=0, loops=kernels)
        rates: list[float] = []
        for repetition in range(_WARM_UPS + self._repetitions):
            used = time.process_time()
            decoded, _ = decoder.decode(memoryview(fetched), Wanted())
            rate = decoded.num_rows / (time.process_time() - used)
            if decoded.num_rows != _DECODED.count // PARTITION_COUNT:
                raise LoadFailed(f"{decoded.num_rows} records were decoded of {_DECODED.count}")
            if repetition >= _WARM_UPS:
                rates.append(rate)
        median = statistics.median(rates)
        self._note(
            f"Decoder alone, {_DECODED.value_bytes} B and one header, CRC checked: {figure(median)} "
            f"[{figure(min(rates))} – {figure(max(rates))}] records/s of one core; wanted ≥ {_DECODED_AIM:,}: "
            f"{'met' if median >= _DECODED_AIM else 'MISSED'}."
        )

    def _write_exactly_once(self, frame: Any, records: Records) -> float:
        """As a sink that nobody has used before: each run has a name of its own."""
        self._sinks += 1
        marked = {
            "exactlyOnce": "true",
            "name": f"bench-{os.getpid()}-{self._sinks}",
            "tasks": str(PARTITION_COUNT),
            "query": "bench",
            "batch": "0",
        }
        return write(self._spark(), frame, self._ropewalk(), records, "ropewalk", **_BATCHED, **marked)

    def _scaled(self, records: Records) -> Records:
        count = int(records.count * self._scale) // PARTITION_COUNT * PARTITION_COUNT
        return Records(max(count, PARTITION_COUNT), records.value_bytes, records.has_headers)

    def _compare(self, title: str, peer: str, loads: dict[str, Load], target: Target | None) -> None:
        """In turn; who goes first changes with every repetition."""
        samples: dict[str, list[dict[str, float]]] = {name: [] for name in ("ropewalk", "kafka")}
        for repetition in range(-_WARM_UPS, self._repetitions):
            turns = list(loads.items())
            for name, load in turns if repetition % 2 == 0 else reversed(turns):
                _progress(
                    f"{title}, {name}, {f'{repetition + 1}' if repetition >= 0 else 'warm-up'} of {self._repetitions}"
                )
                sample = self._measured(load)
                _progress(f"  {sample[RECORDS_FIGURE]:,.0f} records/s, {sample[CPU_FIGURE]:.2f} µs each")
                if repetition >= 0:
                    samples[name].append(sample)
        self._add(title, peer, samples["ropewalk"], samples["kafka"], target)

    def _add(self, title: str, peer: str, ours: Samples, theirs: Samples, target: Target | None) -> None:
        rows = compare(title, peer, ours, theirs, {RECORDS_FIGURE: target, CPU_FIGURE: None})
        self.rows += rows
        self.foreign_cores_max = max(
            [self.foreign_cores_max, *(sample["foreign cores"] for sample in (*ours, *theirs))]
        )
        for row in rows:
            print("  ".join(row.cells()), flush=True)

    def _measured(self, load: Load) -> dict[str, float]:
        """Brokers and Spark are below this process, so the rest of the machine is foreign."""
        ours, machine = cpu_seconds(os.getpid()), machine_cpu_seconds()
        started = time.perf_counter()
        rate = load()
        seconds = time.perf_counter() - started
        used = cpu_seconds(os.getpid()) - ours
        foreign = machine_cpu_seconds() - machine - used
        return {
            RECORDS_FIGURE: rate,
            CPU_FIGURE: 1e6 * used / (rate * seconds),
            "foreign cores": max(0.0, foreign) / seconds,
        }

    def _note(self, text: str) -> None:
        self.notes.append(text)
        print(text, flush=True)

    def _reader(self, kind: str) -> Any:
        return self._spark().read.format(kind).option("startingOffsets", "earliest")

    def _spark(self, settings: Mapping[str, str] = NO_SETTINGS) -> Any:
        if self._session is None:
            _progress("starting Spark")
            jars = "" if self._alone else fetch(*CONNECTOR, *DELTA)
            self._session = start_session(jars, settings)
        return self._session

    def _end_session(self) -> None:
        """The next one may have other settings; jars it takes over, being in the same Java."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def _ropewalk(self) -> Broker:
        return self._started("ropewalk", lambda: start_ropewalk("os"))

    def _kafka(self) -> Broker:
        return self._started("kafka", start_kafka)

    def _started(self, name: str, start: Callable[[], Broker]) -> Broker:
        if name not in self._brokers:
            _progress(f"starting {name}")
            self._brokers[name] = start()
            self._stack.callback(self._brokers[name].stop)
        return self._brokers[name]


def start_session(jars: str, settings: Mapping[str, str] = NO_SETTINGS) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
    )
    if jars:
        builder = builder.config("spark.jars", jars)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _progress(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "modes", nargs="*", metavar="MODE", help=f"{', '.join(MODES)}; all of them if none is given"
    )
    parser.add_argument("--repetitions", type=int, default=5, help="of every measurement (5)")
    parser.add_argument("--scale", type=float, default=1.0, help="of how many records there are (1.0)")
    parser.add_argument(
        "--alone", action="store_true", help="without Kafka and the connector, and without ratios"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()
    modes = arguments.modes or MODES
    if unknown := set(modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    try:
        with ExitStack() as stack:
            comparison = Comparison(stack, arguments)
            for mode in modes:
                getattr(comparison, mode)()
    except (Unavailable, LoadFailed) as error:
        print(f"bench/spark: {error}", file=sys.stderr)
        return 1
    table = markdown(comparison.rows, comparison.foreign_cores_max, "Spark 4.2.0 `local[2]`")
    table += "".join(f"\n{note}\n" for note in comparison.notes)
    print("\n" + table)
    if arguments.markdown:
        arguments.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
