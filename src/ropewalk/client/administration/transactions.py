"""Transactions as an administrator sees them: at their coordinators, and in the partitions they write to.

What a reader could get wrong
    `abort` takes the transactional id over, as a producer that begins would: whoever had it is fenced, and its transaction
    aborted. Wait for the outcome; the coordinator has markers written first.
    A transaction hangs if a partition waits for an end that no coordinator is going to write. Nothing but
    `abort_in_partition` ends it. It is to be used for nothing else: it tears a transaction that goes on elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.administration import open_transactions
from ropewalk.client.administration.open_transactions import OpenTransaction
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.together import together
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.coordinators import CoordinatorKind, Coordinators
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_transactions, init_producer_id, list_transactions

ONGOING: Final = "Ongoing"
_OPEN_STATES: Final = frozenset({ONGOING, "PrepareCommit", "PrepareAbort"})


class ListedTransaction(Struct, frozen=True, gc=False):
    transactional_id: str
    state: str
    producer_id: int
    coordinator: NodeId


class DescribedTransaction(Struct, frozen=True):
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int
    """-1 if there has been no transaction since its producer began."""
    partitions: tuple[TopicPartition, ...]
    """In order; none where no transaction is open."""
    coordinator: str

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN_STATES


class Transactions:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._session = client.session
        self._coordinators = Coordinators(client.session, CoordinatorKind.TRANSACTION)

    async def list(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
        deadline_ms: float | None = None,
    ) -> list[ListedTransaction]:
        """Transactional ids that meet all that is given, from all brokers, by name."""
        until_ms = self._until(deadline_ms)
        request = list_transactions.ListTransactionsRequest(
            tuple(states), tuple(producer_ids), longer_than_ms, pattern
        )

        async def ask(node: NodeId) -> list[ListedTransaction]:
            connection = await self._session.cluster.connection(node, deadline_ms=until_ms)
            response = await connection.call(list_transactions.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=f"ListTransactions at broker {node}")
            return [
                ListedTransaction(each.transactional_id, each.transaction_state, each.producer_id, node)
                for each in response.transaction_states
            ]

        async def once() -> list[ListedTransaction]:
            view = await self._session.cluster.metadata([], deadline_ms=until_ms)
            answers = await together([ask(broker.node_id) for broker in view.brokers])
            return sorted(
                (each for answer in answers for each in answer), key=lambda each: each.transactional_id
            )

        return await self._session.attempt((), once, deadline_ms=until_ms)

    async def describe(
        self, transactional_id: str, *, deadline_ms: float | None = None
    ) -> DescribedTransaction:
        """Raises TRANSACTIONAL_ID_NOT_FOUND for one that is not known."""
        until_ms = self._until(deadline_ms)

        async def once(connection: Connection) -> DescribedTransaction:
            request = describe_transactions.DescribeTransactionsRequest((transactional_id,))
            response = await connection.call(describe_transactions.API, request, deadline_ms=until_ms)
            if len(response.transaction_states) != 1:
                raise ProtocolError("DescribeTransactions answered for something else")
            (answer,) = response.transaction_states
            if answer.error_code != ErrorCode.NONE:
                raise RemoteError(answer.error_code, about=transactional_id)
            return DescribedTransaction(
                transactional_id,
                answer.transaction_state,
                answer.producer_id,
                answer.producer_epoch,
                answer.transaction_timeout_ms,
                answer.transaction_start_time_ms,
                tuple(
                    sorted(
                        TopicPartition(topic.name, index)
                        for topic in answer.topics
                        for index in topic.partitions
                    )
                ),
                str(connection.address),
            )

        return await self._coordinators.ask(transactional_id, once, deadline_ms=until_ms)

    async def abort(self, transactional_id: str, *, deadline_ms: float | None = None) -> bool:
        """Fence the producer and have its transaction aborted; False if it has none under way, which changes nothing."""
        until_ms = self._until(deadline_ms)
        described = await self.describe(transactional_id, deadline_ms=until_ms)
        if described.state != ONGOING:
            return False

        async def once(connection: Connection) -> None:
            request = init_producer_id.InitProducerIdRequest(transactional_id, described.timeout_ms)
            response = await connection.call(init_producer_id.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=transactional_id)

        await self._coordinators.ask(transactional_id, once, deadline_ms=until_ms)
        return True

    async def open_in(
        self, partitions: Iterable[TopicPartition], *, deadline_ms: float | None = None
    ) -> Sequence[OpenTransaction]:
        """What these partitions wait for the end of, in order. A partition that is gone or has no leader is left out."""
        return await open_transactions.open_in(
            self._session, frozenset(partitions), deadline_ms=self._until(deadline_ms)
        )

    async def hanging_in(
        self, partitions: Iterable[TopicPartition], *, deadline_ms: float | None = None
    ) -> Sequence[OpenTransaction]:
        """Those of the open transactions that no coordinator will end.

        The partitions are looked at first and last: what was ended meanwhile was not hanging.
        """
        until_ms = self._until(deadline_ms)
        opened = await self.open_in(partitions, deadline_ms=until_ms)
        if not opened:
            return []
        producer_ids = {each.producer_id for each in opened}
        listed = await self.list(states=_OPEN_STATES, deadline_ms=until_ms)
        described = await together(
            [
                self.describe(each.transactional_id, deadline_ms=until_ms)
                for each in listed
                if each.producer_id in producer_ids
            ]
        )
        suspects = without_coordinator(opened, described)
        still_open = await self.open_in({each.partition for each in suspects}, deadline_ms=until_ms)
        known = {(each.partition, each.producer_id, each.first_offset) for each in still_open}
        return [each for each in suspects if (each.partition, each.producer_id, each.first_offset) in known]

    async def abort_in_partition(
        self, transaction: OpenTransaction, *, deadline_ms: float | None = None
    ) -> RemoteError | None:
        """End a transaction in one partition, without its coordinator; see the top of this page."""
        try:
            await open_transactions.abort(self._session, transaction, deadline_ms=self._until(deadline_ms))
        except RemoteError as error:
            return error
        return None

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms


def without_coordinator(
    opened: Sequence[OpenTransaction], described: Sequence[DescribedTransaction]
) -> list[OpenTransaction]:
    """Those that none of the transactions at their coordinators accounts for."""
    ended_there: Mapping[int, set[TopicPartition]] = {
        each.producer_id: set(each.partitions) for each in described if each.is_open
    }
    return [each for each in opened if each.partition not in ended_there.get(each.producer_id, ())]
