"""Records that pipelines have to carry: some sent plainly, some in transactions that are committed, some in ones that are aborted.

Each value is there once in all of a run and says what became of it, so that loss and doubling can be seen wherever it arrives.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.spark_judge import Place, Record

SOURCE: Final = "source"
PARTITION_COUNT: Final = 4
PLAIN: Final = "plain"
KEPT: Final = "kept"
DROPPED: Final = "dropped"
TICK_S: Final = 0.1
TRANSACTION_EVERY_S: Final = 0.7
WITHIN_S: Final = 120.0
PATIENT: Final[dict[str, str | int | bool]] = {
    "log_level": 0,
    "enable.idempotence": True,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "request.timeout.ms": 4_000,
    "topic.metadata.refresh.interval.ms": 1_000,
}


class Feed:
    """Two threads with a producer of librdkafka each. They live through everything that becomes of the brokers."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._send_plainly, daemon=True),
            threading.Thread(target=self._send_in_transactions, daemon=True),
        ]
        self.acknowledged: set[str] = set()
        """Must be read by whoever reads committed records, once."""
        self.dropped: set[str] = set()
        """Must never be read by them. Values in neither set were in a transaction whose end nobody was told of."""
        self.transactions = {KEPT: 0, DROPPED: 0}
        self.failures: list[str] = []

    @contextmanager
    def running(self) -> Iterator["Feed"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join()

    def _send_plainly(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5, **PATIENT})
        while not self._ended.wait(TICK_S):
            for _ in range(2 * PARTITION_COUNT):
                self._send(producer, PLAIN)
            producer.poll(0)
        if producer.flush(WITHIN_S):
            self.failures.append("the feed could not be flushed")

    def _send_in_transactions(self) -> None:
        """Committed and aborted by turns. After an error that only a new producer gets over there is a new one."""
        turns = itertools.cycle((KEPT, DROPPED))
        while not self._ended.is_set():
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": "feed",
                    "transaction.timeout.ms": 10_000,
                    **PATIENT,
                }
            )
            try:
                producer.init_transactions(WITHIN_S)
                while not self._ended.wait(TRANSACTION_EVERY_S):
                    self._send_transaction(producer, next(turns))
            except KafkaException as error:
                if not (
                    error.args[0].fatal() or error.args[0].retriable() or error.args[0].txn_requires_abort()
                ):
                    self.failures.append(f"the feed's transactions were refused: {error}")
                    return

    def _send_transaction(self, producer: Producer, fate: str) -> None:
        producer.begin_transaction()
        sent = [self._send(producer, fate) for _ in range(2 * PARTITION_COUNT)]
        if fate == DROPPED:
            self.dropped.update(sent)  # whatever comes now, nobody commits them
            producer.flush(WITHIN_S)
            producer.abort_transaction(WITHIN_S)
        else:
            producer.commit_transaction(WITHIN_S)
            self.acknowledged.update(sent)
        self.transactions[fate] += 1

    def _send(self, producer: Producer, fate: str) -> str:
        number = next(self._numbers)
        value = f"{fate} {number}"
        told = self._on_delivery if fate == PLAIN else None
        producer.produce(SOURCE, value, f"key {number % 16}", number % PARTITION_COUNT, on_delivery=told)
        return value

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"the feed was refused: {error}")
        else:
            self.acknowledged.add((message.value() or b"").decode())


class Read(NamedTuple):
    place: Place
    key: str
    value: str


def read_committed(bootstrap: str, topic: str) -> Iterator[Read]:
    """Everything up to where the partitions end now, each partition in its order."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        found = reader.list_topics(topic, timeout=WITHIN_S).topics[topic]
        unread = set(found.partitions)
        reader.assign([TopicPartition(topic, index, 0) for index in sorted(unread)])
        deadline = time.monotonic() + WITHIN_S
        while unread:
            if time.monotonic() > deadline:
                raise RuntimeError(f"partitions {sorted(unread)} of {topic} could not be read to their ends")
            for message in reader.consume(1_000, 1.0):
                error, index, offset = message.error(), message.partition(), message.offset()
                if error is None:
                    assert index is not None
                    assert offset is not None
                    key, value = message.key() or b"", message.value() or b""
                    yield Read(Place(index, offset), key.decode(), value.decode())
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(index or 0)
                elif error.fatal():
                    raise KafkaException(error)
    finally:
        reader.close()


def fed(bootstrap: str) -> list[Record]:
    return [Record(each.place, each.value) for each in read_committed(bootstrap, SOURCE)]
