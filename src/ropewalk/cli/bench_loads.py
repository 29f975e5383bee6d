"""What `ropewalk bench` does to a cluster: send, read back, and time single records on their way.

What a reader could get wrong
    Everything runs in this process, on one core, in our own client: a result says what client and broker do
    together. `client_cpu` near 1 means that the client was the limit.
    At a rate, latency counts from the instant a record was due (see `workload`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle, islice
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Clock, Rng
from ropewalk.cli.failure import Failed
from ropewalk.cli.latencies import Latencies, LatencySummary
from ropewalk.cli.progress import Progress
from ropewalk.cli.workload import Workload
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.produce import Acks
from ropewalk.client.calls.together import together
from ropewalk.client.consumer import Consumer
from ropewalk.client.producer import Producer
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record

_PAYLOADS: Final = 64
"""Values that differ, sent in turn: enough that a codec does not find the same one again in its window for nothing."""
_TOKEN_BYTES: Final = 8
_SEQUENCE_BYTES: Final = 8
STAMP_BYTES: Final = _TOKEN_BYTES + _SEQUENCE_BYTES
"""What a record needs to be known again: whose it is, and which."""


class Shape(Struct, frozen=True):
    """What the records are like and how they are sent."""

    record_bytes: int
    batch_records: int = 1
    senders: int = 1
    acks: Acks = Acks.ALL
    codec: Codec = Codec.NONE


class Throughput(Struct, frozen=True):
    topic: str
    records: int
    bytes: int
    """Of keys and values, before compression."""
    seconds: float
    records_per_second: float
    bytes_per_second: float
    client_cpu: float
    """Cores' worth of CPU that this process used."""
    latency_ms: LatencySummary | None = None
    """From due to acknowledged, by batch; None for reading."""


class Delays(Struct, frozen=True):
    topic: str
    records: int
    seconds: float
    client_cpu: float
    acknowledged_ms: LatencySummary | None
    arrived_ms: LatencySummary | None
    """Until a consumer had the record in its hands."""
    lost: int
    """Sent, and not there when the time for a request was over; with acks=0 that can happen."""


@asynccontextmanager
async def bench_topic(client: Client, given: str | None, *, partitions: int) -> AsyncIterator[str]:
    """The topic that was given, or one of our own that is deleted afterwards, also after a failure."""
    if given is not None:
        yield (await client.topic(given)).name
        return
    name = f"ropewalk-bench-{client.session.rng.randbytes(4).hex()}"
    outcome = (await Admin(client).create_topics([NewTopic(name, partitions)]))[name]
    if outcome is not None:
        raise outcome
    try:
        yield name
    finally:
        await Admin(client).delete_topics([name])


async def produce(
    client: Client, topic: str, shape: Shape, workload: Workload, progress: Progress
) -> Throughput:
    clock = client.session.clock
    partition_count = len((await client.topic(topic)).partitions)
    latencies = Latencies()
    meter = _Meter(client)

    async def send(number: int) -> None:
        producer = Producer(client, topic, acks=shape.acks, codec=shape.codec)
        values = _payloads(client.session.rng, shape.record_bytes)
        partition = number % partition_count
        while (piece := workload.take(shape.batch_records, clock.monotonic_ms())) is not None:
            await _until(clock, piece.due_ms)
            now_ms = clock.now_ms()
            records = [Record(timestamp=now_ms, value=value) for value in islice(values, piece.record_count)]
            await producer.send(records, partition=partition)
            done_ms = clock.monotonic_ms()
            latencies.add(done_ms - piece.due_ms)
            meter.count(len(records), len(records) * shape.record_bytes)
            progress.show(workload.done_fraction(done_ms), meter.text())
            partition = (partition + shape.senders) % partition_count
        await producer.drain()

    await together([send(number) for number in range(shape.senders)])
    return meter.throughput(topic, latencies.summary())


async def consume(
    client: Client, topic: str, *, count: int | None, duration_ms: float | None, progress: Progress
) -> Throughput:
    """Read from the oldest record to what is the end now, or as far as count and duration allow."""
    indexes = [partition.index for partition in (await client.topic(topic)).partitions]
    starts = await client.list_offsets(topic, dict.fromkeys(indexes, OffsetQuery.EARLIEST))
    ends = await client.list_offsets(topic, dict.fromkeys(indexes, OffsetQuery.LATEST))
    positions = {
        TopicPartition(topic, index): starts[index].offset
        for index in indexes
        if starts[index].offset < ends[index].offset
    }
    if not positions:
        raise Failed(f"{topic} is empty; send something first, or leave --topic out")
    total = sum(ends[each.partition].offset - offset for each, offset in positions.items())
    wanted = total if count is None else min(count, total)
    consumer = Consumer(client, positions)
    meter = _Meter(client)
    while consumer.positions and meter.record_count < wanted:
        if duration_ms is not None and meter.elapsed_ms >= duration_ms:
            break
        for consumed in await consumer.poll():
            size = sum(len(record.value or b"") + len(record.key or b"") for record in consumed.records)
            meter.count(len(consumed.records), size)
        for each, position in list(consumer.positions.items()):
            if position >= ends[each.partition].offset:
                del consumer.positions[each]
        progress.show(meter.record_count / wanted, meter.text())
    return meter.throughput(topic, None)


