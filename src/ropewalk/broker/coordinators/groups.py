"""Groups on this node: which shard a group is in, who looks after it, and its topic, made on first use."""

import asyncio
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from msgspec import Struct

from ropewalk.base.errors import ShardElsewhere, ShardUnavailable, TopicExists
from ropewalk.base.ids import NodeId, Offset, ProducerEpoch, ProducerId, TopicPartition
from ropewalk.base.ports import Clock, Pool, Rng
from ropewalk.base.sharding import shard_of
from ropewalk.broker.coordinators.group_topics import GroupTopics
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.shard import Asked, Shard
from ropewalk.broker.hosting.shards import Shards
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.topics import CreateTopic
from ropewalk.groups.answers import Answer, GroupState, GroupType
from ropewalk.groups.assignors.catalogue import DEFAULT_ASSIGNOR
from ropewalk.groups.commands import Command, Commit, CommitInTransaction, DeleteGroups, DeleteOffsets
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import Event
from ropewalk.groups.settings import GroupSettings
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from ropewalk.metadata.records import Fact, TopicDeleted
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.records.marker import TransactionMarker


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
    def __init__(
        self, topics: Topics, partitions: Partitions, *, node_id: NodeId, pool: Pool, clock: Clock, rng: Rng
    ) -> None:
        self._topics = topics
        self._node_id = node_id
        self._group_topics = GroupTopics(topics.image)
        settings = topics.broker_settings
        self._shards: Shards[Command, Event, Answer] = Shards(
            _GroupsKind(_group_settings(settings), rng, self._group_topics),
            OFFSETS_TOPIC,
            image=topics.image,
            partitions=partitions,
            pool=pool,
            clock=clock,
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
            on_serving=self._forget_deleted_topics,
        )
        self.run = self._shards.run
        self.stop = self._shards.stop
        self.on_clock_moved = self._shards.on_clock_moved

    @property
    def is_loaded(self) -> bool:
        return self._shards.is_loaded

    async def coordinator(self, group_id: str) -> NodeId:
        """The node that looks after a group. Makes the topic if there is none; the caller holds its connection."""
        if not self._shards.count:
            await self._make_topic()
        topic = self._topics.image.topic(OFFSETS_TOPIC)
        leader = topic.partitions[shard_of(group_id, len(topic.partitions))].leader
        if leader is None:
            raise ShardUnavailable(f"nobody leads the shard of group {group_id!r}")
        return leader

    def ask(self, group_id: str, command: Command) -> Asked[Answer]:
        """Raises a shard's error if the group is not looked after here; what the group refuses is in the answer."""
        return self._shard(group_id).ask(command)

    def offsets_partition(self, group_id: str) -> TopicPartition:
        """Where the group's offsets lie: what becomes part of a transaction that commits some."""
        count = self._shards.count
        if not count:
            raise ShardElsewhere(f"{OFFSETS_TOPIC} does not exist yet; find the coordinator first")
        return TopicPartition(OFFSETS_TOPIC, shard_of(group_id, count))

    def verification_needed(
        self, group_id: str, producer_id: ProducerId, producer_epoch: ProducerEpoch
    ) -> VerificationGuard | None:
        """What to bring to `commit_in_transaction`, once the coordinator of the transaction has agreed; None: nothing is needed."""
        return self._shard(group_id).verification_needed(Enrolment(producer_id, producer_epoch))

    def commit_in_transaction(
        self, command: CommitInTransaction, guard: VerificationGuard | None = None
    ) -> Asked[Answer]:
        """The offsets count when the transaction does. Raises as `ask`, and what the partition refuses the producer with."""
        enrolment = Enrolment(ProducerId(command.producer_id), ProducerEpoch(command.producer_epoch))
        return self._shard(command.group_id).ask_in_transaction(command, enrolment, guard)

    def end_transaction(self, partition: int, marker: TransactionMarker) -> "asyncio.Future[None]":
        """Markers for a partition of the offsets' topic come through here, and only here."""
        return self._shards.find(partition).end_transaction(marker)

    def forget(self, group_id: str, token: int) -> None:
        with suppress(ShardElsewhere):  # its waiters were sent away when it went
            self._shard(group_id).forget(token)

    def ask_all(self, command: Command) -> list[Asked[Answer]]:
        """Ask every shard of this node; raises if one of them is being loaded."""
        return [shard.ask(command) for shard in self._shards]

    async def follow(self, records: Sequence[Fact]) -> None:
        """The cluster's facts have changed by `records`, and the partitions have followed them."""
        deleted = self._group_topics.follow(records)
        await self._shards.follow()
        if not any(isinstance(record, TopicDeleted) for record in records):
            return
        for shard in self._shards:
            if shard.is_serving:
                self._forget_deleted_topics(shard, deleted)

    def samples(self) -> Iterator[GroupSample]:
        """Every group that is looked after here. What is seen may be a moment ahead of the log."""
        for shard in self._shards:
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

    def _shard(self, group_id: str) -> Shard[Command, Event, Answer]:
        return self._shards.find(self.offsets_partition(group_id).partition)

    async def _make_topic(self) -> None:
        settings = self._topics.broker_settings
        command = CreateTopic(
            name=OFFSETS_TOPIC,
            partition_count=settings.offsets_topic_num_partitions,
            replication_factor=min(
                settings.offsets_topic_replication_factor, self._topics.image.replica_taker_count
            ),
            settings={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )
        with suppress(TopicExists):  # another client was quicker, which is as good
            await self._topics.create(command)

    def _forget_deleted_topics(
        self, shard: Shard[Command, Event, Answer], deleted: AbstractSet[str] = frozenset()
    ) -> None:
        """Also when a shard begins to serve: the node may have stopped between a deletion and this.

        `deleted`: names that the image may have given to others meanwhile.
        """
        core = shard.core
        assert isinstance(core, GroupsCore)
        known = core.durable.topics()
        gone = known - self._topics.image.topics.keys() | known & deleted
        if gone:
            shard.decide(lambda _core, _now_ms: core.on_topics_deleted(sorted(gone)))


class _GroupsKind:
    def __init__(self, settings: GroupSettings, rng: Rng, topics: GroupTopics) -> None:
        self._settings = settings
        self._rng = rng
        self._topics = topics
        self.encode = encode_event
        self.decode = decode_event

    def new_core(self) -> GroupsCore:
        return GroupsCore(self._settings, self._rng, self._topics)

    def only_writes(self, command: Command) -> bool:
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
