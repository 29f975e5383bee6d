"""The load of transactional producers: each begins a transaction, writes a hundred records, commits, and begins the next.

The raw client speaks the newest protocol, in which a write adds its partition to the transaction and every transaction has
an epoch of its own: two requests for a transaction. The ordinary client is confluent-kafka, which speaks the older one.
"""

import asyncio
import threading
import time
from contextlib import AsyncExitStack
from struct import Struct as Layout
from typing import Final

from confluent_kafka import KafkaException, Producer

from bench.brokers import Broker
from bench.client_load import PARTITION_COUNT, LoadFailed, consume
from bench.processes import Meter
from bench.wire_client import Wire, connect, run
from ropewalk.records.batch import stamp_crc
from ropewalk.records.record import Record, build
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import end_txn, find_coordinator, init_producer_id, produce

RECORDS: Final = 100
"""In every transaction."""
RECORD_BYTES: Final = 100

_PRODUCE_VERSION: Final = 12
"""The first in which a write adds its partition to the transaction, and the last in which topics have names."""
_PRODUCER: Final = Layout(">qhi")
_PRODUCER_AT: Final = 43
_TIMEOUT_MS: Final = 60_000
_PAUSE_SECONDS: Final = 0.005
_PASSING: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def transact(broker: Broker, topic: str, *, producer_count: int, seconds: float) -> dict[str, float]:
    """Of the raw client: so many producers, each on a connection of its own, one transaction after the other."""
    return run(_transact(broker, topic, producer_count, seconds))


def transact_ordinarily(
    broker: Broker, topic: str, *, producer_count: int, seconds: float
) -> dict[str, float]:
    """The same of confluent-kafka, each producer in a thread of its own."""
    name = f"bench-txn-{time.monotonic_ns()}"
    counts = [0] * producer_count
    failures: list[KafkaException] = []
    end = threading.Event()

    def live(number: int) -> None:
        try:
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "transactional.id": f"{name}-{number}",
                    "log_level": 3,
                }
            )
            producer.init_transactions()
            while not end.is_set():
                producer.begin_transaction()
                for index in range(RECORDS):
                    producer.produce(topic, b"x" * RECORD_BYTES, partition=(number + index) % PARTITION_COUNT)
                producer.commit_transaction()
                counts[number] += 1
        except KafkaException as error:
            failures.append(error)

    threads = [threading.Thread(target=live, args=(number,)) for number in range(producer_count)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _TIMEOUT_MS / 1000
    while not all(counts) and not failures and time.monotonic() < deadline:
        time.sleep(0.01)
    before = sum(counts)
    with Meter(broker.pid) as meter:
        time.sleep(seconds)
        finished_count = sum(counts) - before
    end.set()
    for thread in threads:
        thread.join()
    if failures:
        raise LoadFailed(f"a transaction failed: {failures[0]}")
    _check(broker, topic, sum(counts))
    return {
        "transactions/s": finished_count / meter.seconds,
        "CPU µs each": meter.broker_cpu_seconds / max(1, finished_count) * 1e6,
        "foreign cores": meter.foreign_cores,
    }


async def _transact(broker: Broker, topic: str, producer_count: int, seconds: float) -> dict[str, float]:
    name = f"bench-raw-txn-{time.monotonic_ns()}"
    end = asyncio.Event()
    async with AsyncExitStack() as connections:
        producers = [
            _Producer(await connect(broker, connections), f"{name}-{number}", topic, number % PARTITION_COUNT)
            for number in range(producer_count)
        ]
        for producer in producers:
            await producer.begin()
        lives = [asyncio.ensure_future(producer.live(end)) for producer in producers]
        await asyncio.sleep(min(1.0, seconds / 4))
        before = sum(producer.finished_count for producer in producers)
        for producer in producers:
            producer.latencies_ms.clear()
        with Meter(broker.pid) as meter:
            await asyncio.sleep(seconds)
            finished_count = sum(producer.finished_count for producer in producers) - before
        latencies_ms = sorted(latency for producer in producers for latency in producer.latencies_ms)
        end.set()
        await asyncio.gather(*lives)
    _check(broker, topic, sum(producer.finished_count for producer in producers))
    return {
        "transactions/s": finished_count / meter.seconds,
        "p99 ms": latencies_ms[len(latencies_ms) * 99 // 100],
        "CPU µs each": meter.broker_cpu_seconds / finished_count * 1e6,
        "foreign cores": meter.foreign_cores,
    }


class _Producer:
    def __init__(self, wire: Wire, transactional_id: str, topic: str, partition: int) -> None:
        self._wire = wire
        self._id = transactional_id
        self._topic = topic
        self._partition = partition
        self._producer_id = -1
        self._epoch = -1
        records = [
            Record(timestamp=int(time.time() * 1000), value=b"x" * RECORD_BYTES) for _ in range(RECORDS)
        ]
        self._batch = build(records, is_transactional=True)
        self.finished_count = 0
        self.latencies_ms: list[float] = []

    async def begin(self) -> None:
        """Returns when the coordinator has given it an id."""
        find = find_coordinator.FindCoordinatorRequest(key=self._id, key_type=1, coordinator_keys=(self._id,))
        request = init_producer_id.InitProducerIdRequest(self._id, _TIMEOUT_MS)
        while True:
            await self._wire.call(find_coordinator.API, find)
            answer = await self._wire.call(init_producer_id.API, request)
            if answer.error_code == ErrorCode.NONE:
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                return
            await _pause(answer.error_code, "InitProducerId")

    async def live(self, end: asyncio.Event) -> None:
        while not end.is_set():
            began_at = time.perf_counter()
            await self._write()
            await self._commit()
            self.finished_count += 1
            self.latencies_ms.append((time.perf_counter() - began_at) * 1000)

    async def _write(self) -> None:
        _PRODUCER.pack_into(self._batch, _PRODUCER_AT, self._producer_id, self._epoch, 0)
        stamp_crc(memoryview(self._batch))
        data = produce.PartitionProduceData(self._partition, bytes(self._batch))
        request = produce.ProduceRequest(
            self._id, -1, _TIMEOUT_MS, (produce.TopicProduceData(self._topic, partitions=(data,)),)
        )
        while True:
            answer = await self._wire.call(produce.API, request, version_max=_PRODUCE_VERSION)
            code = answer.topics[0].partitions[0].error_code
            if code == ErrorCode.NONE:
                return
            await _pause(code, "Produce")

    async def _commit(self) -> None:
        request = end_txn.EndTxnRequest(self._id, self._producer_id, self._epoch, committed=True)
        while True:
            answer = await self._wire.call(end_txn.API, request)
            if answer.error_code == ErrorCode.NONE:
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                return
            await _pause(answer.error_code, "EndTxn")


async def _pause(code: int, api: str) -> None:
    """Before the next attempt, where one helps: a coordinator may still be writing the markers of the last transaction."""
    if ErrorCode(code) not in _PASSING:
        raise LoadFailed(f"{api} was answered with {ErrorCode(code).name}")
    await asyncio.sleep(_PAUSE_SECONDS)


def _check(broker: Broker, topic: str, transaction_count: int) -> None:
    """Whoever reads committed records alone, as this client does, gets all of them."""
    consume(broker, topic, record_bytes=RECORD_BYTES, record_count=transaction_count * RECORDS)
