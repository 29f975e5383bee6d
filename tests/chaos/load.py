"""Producers and a consumer that never let go, whatever becomes of the node.

Three threads with a librdkafka client each: an idempotent producer, a producer that merely asks for acks=all, and a
consumer that follows all partitions; and two with `ropewalk`'s own client: an idempotent producer and a consumer
(`library_load.py`). Between them they keep a `Tally` per partition. The clients live through every
restart, so what they had in flight when the node went is sent again to the one that comes back.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos import library_load
from tests.chaos.checker import Sent, Stored, Tally

TOPIC = "chaos"
PARTITION_COUNT = 4
VALUE_BYTES = 300
OUTSTANDING_MAX = 400
"""Records of one producer that may be unacknowledged: enough for several requests in flight, few enough to end."""
READ_WITHIN_S = 120.0
KNOWN_WITHIN_S = 20.0
QUIET: dict[str, int] = {"log_level": 0}
"""A refused connection is no news here."""
PATIENT: dict[str, object] = {
    **QUIET,
    "message.timeout.ms": 300_000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "linger.ms": 2,
    # A leader that is cut off from the others takes what it is sent and cannot acknowledge it. How soon a client looks elsewhere
    # is up to the client.
    "request.timeout.ms": 4_000,
    "topic.metadata.refresh.interval.ms": 1_000,
}


class Load:
    def __init__(self, address: str, replication_factor: int = 1) -> None:
        """`address` of a node, or those of several with commas between them."""
        self._address = address
        self._replication_factor = replication_factor
        self._stopping = threading.Event()
        self._abandoned = threading.Event()
        self._granted_count = 0
        self._threads: list[threading.Thread] = []
        self.tallies = [
            Tally(number, VALUE_BYTES, frozenset({"once", library_load.WRITER}))
            for number in range(PARTITION_COUNT)
        ]
        self.topics_made: list[str] = []
        self.topics_deleted: list[str] = []
        self.failures: list[str] = []
        """What went wrong for a client in a way that no restart explains."""

    @property
    def acknowledged_count(self) -> int:
        return sum(len(tally.acknowledged) + len(tally.unplaced) for tally in self.tallies)

    @property
    def consumed_count(self) -> int:
        return sum(len(tally.consumed) for tally in self.tallies)

    def make_topic(self, name: str, partition_count: int = 1) -> None:
        """Create a topic and remember that it was acknowledged."""
        settings = {"segment.bytes": str(1 << 20)}
        topic = NewTopic(
            name,
            num_partitions=partition_count,
            replication_factor=self._replication_factor,
            config=settings,
        )
        admin = AdminClient({"bootstrap.servers": self._address, **QUIET})
        _unless_refused(lambda: admin.create_topics([topic], request_timeout=30)[name].result())
        self.topics_made.append(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and remember that it was acknowledged."""
        admin = AdminClient({"bootstrap.servers": self._address, **QUIET})
        _unless_refused(lambda: admin.delete_topics([name], request_timeout=30)[name].result())
        self.topics_made.remove(name)
        self.topics_deleted.append(name)

    def grant(self, record_count: int) -> None:
        """Let each producer send so many records more. What a run costs then depends on its rounds, not on the clock."""
        self._granted_count += record_count

    @contextmanager
    def running(self) -> Iterator[None]:
        """Producers and consumer work inside; at the end every record that was sent has been acknowledged."""
        writers: list[tuple[str, dict[str, object]]] = [
            ("once", {"enable.idempotence": True, "compression.type": "none"}),
            ("often", {"acks": "all", "compression.type": "lz4"}),
        ]
        for writer, settings in writers:
            self._start(self._produce, writer, settings)
        self._start(self._consume)
        self._start(self._produce_by_library)
        self._start(self._consume_by_library)
        try:
            yield
        except BaseException:
            self._abandoned.set()
            raise
        finally:
            self._stopping.set()
            for thread in self._threads:
                thread.join(timeout=READ_WITHIN_S)
                if thread.is_alive():
                    self.failures.append(f"{thread.name} did not come to an end")

    def wait_for(self, record_count: int, *, within_s: float) -> None:
        """Until so many more records have been acknowledged."""
        wanted = self.acknowledged_count + record_count
        deadline = time.monotonic() + within_s
        while self.acknowledged_count < wanted:
            if time.monotonic() > deadline or self.failures:
                missing = wanted - self.acknowledged_count
                raise RuntimeError(f"{missing} of {record_count} records not acknowledged; {self.failures}")
            time.sleep(0.005)

    def check(self) -> None:
        """Read everything there is and compare it with everything known before."""
        promised = [tally.known() for tally in self.tallies]
        logs = self._read_everything()
        for tally, log, known in zip(self.tallies, logs, promised, strict=True):
            tally.check(log, known)
        self._check_topics()

    def _check_topics(self) -> None:
        """Asking by name, and as an administrator, never makes a topic that is gone."""
        admin = AdminClient({"bootstrap.servers": self._address, **QUIET})
        names = TopicCollection([*self.topics_made, *self.topics_deleted])
        for name, answer in admin.describe_topics(names, request_timeout=30).items():
            try:
                answer.result()
            except KafkaException as error:
                if name in self.topics_made:
                    self.failures.append(f"topic {name} was made: {error}")
            else:
                if name in self.topics_deleted:
                    self.failures.append(f"topic {name} was deleted and is there")

    def _start(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(
            target=function, args=arguments, name=f"{function.__name__} {arguments[:1]}"
        )
        thread.start()
        self._threads.append(thread)

    def _produce(self, writer: str, settings: dict[str, object]) -> None:
        producer = Producer({"bootstrap.servers": self._address, **PATIENT, **settings})
        sent_count = 0
        while not self._stopping.is_set() and not self.failures:
            if sent_count >= self._granted_count or len(producer) >= OUTSTANDING_MAX:
                producer.poll(0.005)
                continue
            tally = self.tallies[sent_count % PARTITION_COUNT]
            sent = tally.on_sent(writer)
            producer.produce(
                TOPIC,
                sent.encode(tally.partition, VALUE_BYTES),
                partition=tally.partition,
                on_delivery=self._on_delivery(tally, sent),
            )
            sent_count += 1
            producer.poll(0)
        deadline = time.monotonic() + READ_WITHIN_S
        while (left := producer.flush(0.2)) and time.monotonic() < deadline and not self._abandoned.is_set():
            pass
        if left:
            producer.purge()
            self.failures.append(f"{left} records of {writer} were never acknowledged")

    def _produce_by_library(self) -> None:
        library_load.produce(
            self._address,
            TOPIC,
            self.tallies,
            value_bytes=VALUE_BYTES,
            granted=lambda: self._granted_count,
            outstanding_max=OUTSTANDING_MAX,
            stopping=self._stopping,
            abandoned=self._abandoned,
            failures=self.failures,
        )

    def _consume_by_library(self) -> None:
        library_load.consume(
            self._address, TOPIC, self.tallies, stopping=self._stopping, failures=self.failures
        )

    def _on_delivery(self, tally: Tally, sent: Sent) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(f"{sent} was given up: {error}")
            else:
                offset = message.offset()
                assert offset is not None
                tally.on_acknowledged(offset, sent)

        return delivered

    def _consume(self) -> None:
        consumer = self._consumer()
        consumer.assign([TopicPartition(TOPIC, tally.partition, 0) for tally in self.tallies])
        while not self._stopping.is_set():
            for message in consumer.consume(500, timeout=0.05):
                self._on_message(message)
        consumer.close()

    def _on_message(self, message: Message) -> None:
        error = message.error()
        if error is None:
            partition, stored = message.partition(), _stored(message)
            assert partition is not None
            self.tallies[partition].on_consumed(stored)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET or error.code() == KafkaError.OFFSET_OUT_OF_RANGE:
            self.failures.append(f"a consumer's position vanished: {error}")

    def _read_everything(self) -> list[list[Stored]]:
        consumer = self._consumer()
        try:
            return [self._read_partition(consumer, tally.partition) for tally in self.tallies]
        finally:
            consumer.close()

    def _read_partition(self, consumer: Consumer, partition: int) -> list[Stored]:
        """From the beginning to the end there was when reading began."""
        low, high = self._watermarks(consumer, partition)
        if low != 0:
            self.failures.append(f"partition {partition} begins at {low}")
        consumer.assign([TopicPartition(TOPIC, partition, low)])
        log: list[Stored] = []
        deadline = time.monotonic() + READ_WITHIN_S
        while not log or log[-1].offset < high - 1:
            if high == low:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"partition {partition}: read {len(log)} of {high} records in {READ_WITHIN_S} s"
                )
            messages = consumer.consume(5_000, timeout=0.1)
            log.extend(_stored(message) for message in messages if message.error() is None)
        return [stored for stored in log if stored.offset < high]

    def _watermarks(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        """Where the partition begins and ends; one that nobody knows any more is as good as empty."""
        deadline = time.monotonic() + KNOWN_WITHIN_S
        while True:
            try:
                low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=10)
            except KafkaException as error:
                if time.monotonic() < deadline:
                    continue
                self.failures.append(f"partition {partition} cannot be read: {error}")
                return 0, 0
            return low, high

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._address,
                **QUIET,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 20,
            }
        )


def _unless_refused(change: Callable[[], object]) -> None:
    """Again when the controller has just changed: whoever says so has done nothing. Java's administrator comes again by itself."""
    deadline_s = time.monotonic() + KNOWN_WITHIN_S
    while True:
        try:
            change()
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_CONTROLLER or time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


def _stored(message: Message) -> Stored:
    offset, value = message.offset(), message.value()
    assert offset is not None
    assert isinstance(value, bytes)
    return Stored(offset, value)
