"""Members of groups on three client libraries, behind one small face: `group_members.py` hosts them.

With `commit=revoked` a member stores its positions before it gives partitions away. What it has polled by then it
has also told, so that nothing is read twice unless a member crashes.
"""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, Protocol

import aiokafka
import aiokafka.abc
import aiokafka.coordinator.assignors.range as aiokafka_range
import aiokafka.coordinator.assignors.roundrobin as aiokafka_roundrobin
import aiokafka.coordinator.assignors.sticky.sticky_assignor as aiokafka_sticky
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.coordinator.assignors.range as kafka_range
import kafka.coordinator.assignors.roundrobin as kafka_roundrobin
import kafka.coordinator.assignors.sticky.sticky_assignor as kafka_sticky
import kafka.errors

POLL_MS: Final = 50
SESSION_MS: Final = 6_000
"""The shortest that brokers accept unless told otherwise."""
HEARTBEAT_MS: Final = 100
"""How soon a member hears of a rebalance."""
METADATA_AGE_MS: Final = 500
"""How soon a pattern finds a topic."""
COORDINATOR_WITHIN_S: Final = 20
CLOSED_WITHIN_S: Final = 10
COORDINATOR_MOVES: Final = {
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "_TRANSPORT",
    "_WAIT_COORD",
}