async def measure_delays(
    client: Client, topic: str, shape: Shape, workload: Workload, progress: Progress
) -> Delays:
    """One record at a time to one partition, and a consumer beside it."""
    clock, rng = client.session.clock, client.session.rng
    at = TopicPartition(topic, 0)
    end = (await client.list_offsets(topic, {0: OffsetQuery.LATEST}))[0].offset
    token = rng.randbytes(_TOKEN_BYTES)
    filler = next(_payloads(rng, shape.record_bytes))[STAMP_BYTES:]
    due: dict[int, float] = {}
    acknowledged, arrived = Latencies(), Latencies()
    meter = _Meter(client)
    given_up_ms: float | None = None
    """When to stop waiting for records that have not arrived; None while some are still to be sent."""

    async def send() -> None:
        nonlocal given_up_ms
        producer = Producer(client, topic, acks=shape.acks, codec=shape.codec)
        while (piece := workload.take(1, clock.monotonic_ms())) is not None:
            await _until(clock, piece.due_ms)
            sequence = meter.record_count
            due[sequence] = piece.due_ms
            value = token + sequence.to_bytes(_SEQUENCE_BYTES, "big") + filler
            await producer.send([Record(timestamp=clock.now_ms(), value=value)], partition=0)
            done_ms = clock.monotonic_ms()
            acknowledged.add(done_ms - piece.due_ms)
            meter.count(1, shape.record_bytes)
            progress.show(workload.done_fraction(done_ms), meter.text())
        given_up_ms = client.session.deadline_ms()

    async def receive() -> None:
        consumer = Consumer(client, {at: end})
        while given_up_ms is None or (due and clock.monotonic_ms() < given_up_ms):
            for consumed in await consumer.poll():
                now_ms = clock.monotonic_ms()
                for record in consumed.records:
                    value = record.value or b""
                    sequence = int.from_bytes(value[_TOKEN_BYTES:STAMP_BYTES], "big")
                    if value.startswith(token) and sequence in due:
                        arrived.add(now_ms - due.pop(sequence))

    await together([send(), receive()])
    return Delays(
        topic,
        meter.record_count,
        round(meter.elapsed_ms / 1000, 3),
        meter.client_cpu,
        acknowledged.summary(),
        arrived.summary(),
        len(due),
    )


class _Meter:
    """Counts, and knows since when."""

    def __init__(self, client: Client) -> None:
        self._clock = client.session.clock
        self._started_ms = self._clock.monotonic_ms()
        self._cpu_started_s = time.process_time()
        self.record_count = 0
        self._bytes = 0

    def count(self, records: int, size_bytes: int) -> None:
        self.record_count += records
        self._bytes += size_bytes

    @property
    def elapsed_ms(self) -> float:
        return self._clock.monotonic_ms() - self._started_ms

    @property
    def client_cpu(self) -> float:
        return round((time.process_time() - self._cpu_started_s) * 1000 / max(self.elapsed_ms, 0.001), 3)

    def text(self) -> str:
        seconds = max(self.elapsed_ms, 1.0) / 1000
        return f"{self.record_count / seconds:,.0f} records/s, {self._bytes / seconds / 1e6:,.1f} MB/s"

    def throughput(self, topic: str, latency_ms: LatencySummary | None) -> Throughput:
        seconds = max(self.elapsed_ms, 0.001) / 1000
        return Throughput(
            topic,
            self.record_count,
            self._bytes,
            round(seconds, 3),
            round(self.record_count / seconds, 1),
            round(self._bytes / seconds, 1),
            self.client_cpu,
            latency_ms,
        )


async def _until(clock: Clock, due_ms: float) -> None:
    wait_ms = due_ms - clock.monotonic_ms()
    if wait_ms > 0:
        await asyncio.sleep(wait_ms / 1000)


def _payloads(rng: Rng, record_bytes: int) -> Iterator[bytes]:
    """Hexadecimal digits: a codec halves them, as it does with much that is really sent."""
    made = [rng.randbytes(record_bytes // 2 + 1).hex()[:record_bytes].encode() for _ in range(_PAYLOADS)]
    return cycle(made)
