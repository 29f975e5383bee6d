"""Transactions on this node: which shard a transactional id is in, who looks after it, and its topic, made on first use."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ropewalk.base.errors import ShardElsewhere, ShardUnavailable, TopicExists
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.base.limits import TRANSACTION_PATIENCE_MS
from ropewalk.base.ports import Clock, Pool
from ropewalk.base.sharding import shard_of
from ropewalk.broker.cluster.producer_ids import ProducerIds
from ropewalk.broker.coordinators.markers import Finisher, TransactionShard
from ropewalk.broker.hosting.shard import Asked
from ropewalk.broker.hosting.shards import Shards
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.internal_topics import TRANSACTIONS_TOPIC
from ropewalk.metadata.records import Fact
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.transactions.answers import Answer, Ended, ProducerIdWanted, ProducerInitialised
from ropewalk.transactions.commands import (
    AddPartitions,
    Command,
    EndTransaction,
    InitProducer,
    MarkersWritten,
)
from ropewalk.transactions.core import TransactionsCore
from ropewalk.transactions.event_codec import decode_event, encode_event
from ropewalk.transactions.events import Event, TransactionState
from ropewalk.transactions.settings import TransactionSettings


class Transactions:
    def __init__(
        self,
        topics: Topics,
        partitions: Partitions,
        producer_ids: ProducerIds,
        finisher: Finisher,
        *,
        pool: Pool,
        clock: Clock,
    ) -> None:
        self._topics = topics
        self._producer_ids = producer_ids
        settings = topics.broker_settings
        self._shards: Shards[Command, Event, Answer] = Shards(
            _TransactionsKind(_transaction_settings(settings)),
            TRANSACTIONS_TOPIC,
            image=topics.image,
            partitions=partitions,
            pool=pool,
            clock=clock,
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
            on_serving=finisher.watch,
        )
        self.run = self._shards.run
        self.stop = self._shards.stop
        self.on_clock_moved = self._shards.on_clock_moved

    @property
    def is_loaded(self) -> bool:
        return self._shards.is_loaded

    async def coordinator(self, transactional_id: str) -> NodeId:
        """The node that looks after a transactional id. Makes the topic if there is none; the caller holds its connection."""
        if not self._shards.count:
            await self._make_topic()
        return self.leader(transactional_id)

    def leader(self, transactional_id: str) -> NodeId:
        """As `coordinator`, if there is one already."""
        topic = self._topics.image.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            raise ShardUnavailable(f"{TRANSACTIONS_TOPIC} does not exist yet")
        leader = topic.partitions[shard_of(transactional_id, len(topic.partitions))].leader
        if leader is None:
            raise ShardUnavailable(f"nobody leads the shard of transactional id {transactional_id!r}")
        return leader

    def ask(self, transactional_id: str, command: Command) -> Asked[Answer]:
        """Raises a shard's error if the id is not looked after here; what is refused is in the answer."""
        return self._shard(transactional_id).ask(command)

    def ask_all(self, command: Command) -> list[Asked[Answer]]:
        """Ask every shard of this node; raises if one of them is being loaded."""
        return [shard.ask(command) for shard in self._shards]

    async def init_producer(self, command: InitProducer) -> ProducerInitialised:
        """Brings a producer id if one is wanted. May be awaited where there is no task, as by a handler."""

        def make(fresh: ProducerId | None) -> InitProducer:
            return InitProducer(
                transactional_id=command.transactional_id,
                timeout_ms=command.timeout_ms,
                producer_id=command.producer_id,
                producer_epoch=command.producer_epoch,
                fresh_producer_id=fresh,
                patience_ms=TRANSACTION_PATIENCE_MS,
            )

        answer = await self._with_fresh_id(command.transactional_id, make)
        assert isinstance(answer, ProducerInitialised)
        return answer

    async def end(self, command: EndTransaction) -> Ended:
        """As `init_producer`: the last epoch of a producer id ends with its transaction."""

        def make(fresh: ProducerId | None) -> EndTransaction:
            return EndTransaction(
                transactional_id=command.transactional_id,
                producer_id=command.producer_id,
                producer_epoch=command.producer_epoch,
                committed=command.committed,
                bumps_epoch=command.bumps_epoch,
                fresh_producer_id=fresh,
            )

        answer = await self._with_fresh_id(command.transactional_id, make)
        assert isinstance(answer, Ended)
        return answer

    async def follow(self, _records: Sequence[Fact]) -> None:
        """The cluster's facts have changed, and the partitions have followed them."""
        await self._shards.follow()

    def states(self) -> Iterator[TransactionState]:
        """Of every id that is looked after here. What is seen may be a moment ahead of the log."""
        for shard in self._shards:
            core = shard.core
            if isinstance(core, TransactionsCore):
                for record in list(core.transactions.values()):
                    yield record.state

    async def _with_fresh_id(
        self, transactional_id: str, make: Callable[[ProducerId | None], Command]
    ) -> Answer:
        answer = await self.ask(transactional_id, make(None)).answer
        if isinstance(answer, ProducerIdWanted):
            fresh = await self._producer_ids.next()
            answer = await self.ask(transactional_id, make(fresh)).answer
            assert not isinstance(answer, ProducerIdWanted), "it was brought one"
        return answer

    def _shard(self, transactional_id: str) -> TransactionShard:
        count = self._shards.count
        if not count:
            raise ShardElsewhere(f"{TRANSACTIONS_TOPIC} does not exist yet; find the coordinator first")
        return self._shards.find(shard_of(transactional_id, count))

    async def _make_topic(self) -> None:
        settings = self._topics.broker_settings
        replication_factor = min(
            settings.transaction_state_log_replication_factor, self._topics.image.replica_taker_count
        )
        command = CreateTopic(
            name=TRANSACTIONS_TOPIC,
            partition_count=settings.transaction_state_log_num_partitions,
            replication_factor=replication_factor,
            settings={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
        with suppress(TopicExists):  # another client was quicker, which is as good
            await self._topics.create(command)


class _TransactionsKind:
    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self.encode = encode_event
        self.decode = decode_event

    def new_core(self) -> TransactionsCore:
        return TransactionsCore(self._settings)

    def only_writes(self, command: Command) -> bool:
        return isinstance(command, InitProducer | AddPartitions | EndTransaction | MarkersWritten)


def _transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    return TransactionSettings(
        timeout_ms_max=settings.transaction_max_timeout_ms,
        expiration_ms=settings.transactional_id_expiration_ms,
    )
