"""Groups on this node: which shard a group is in, who looks after it, and its topic, made on first use."""

import asyncio
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from ropewalk.base.errors import ShardElsewhere
from ropewalk.base.ids import Offset, ProducerEpoch, ProducerId
from ropewalk.base.ports import Clock, Pool, Rng
from ropewalk.broker.coordinators.group_topics import GroupTopics
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.host import Host
from ropewalk.broker.hosting.keyed import Keyed
from ropewalk.broker.hosting.shard import Asked, Shard
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.topics import CreateTopic
from ropewalk.groups.answers import Answer, Committed, GroupState, GroupType
from ropewalk.groups.assignors.catalogue import DEFAULT_ASSIGNOR
from ropewalk.groups.commands import (
    AnyCommand,
    Command,
    Commit,
    CommitInTransaction,
    DeleteGroups,
    DeleteOffsets,
)
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import Event
from ropewalk.groups.settings import GroupSettings
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from ropewalk.metadata.records import Fact, TopicDeleted
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.records.marker import TransactionMarker

T = TypeVar("T")


class GroupSample(Struct, frozen=True):
    """One group as it is at a moment, for those who watch."""

    group_id: str
    state: GroupState
    member_count: int
    offsets: tuple[tuple[str, int, Offset], ...]
    """Topic, partition, and the offset that was committed last."""
    generation: int = 0
    group_type: GroupType = GroupType.CLASSIC


class Groups:
    def __init__(self, topics: Topics, partitions: Partitions, *, pool: Pool, clock: Clock, rng: Rng) -> None:
        self._image = topics.image
        self._group_topics = GroupTopics(topics.image)
        self._host: Host[AnyCommand, Event, Answer] = Host(
            _GroupsKind(_group_settings(topics.broker_settings), rng, self._group_topics),
            topics,
            partitions,
            pool=pool,
            clock=clock,
            on_serving=self._forget_deleted_topics,
        )
        self.run = self._host.run
        self.stop = self._host.stop
        self.on_clock_moved = self._host.on_clock_moved
        self.coordinator = self._host.coordinator
        self.offsets_partition = self._host.partition

    @property
    def is_loaded(self) -> bool:
        return self._host.is_loaded

    def ask(self, group_id: str, command: Command[T]) -> Asked[T]:
        """Raises a shard's error if the group is not looked after here; what the group refuses is in the answer."""
        return self._host.ask(group_id, command)

    def ask_all(self, command: Command[T]) -> list[Asked[T]]:
        """Ask every shard of this node; raises if one of them is being loaded."""
        return self._host.ask_all(command)

    def verification_needed(
        self, group_id: str, producer_id: ProducerId, producer_epoch: ProducerEpoch
    ) -> VerificationGuard | None:
        """What to bring to `commit_in_transaction`, once the coordinator of the transaction has agreed; None: nothing is needed."""
        return self._host.shard(group_id).verification_needed(Enrolment(producer_id, producer_epoch))

    def commit_in_transaction(
        self, command: CommitInTransaction, guard: VerificationGuard | None = None
    ) -> Asked[Committed]:
        """The offsets count when the transaction does. Raises as `ask`, and what the partition refuses the producer with."""
        enrolment = Enrolment(ProducerId(command.producer_id), ProducerEpoch(command.producer_epoch))
        return self._host.ask_in_transaction(command.group_id, command, enrolment, guard)

    def end_transaction(self, partition: int, marker: TransactionMarker) -> "asyncio.Future[None]":
        """Markers for a partition of the offsets' topic come through here, and only here."""
        return self._host.shard_at(partition).end_transaction(marker)

    def forget(self, group_id: str, token: int) -> None:
        with suppress(ShardElsewhere):  # its waiters were sent away when it went
            self._host.shard(group_id).forget(token)

    async def follow(self, records: Sequence[Fact]) -> None:
        """The cluster's facts have changed by `records`, and the partitions have followed them."""
        deleted = self._group_topics.follow(records)
        await self._host.follow()
        if not any(isinstance(record, TopicDeleted) for record in records):
            return
        for shard in self._host:
            if shard.is_serving:
                self._forget_deleted_topics(shard, deleted)

    def samples(self) -> Iterator[GroupSample]:
        """Every group that is looked after here. What is seen may be a moment ahead of the log."""
        for shard in self._host:
            core = shard.core
            if isinstance(core, GroupsCore):
                for overview in core.overviews():
                    offsets = tuple(
                        (partition.topic, partition.partition, Offset(committed.offset))
                        for partition, committed in core.durable.offsets(overview.group_id)
                    )
                    yield GroupSample(
                        overview.group_id,
                        overview.state,
                        overview.member_count,
                        offsets,
                        overview.generation,
                        overview.group_type,
                    )

    def _forget_deleted_topics(
        self, shard: Shard[AnyCommand, Event, Answer], deleted: AbstractSet[str] = frozenset()
    ) -> None:
        """Also when a shard begins to serve: the node may have stopped between a deletion and this.

        `deleted`: names that the image may have given to others meanwhile.
        """
        core = shard.core
        assert isinstance(core, GroupsCore)
        known = core.durable.topics()
        gone = known - self._image.topics.keys() | known & deleted
        if gone:
            shard.decide(lambda _core, _now_ms: core.on_topics_deleted(sorted(gone)))


class _GroupsKind:
    keys_called = "group"
    topic = OFFSETS_TOPIC
    log: Keyed[Event] = Keyed(encode_event, decode_event)

    def __init__(self, settings: GroupSettings, rng: Rng, topics: GroupTopics) -> None:
        self._settings = settings
        self._rng = rng
        self._topics = topics

    def new_topic(self, settings: BrokerSettings) -> CreateTopic:
        return CreateTopic(
            name=OFFSETS_TOPIC,
            partition_count=settings.offsets_topic_num_partitions,
            replication_factor=settings.offsets_topic_replication_factor,
            settings={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )

    def new_core(self) -> GroupsCore:
        return GroupsCore(self._settings, self._rng, self._topics)

    def only_writes(self, command: AnyCommand) -> bool:
        return isinstance(command, Commit | DeleteOffsets | DeleteGroups)


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        session_ms_min=settings.group_min_session_timeout_ms,
        session_ms_max=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        member_count_max=settings.group_max_size,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        offsets_check_interval_ms=settings.offsets_retention_check_interval_ms,
        offset_metadata_bytes_max=settings.offset_metadata_max_bytes,
        consumer_session_ms=settings.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        consumer_member_count_max=settings.group_consumer_max_size,
        consumer_assignors=settings.group_consumer_assignors or (DEFAULT_ASSIGNOR,),
        migration_policy=settings.group_consumer_migration_policy,
    )
