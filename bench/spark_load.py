"""What Spark is given to do: topics filled alike at every broker, a query that reads them, rows that are written to them."""

import os
import time
from typing import Any, Final

from confluent_kafka import Producer
from msgspec import Struct

from bench.brokers import Broker
from bench.client_load import LoadFailed, check_held, create_topic, delete_topic

PARTITION_COUNT: Final = 2
_BATCH_BYTES: Final = 16_384
"""What Kafka's own producer gathers unless told otherwise."""
_TIMEOUT_SECONDS: Final = 120
_POOL_BYTES: Final = 1 << 20
_STRIDE_BYTES: Final = 37


class Records(Struct, frozen=True):
    """So many records with a key of 8 bytes and a value of text that does not repeat within a batch."""

    count: int
    value_bytes: int
    has_headers: bool = False

    @property
    def title(self) -> str:
        return f"{self.count:,} × {self.value_bytes} B"


def fill(broker: Broker, label: str, records: Records) -> str:
    """A topic that holds exactly these records, in turn over its partitions."""
    topic = create_topic(broker, label, PARTITION_COUNT)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 50,
            "batch.size": _BATCH_BYTES,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 262_144,
            "log_level": 3,
        }
    )
    pool = os.urandom(_POOL_BYTES // 2).hex().encode()
    headers: list[tuple[str, str | bytes | None]] | None = (
        [("trace", b"01234567")] if records.has_headers else None
    )
    room = _POOL_BYTES - records.value_bytes
    for number in range(records.count):
        start = number * _STRIDE_BYTES % room
        while True:
            try:
                producer.produce(
                    topic,
                    key=b"%08d" % number,
                    value=pool[start : start + records.value_bytes],
                    partition=number % PARTITION_COUNT,
                    headers=headers,
                )
                break
            except BufferError:
                producer.poll(0.005)
        if number % 1024 == 0:
            producer.poll(0)
    if producer.flush(_TIMEOUT_SECONDS):
        raise LoadFailed(f"{broker.name} did not take {records.title}")
    check_held(broker, topic, records.count, PARTITION_COUNT)
    return topic


def scan(frame: Any, records: Records) -> float:
    """Records per second of a query that needs every value and every key, and moves nothing but numbers afterwards."""
    started = time.perf_counter()
    row = frame.selectExpr("sum(length(value))", "count(key)", "max(offset)").collect()[0]
    seconds = time.perf_counter() - started
    wanted = (records.count * records.value_bytes, records.count, records.count // PARTITION_COUNT - 1)
    if tuple(row) != wanted:
        raise LoadFailed(f"the query answered {tuple(row)}, not {wanted}")
    return records.count / seconds


def rows(session: Any, records: Records) -> Any:
    """A frame of such records, made and kept in memory before anybody writes it."""
    text = f"substring(repeat(sha2(cast(id AS string), 256), {records.value_bytes // 64 + 1}), 1, {records.value_bytes})"
    frame = session.range(0, records.count, 1, PARTITION_COUNT).selectExpr(
        "cast(lpad(cast(id AS string), 8, '0') AS binary) AS key", f"cast({text} AS binary) AS value"
    )
    frame = frame.persist()
    frame.count()
    return frame


def write(session: Any, frame: Any, broker: Broker, records: Records, kind: str, **options: str) -> float:
    """Records per second into a topic of its own, which must hold them afterwards, and no others that count."""
    topic = create_topic(broker, "write", PARTITION_COUNT)
    address = {"kafka.bootstrap.servers": broker.bootstrap}
    writer = frame.write.format(kind).options(**address, topic=topic, **options).mode("append")
    started = time.perf_counter()
    writer.save()
    seconds = time.perf_counter() - started
    written = session.read.format("ropewalk").options(**address, subscribe=topic)
    count = written.schema("offset long").load().count()
    if count != records.count:
        raise LoadFailed(f"{count} records were written, not {records.count}")
    delete_topic(broker, topic)
    return records.count / seconds
