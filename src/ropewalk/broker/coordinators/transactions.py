"""Transactions on this node: which shard a transactional id is in, who looks after it, and its topic, made on first use."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ropewalk.base.ids import ProducerId
from ropewalk.base.limits import TRANSACTION_PATIENCE_MS
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.cluster.producer_ids import ProducerIds
from ropewalk.broker.coordinators.markers import Finisher
from ropewalk.broker.hosting.host import Host
from ropewalk.broker.hosting.keyed import Keyed
from ropewalk.broker.hosting.shard import Asked
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.internal_topics import TRANSACTIONS_TOPIC
from ropewalk.metadata.records import Fact
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.transactions.answers import Answer, Ended, ProducerIdWanted, ProducerInitialised
from ropewalk.transactions.commands import (
    AddPartitions,
    AnyCommand,
    Command,
    EndTransaction,
    InitProducer,
    MarkersWritten,
)
from ropewalk.transactions.core import TransactionsCore
from ropewalk.transactions.event_codec import decode_event, encode_event
from ropewalk.transactions.events import Event, TransactionState
from ropewalk.transactions.settings import TransactionSettings

T = TypeVar("T")


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
        self._producer_ids = producer_ids
        self._host: Host[AnyCommand, Event, Answer] = Host(
            _TransactionsKind(_transaction_settings(topics.broker_settings)),
            topics,
            partitions,
            pool=pool,
            clock=clock,
            on_serving=finisher.watch,
        )
        self.run = self._host.run
        self.stop = self._host.stop
        self.on_clock_moved = self._host.on_clock_moved
        self.coordinator = self._host.coordinator
        self.leader = self._host.leader

    @property
    def is_loaded(self) -> bool:
        return self._host.is_loaded

    def ask(self, transactional_id: str, command: Command[T]) -> Asked[T]:
        """Raises a shard's error if the id is not looked after here; what is refused is in the answer."""
        return self._host.ask(transactional_id, command)

    def ask_all(self, command: Command[T]) -> list[Asked[T]]:
        """Ask every shard of this node; raises if one of them is being loaded."""
        return self._host.ask_all(command)

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

        return await self._with_fresh_id(command.transactional_id, make)

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

        return await self._with_fresh_id(command.transactional_id, make)

    async def follow(self, _records: Sequence[Fact]) -> None:
        """The cluster's facts have changed, and the partitions have followed them."""
        await self._host.follow()

    def states(self) -> Iterator[TransactionState]:
        """Of every id that is looked after here. What is seen may be a moment ahead of the log."""
        for shard in self._host:
            core = shard.core
            if isinstance(core, TransactionsCore):
                for record in list(core.transactions.values()):
                    yield record.state

    async def _with_fresh_id(
        self, transactional_id: str, make: Callable[[ProducerId | None], Command[T | ProducerIdWanted]]
    ) -> T:
        answer = await self.ask(transactional_id, make(None)).answer
        if isinstance(answer, ProducerIdWanted):
            fresh = await self._producer_ids.next()
            answer = await self.ask(transactional_id, make(fresh)).answer
            assert not isinstance(answer, ProducerIdWanted), "it was brought one"
        return answer


class _TransactionsKind:
    keys_called = "transactional id"
    topic = TRANSACTIONS_TOPIC
    log: Keyed[Event] = Keyed(encode_event, decode_event)

    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings

    def new_topic(self, settings: BrokerSettings) -> CreateTopic:
        return CreateTopic(
            name=TRANSACTIONS_TOPIC,
            partition_count=settings.transaction_state_log_num_partitions,
            replication_factor=settings.transaction_state_log_replication_factor,
            settings={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )

    def new_core(self) -> TransactionsCore:
        return TransactionsCore(self._settings)

    def only_writes(self, command: AnyCommand) -> bool:
        return isinstance(command, InitProducer | AddPartitions | EndTransaction | MarkersWritten)


def _transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    return TransactionSettings(
        timeout_ms_max=settings.transaction_max_timeout_ms,
        expiration_ms=settings.transactional_id_expiration_ms,
    )
