"""Transactions of real clients on three nodes of which two are killed, one after the other: whole or not at all, and never twice."""

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import aiokafka
import aiokafka.errors
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.node_process import NodeProcess
from tests.compat.test_compat_cluster import cluster, wait_until_in_sync

__all__ = ["cluster"]

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(240)]

PARTITION_COUNT = 3
RECORDS = 6
"""In each transaction, over all partitions."""
GOES_ON = 15
"""So many transactions are committed before, between and after the kills."""
WITHIN_S = 60
CALL_S = 30


class Writer(threading.Thread):
    """Transactions one after the other, every fourth aborted. After an error another producer goes on in the same name."""

    def __init__(self, name: str, live: "Live", bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.topic = name
        self._live = live
        self._servers = bootstrap
        self._ended = threading.Event()
        self._number = 0
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.unknown: list[int] = []
        self.errors: list[str] = []

    def run(self) -> None:
        while not self._ended.is_set():
            self._live(self._servers, self.topic, self)

    def end(self) -> None:
        self._ended.set()
        self.join(2 * WITHIN_S)
        assert not self.is_alive(), f"{self.topic} hangs: {self.errors[-3:]}"

    def next(self) -> int | None:
        """The number of the next transaction; its outcome is unknown until somebody says so. None: it is enough."""
        if self._ended.is_set():
            return None
        self._number += 1
        self.unknown.append(self._number)
        return self._number

    def settle(self, number: int, *, committed: bool) -> None:
        self.unknown.remove(number)
        (self.committed if committed else self.aborted).append(number)


Live = Callable[[str, str, Writer], None]
"""One producer's life, to its first error."""


def to_be_committed(number: int) -> bool:
    return number % 4 != 0


def live_confluent(bootstrap: str, topic: str, writer: Writer) -> None:
    try:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0}
        )
        producer.init_transactions(CALL_S)
        while (number := writer.next()) is not None:
            producer.begin_transaction()
            for each in range(RECORDS):
                producer.produce(topic, f"{number}", partition=each % PARTITION_COUNT)
            producer.flush(CALL_S)
            committed = to_be_committed(number)
            (producer.commit_transaction if committed else producer.abort_transaction)(CALL_S)
            writer.settle(number, committed=committed)
    except confluent_kafka.KafkaException as error:
        writer.errors.append(str(error))


def live_aiokafka(bootstrap: str, topic: str, writer: Writer) -> None:
    async def live() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        await producer.start()
        try:
            while (number := writer.next()) is not None:
                await producer.begin_transaction()
                for each in range(RECORDS):
                    await producer.send_and_wait(topic, b"%d" % number, partition=each % PARTITION_COUNT)
                committed = to_be_committed(number)
                await (producer.commit_transaction() if committed else producer.abort_transaction())
                writer.settle(number, committed=committed)
        finally:
            await producer.stop()

    try:
        asyncio.run(asyncio.wait_for(live(), WITHIN_S))
    except (aiokafka.errors.KafkaError, TimeoutError, OSError) as error:
        writer.errors.append(repr(error))


LIVES: Final[dict[str, Live]] = {
    "confluent-kafka": live_confluent,
    "aiokafka": live_aiokafka,
}
"""kafka-python 3.0 is not among them: its sender drops the request at hand when the coordinator refuses a connection, and `commit_transaction`
then waits for ever. Java's client has its turn with Kafka Streams."""


def test_transactions_are_whole_or_not_at_all_when_brokers_are_killed(cluster: NodeProcess) -> None:
    bootstrap = ",".join(cluster.ready["kafka"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITION_COUNT, 3) for name in LIVES]).values():
        made.result(WITHIN_S)
    writers = [Writer(name, live, bootstrap) for name, live in LIVES.items()]
    for writer in writers:
        writer.start()
    for killed in (1, 2):
        wait_until_all_go_on(writers)
        wait_until_in_sync(admin, tuple(LIVES))
        os.kill(cluster.ready["pids"][killed], signal.SIGKILL)
    wait_until_all_go_on(writers)
    for writer in writers:
        writer.end()
    for writer in writers:
        check(writer, read_committed(bootstrap, writer.topic))


def wait_until_all_go_on(writers: Sequence[Writer]) -> None:
    wanted = {writer: len(writer.committed) + GOES_ON for writer in writers}
    deadline_s = time.monotonic() + WITHIN_S
    while any(len(writer.committed) < count for writer, count in wanted.items()):
        assert time.monotonic() < deadline_s, [(writer.topic, writer.errors[-3:]) for writer in writers]
        time.sleep(0.05)


def read_committed(bootstrap: str, topic: str) -> list[list[int]]:
    """By partition. The last producer may have left a transaction open: another takes its name, which ends it."""
    heir = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0}
    )
    heir.init_transactions(CALL_S)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(PARTITION_COUNT)])
    found: list[list[int]] = [[] for _ in range(PARTITION_COUNT)]
    at_end: set[int] = set()
    deadline_s = time.monotonic() + WITHIN_S
    try:
        while len(at_end) < PARTITION_COUNT:
            assert time.monotonic() < deadline_s, f"{topic}: only {at_end} were read to their ends"
            for message in consumer.consume(500, 1):
                error, partition = message.error(), message.partition() or 0
                if error is None:
                    found[partition].append(int(message.value() or b"-1"))
                else:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    at_end.add(partition)
        return found
    finally:
        consumer.close()


def check(writer: Writer, found: list[list[int]]) -> None:
    counts = [Counter(values) for values in found]
    whole = RECORDS // PARTITION_COUNT
    for number in writer.committed:
        assert [each[number] for each in counts] == [whole] * PARTITION_COUNT, (writer.topic, number)
    for number in writer.aborted:
        assert [each[number] for each in counts] == [0] * PARTITION_COUNT, (writer.topic, number)
    for number in writer.unknown:
        assert [each[number] for each in counts] in ([0] * PARTITION_COUNT, [whole] * PARTITION_COUNT), (
            writer.topic,
            number,
        )
    for values in found:
        assert values == sorted(values), f"{writer.topic} is out of order"
