"""All of one kind of replicated state, as the rest of a node sees it: who looks after a key, the way to ask, and the topic, made on first use."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from msgspec import structs

from ropewalk.base.errors import ShardElsewhere, ShardUnavailable, TopicExists
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.ports import Clock, Pool
from ropewalk.base.sharding import shard_of
from ropewalk.base.state_machine import Command
from ropewalk.broker.cluster.whereabouts import shard_leader
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.shard import Asked, Shard
from ropewalk.broker.hosting.shards import Shards
from ropewalk.broker.hosting.state_machine import Kind
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.image import Image
from ropewalk.metadata.settings.applied import BrokerSettings

C = TypeVar("C")
E = TypeVar("E")
A = TypeVar("A")
T = TypeVar("T")


class Topics(Protocol):
    """Where topics are made."""

    @property
    def image(self) -> Image: ...

    @property
    def broker_settings(self) -> BrokerSettings: ...

    async def create(self, command: CreateTopic) -> object:
        """Returns when the topic is ready for use."""


class Host(Generic[C, E, A]):
    def __init__(
        self,
        kind: Kind[C, E, A],
        topics: Topics,
        partitions: Partitions,
        *,
        pool: Pool,
        clock: Clock,
        on_serving: Callable[[Shard[C, E, A]], None],
    ) -> None:
        self._kind = kind
        self._topics = topics
        self._shards: Shards[C, E, A] = Shards(
            kind,
            image=topics.image,
            partitions=partitions,
            pool=pool,
            clock=clock,
            commit_timeout_ms=topics.broker_settings.offsets_commit_timeout_ms,
            on_serving=on_serving,
        )
        self.follow = self._shards.follow
        self.run = self._shards.run
        self.stop = self._shards.stop
        self.on_clock_moved = self._shards.on_clock_moved

    def __iter__(self) -> Iterator[Shard[C, E, A]]:
        """Those that are hosted here."""
        return iter(self._shards)

    @property
    def is_loaded(self) -> bool:
        return self._shards.is_loaded

    async def coordinator(self, key: str) -> NodeId:
        """The node that looks after a key. Makes the topic if there is none; the caller holds its connection."""
        if not self._shards.count:
            await self._make_topic()
        return self.leader(key)

    def leader(self, key: str) -> NodeId:
        """As `coordinator`, if there is one already."""
        image, topic = self._topics.image, self._kind.topic
        leader = shard_leader(image, topic, key)
        if leader is None:
            reason = f"nobody leads the shard of {self._kind.keys_called} {key!r}"
            raise ShardUnavailable(reason if topic in image.topics else f"{topic} does not exist yet")
        return leader

    def partition(self, key: str) -> TopicPartition:
        """Where the key's events are."""
        return TopicPartition(self._kind.topic, shard_of(key, self._count()))

    def shard(self, key: str) -> Shard[C, E, A]:
        """Raises `ShardElsewhere` if the key is not looked after here."""
        return self._shards.find(shard_of(key, self._count()))

    def shard_at(self, index: int) -> Shard[C, E, A]:
        return self._shards.find(index)

    def ask(self, key: str, command: Command[T]) -> Asked[T]:
        """Raises a shard's error if the key is not looked after here; what is refused is in the answer."""
        any_shard: Any = self._shards.find(shard_of(key, self._count()))  # as `ask` below, without a call
        asked: Asked[T] = any_shard.ask(command)
        return asked

    def ask_in_transaction(
        self, key: str, command: Command[T], enrolment: Enrolment, guard: VerificationGuard | None
    ) -> Asked[T]:
        """What it changes counts when the producer's transaction does. Raises as `ask`, and what the partition refuses
        the producer with."""
        any_shard: Any = self.shard(key)  # as in `ask` below
        asked: Asked[T] = any_shard.ask_in_transaction(command, enrolment, guard)
        return asked

    def ask_all(self, command: Command[T]) -> list[Asked[T]]:
        """Ask every shard of this node; raises if one of them is being loaded."""
        return [ask(shard, command) for shard in self._shards]

    def _count(self) -> int:
        count = self._shards.count
        if not count:
            raise ShardElsewhere(f"{self._kind.topic} does not exist yet; find the coordinator first")
        return count

    async def _make_topic(self) -> None:
        wanted = self._kind.new_topic(self._topics.broker_settings)
        replication_factor = min(wanted.replication_factor, self._topics.image.replica_taker_count)
        with suppress(TopicExists):  # another client was quicker, which is as good
            await self._topics.create(structs.replace(wanted, replication_factor=replication_factor))


def ask(shard: Shard[C, E, A], command: Command[T]) -> Asked[T]:
    """As `Shard.ask`. What a command is answered with is between its kind and whoever asks; a shard only hands it on."""
    any_shard: Any = shard
    asked: Asked[T] = any_shard.ask(command)
    return asked