class Position(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


class Options(NamedTuple):
    """What a `join` says; absent values are empty."""

    bootstrap: str
    group: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    strategy: str = "range"
    instance: str = ""
    session: str = str(SESSION_MS)
    """Milliseconds; with the consumer protocol it is the broker that says."""
    protocol: str = ""
    """`consumer`: assignments are made by the broker (KIP-848), and `strategy` is not looked at."""
    commit: str = "revoked"
    """`revoked`: as partitions are given away; `auto`: by the client, as it likes; `asked`: on command only."""

    @classmethod
    def parse(cls, words: Iterable[str]) -> "Options":
        values = dict(word.split("=", 1) for word in words)
        topics = tuple(filter(None, values.pop("topics", "").split(",")))
        return cls(topics=topics, **values)


Say = Callable[..., None]


class Member(Protocol):
    """One client in its group. Only its own thread calls it; `say` reports what the client calls back."""

    def __init__(self, options: Options, say: Say) -> None: ...

    def poll(self) -> list[Position]: ...

    def commit(self) -> None: ...

    def seek(self, position: Position) -> None: ...

    def close(self) -> None: ...


class Refused(Exception):
    """The broker, or the client in its place, would not commit. The text is the client's name for the error."""

    @property
    def is_passing(self) -> bool:
        """The group is just being shared out anew; a member that polls on may commit soon."""
        return re.search(r"(?i)rebalance_?in_?progress|stale_?member_?epoch", str(self)) is not None


class ConfluentMember:
    def __init__(self, options: Options, say: Say) -> None:
        self._options = options
        self._say = say
        self._floors: dict[tuple[str, int], int] = {}
        """What comes next of each partition since it was last assigned.

        Where a rebalance takes a partition and gives it back, librdkafka 2.16 may still hand out records that it had
        fetched the first time, on Apache Kafka too, and then the same ones again.
        """
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": options.commit == "auto",
            "topic.metadata.refresh.interval.ms": METADATA_AGE_MS,
            "fetch.wait.max.ms": 100,
            "log_level": 0,
        }
        if options.protocol:
            settings["group.protocol"] = options.protocol
        else:
            settings["partition.assignment.strategy"] = options.strategy
            settings["session.timeout.ms"] = int(options.session)
            settings["heartbeat.interval.ms"] = HEARTBEAT_MS
        if options.instance:
            settings["group.instance.id"] = options.instance
        self._consumer = confluent_kafka.Consumer(settings)
        wanted = [options.pattern] if options.pattern else list(options.topics)
        self._consumer.subscribe(
            wanted, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def poll(self) -> list[Position]:
        # One at a time: a rebalance in the middle of a batch would be told of before the batch is.
        message = self._consumer.poll(POLL_MS / 1000)
        if message is None:
            return []
        error = message.error()
        if error is not None:
            if error.fatal():
                raise Refused(error.name())
            return []
        position = Position(message.topic() or "", message.partition() or 0, message.offset() or 0)
        if position.offset < self._floors.get(position[:2], 0):
            return []
        self._floors[position[:2]] = position.offset + 1
        return [position]

    def commit(self) -> None:
        """Java's client comes again by itself while the coordinator moves; this one leaves it to the program."""
        deadline_s = time.monotonic() + COORDINATOR_WITHIN_S
        while True:
            try:
                self._consumer.commit(asynchronous=False)
                return
            except confluent_kafka.KafkaException as error:
                name = error.args[0].name()
                if name == "_NO_OFFSET":
                    return
                if name not in COORDINATOR_MOVES or time.monotonic() > deadline_s:
                    raise Refused(name) from error
                time.sleep(POLL_MS / 1000)

    def seek(self, position: Position) -> None:
        self._floors[position[:2]] = position.offset
        self._consumer.seek(confluent_kafka.TopicPartition(*position))

    def close(self) -> None:
        """Leaves the group, and ends the client if that can be ended.

        Partitions are given away first, and while it polls. What its callback asks of librdkafka in the midst of closing may never be
        answered, and no other thread of the program runs meanwhile.
        librdkafka may then wait for ever for its own thread of a node that was away ("Handle is terminating in state INIT: 2 refcnts",
        over and over; confluent-kafka-python's issue 1667). It has left the group by then.
        """
        if not self._options.instance:  # a static member goes and keeps its partitions
            self._give_away()
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(CLOSED_WITHIN_S)

    def _give_away(self) -> None:
        deadline_s = time.monotonic() + COORDINATOR_WITHIN_S
        self._consumer.unsubscribe()
        while self._consumer.assignment() and time.monotonic() < deadline_s:
            positions = self.poll()
            if positions:
                self._say("read", *positions)

    def _on_assign(self, _: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        if partitions:
            for committed in self._committed(partitions):
                self._floors[committed.topic, committed.partition] = max(0, committed.offset)
        self._say("assigned", *_names(partitions))

    def _committed(
        self, partitions: list[confluent_kafka.TopicPartition]
    ) -> list[confluent_kafka.TopicPartition]:
        deadline_s = time.monotonic() + COORDINATOR_WITHIN_S
        while True:
            try:
                return list(self._consumer.committed(partitions, timeout=10))
            except confluent_kafka.KafkaException as error:
                name = error.args[0].name()
                if name == "_TIMED_OUT":
                    return []  # it is closing and gets no answer; what it would read now is of no use to anybody
                is_passing = name in COORDINATOR_MOVES or name == "STALE_MEMBER_EPOCH"
                if not is_passing or time.monotonic() > deadline_s:
                    raise
                time.sleep(POLL_MS / 1000)

    def _on_revoke(self, _: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        if partitions and self._options.commit == "revoked":
            commit_or_say(self, self._say)
        self._say("revoked", *_names(partitions))

    def _on_lost(self, _: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self._say("lost", *_names(partitions))


class AiokafkaMember:
    _STRATEGIES: Final = {
        "range": aiokafka_range.RangePartitionAssignor,
        "roundrobin": aiokafka_roundrobin.RoundRobinPartitionAssignor,
        "sticky": aiokafka_sticky.StickyPartitionAssignor,
    }

    def __init__(self, options: Options, say: Say) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._start(options, say))

    async def _start(self, options: Options, say: Say) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance or None,
            partition_assignment_strategy=(self._STRATEGIES[options.strategy],),
            auto_offset_reset="earliest",
            enable_auto_commit=options.commit == "auto",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=METADATA_AGE_MS,
            fetch_max_wait_ms=100,
        )
        listener = _AiokafkaListener(self._consumer, options, say)
        if options.pattern:
            self._consumer.subscribe(pattern=options.pattern, listener=listener)
        else:
            self._consumer.subscribe(options.topics, listener=listener)
        await self._consumer.start()

    def poll(self) -> list[Position]:
        records = self._runner.run(self._consumer.getmany(timeout_ms=POLL_MS))
        return [Position(at.topic, at.partition, record.offset) for at in records for record in records[at]]

    def commit(self) -> None:
        self._runner.run(_aiokafka_commit(self._consumer))

    def seek(self, position: Position) -> None:
        self._consumer.seek(aiokafka.TopicPartition(position.topic, position.partition), position.offset)

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


class _AiokafkaListener(aiokafka.abc.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, consumer: aiokafka.AIOKafkaConsumer, options: Options, say: Say) -> None:
        self._consumer = consumer
        self._options = options
        self._say = say

    async def on_partitions_revoked(self, revoked: Collection[aiokafka.TopicPartition]) -> None:
        if revoked and self._options.commit == "revoked":
            try:
                await _aiokafka_commit(self._consumer)
            except Refused as error:
                self._say("refused", error)
        self._say("revoked", *_names(revoked))

    async def on_partitions_assigned(self, assigned: Iterable[aiokafka.TopicPartition]) -> None:
        self._say("assigned", *_names(assigned))


async def _aiokafka_commit(consumer: aiokafka.AIOKafkaConsumer) -> None:
    try:
        await consumer.commit()
    except aiokafka.errors.KafkaError as error:
        raise Refused(type(error).__name__) from error


class KafkaPythonMember:
    _STRATEGIES: Final = {
        "range": kafka_range.RangePartitionAssignor,
        "roundrobin": kafka_roundrobin.RoundRobinPartitionAssignor,
        "sticky": kafka_sticky.StickyPartitionAssignor,
    }

    def __init__(self, options: Options, say: Say) -> None:
        # A poll that ends while a new topic makes the client join again can make it wait for ever.
        self._poll_ms = 1000 if options.pattern else POLL_MS
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance or None,
            partition_assignment_strategy=[self._STRATEGIES[options.strategy]],
            auto_offset_reset="earliest",
            enable_auto_commit=options.commit == "auto",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=METADATA_AGE_MS,
            fetch_max_wait_ms=100,
        )
        listener = _KafkaPythonListener(self._consumer, options, say)
        if options.pattern:
            self._consumer.subscribe(pattern=options.pattern, listener=listener)
        else:
            self._consumer.subscribe(options.topics, listener=listener)
        # Hearing of its topics for the first time while it joins can make this client wait for ever.
        self._consumer.topics()

    def poll(self) -> list[Position]:
        records = self._consumer.poll(timeout_ms=self._poll_ms)
        return [Position(at.topic, at.partition, record.offset) for at in records for record in records[at]]

    def commit(self) -> None:
        try:
            self._consumer.commit()
        except kafka.errors.KafkaError as error:
            raise Refused(type(error).__name__) from error

    def seek(self, position: Position) -> None:
        self._consumer.seek(kafka.TopicPartition(position.topic, position.partition), position.offset)

    def close(self) -> None:
        self._consumer.close()


class _KafkaPythonListener(kafka.AsyncConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """The client's own thread calls it, where `commit` would wait for itself."""

    def __init__(self, consumer: kafka.KafkaConsumer, options: Options, say: Say) -> None:
        self._consumer = consumer
        self._options = options
        self._say = say

    async def on_partitions_revoked(self, revoked: Collection[kafka.TopicPartition]) -> None:
        if revoked and self._options.commit == "revoked":
            try:
                await self._consumer.commit_async()
            except kafka.errors.KafkaError as error:
                self._say("refused", type(error).__name__)
        self._say("revoked", *_names(revoked))

    async def on_partitions_assigned(self, assigned: Iterable[kafka.TopicPartition]) -> None:
        self._say("assigned", *_names(assigned))

    async def on_partitions_lost(self, lost: Iterable[kafka.TopicPartition]) -> None:
        self._say("lost", *_names(lost))


class _Partition(Protocol):
    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...


def _names(partitions: Iterable[_Partition]) -> list[str]:
    return [f"{partition.topic}:{partition.partition}" for partition in partitions]


def commit_or_say(member: Member, say: Say) -> bool:
    try:
        member.commit()
    except Refused as error:
        say("refused", error)
        return False
    return True


MEMBERS: Final[dict[str, type[Member]]] = {
    "confluent-kafka": ConfluentMember,
    "aiokafka": AiokafkaMember,
    "kafka-python": KafkaPythonMember,
}
