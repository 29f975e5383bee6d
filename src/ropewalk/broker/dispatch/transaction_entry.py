"""Permission for a transaction to write to partitions, had from its coordinator wherever that is (KIP-890).

What a reader could get wrong
    What is asked of another node is gathered, one request at a time, so nothing waits there: an answer that waited for one transaction
    would delay those of all others. Where the former transaction is still being finished, the question is put again after a moment,
    from here.
    Nothing here needs a task: handlers await it directly.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct, structs

from ropewalk.base import errors
from ropewalk.base.errors import NodeStopping, RopewalkError, ShardUnavailable
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import (
    TRANSACTION_ENTRIES_TOGETHER_MAX,
    TRANSACTION_ENTRY_MS_MAX,
    TRANSACTION_ENTRY_RETRY_MS,
    TRANSACTION_PATIENCE_MS,
)
from ropewalk.base.ports import Clock
from ropewalk.broker.hosting.shard import Asked
from ropewalk.broker.peers.gathered_calls import GatheredCalls
from ropewalk.broker.peers.peers import Lane, PeerLinks
from ropewalk.client.errors import RemoteError
from ropewalk.runtime.errands import Errands
from ropewalk.transactions import errors as transactions
from ropewalk.transactions.answers import Answer, PartitionsAdded
from ropewalk.transactions.commands import AddPartitions, Command
from ropewalk.transactions.errors import ConcurrentTransactions
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import add_partitions_to_txn as wire

Outcomes = dict[TopicPartition, RopewalkError | None]
"""None where the transaction may write."""


class Coordinators(Protocol):
    """Who looks after transactional ids, and the way to those that are looked after here."""

    def leader(self, transactional_id: str) -> NodeId:
        """Raises a shard's error where nobody does at present."""

    def ask(self, transactional_id: str, command: Command) -> Asked[Answer]: ...


class _Question(Struct, frozen=True):
    command: AddPartitions
    answer: "asyncio.Future[Outcomes]"


class TransactionEntry:
    def __init__(
        self,
        coordinators: Coordinators,
        errands: Errands,
        clock: Clock,
        *,
        node_id: NodeId,
        links: PeerLinks | None,
    ) -> None:
        """Without links on a node that is alone."""
        self._coordinators = coordinators
        self._clock = clock
        self._node_id = node_id
        self._links = links
        self._calls: GatheredCalls[_Question] = GatheredCalls(
            self._send, errands.begin, items_max=TRANSACTION_ENTRIES_TOGETHER_MAX
        )

    async def join(self, command: AddPartitions) -> Outcomes:
        """One outcome for each partition of the command, which is added to the transaction or only verified."""
        deadline_ms = self._clock.monotonic_ms() + TRANSACTION_PATIENCE_MS
        while True:
            try:
                outcomes = await self._ask(command)
            except RopewalkError as error:
                return dict.fromkeys(command.partitions, error)
            is_early = any(isinstance(each, ConcurrentTransactions) for each in outcomes.values())
            if not is_early or self._clock.monotonic_ms() >= deadline_ms:
                return outcomes
            await _pause(TRANSACTION_ENTRY_RETRY_MS)

    def _ask(self, command: AddPartitions) -> "asyncio.Future[Outcomes]":
        coordinator = self._coordinators.leader(command.transactional_id)
        answer: asyncio.Future[Outcomes] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_forget)
        if coordinator == self._node_id:
            patient = structs.replace(command, patience_ms=TRANSACTION_PATIENCE_MS)
            asked = self._coordinators.ask(command.transactional_id, patient)
            asked.answer.add_done_callback(lambda done: _hand_on(done, command, answer))
        else:
            self._calls.add(coordinator, _Question(command, answer))
        return answer

    async def _send(self, node_id: NodeId, questions: list[_Question]) -> None:
        try:
            answers = await self._call(node_id, questions)
        except RopewalkError as error:  # what it has added is added; asking again does no harm
            reason = ShardUnavailable(
                f"node {node_id}, which looks after the transaction, was not heard: {error}"
            )
            answers = [dict.fromkeys(each.command.partitions, reason) for each in questions]
        except asyncio.CancelledError:
            for question in questions:
                if not question.answer.done():
                    question.answer.set_exception(NodeStopping("the node is shutting down"))
                    question.answer.exception()  # whoever asked may be gone with its connection
            raise
        for question, outcomes in zip(questions, answers, strict=True):
            if not question.answer.done():
                question.answer.set_result(outcomes)

    async def _call(self, node_id: NodeId, questions: Sequence[_Question]) -> list[Outcomes]:
        assert self._links is not None, "a node that is alone looks after everything itself"
        request = wire.AddPartitionsToTxnRequest(tuple(_encoded(each.command) for each in questions))
        response = await self._links.to_node(node_id, Lane.TRANSACTIONS).call(
            wire.API, request, deadline_ms=self._clock.monotonic_ms() + TRANSACTION_ENTRY_MS_MAX
        )
        if response.error_code:
            raise _error(response.error_code)
        codes: dict[str, dict[TopicPartition, int]] = {}
        for result in response.results_by_transaction:
            found = codes.setdefault(result.transactional_id, {})
            for topic in result.topic_results:
                for partition in topic.results_by_partition:
                    found[TopicPartition(topic.name, partition.index)] = partition.partition_error_code
        return [_decoded(each.command, codes.get(each.command.transactional_id, {})) for each in questions]


def _encoded(command: AddPartitions) -> wire.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for partition in command.partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return wire.AddPartitionsToTxnTransaction(
        command.transactional_id,
        command.producer_id,
        command.producer_epoch,
        command.verify_only,
        tuple(wire.AddPartitionsToTxnTopic(name, tuple(indexes)) for name, indexes in topics.items()),
    )


def _decoded(command: AddPartitions, codes: dict[TopicPartition, int]) -> Outcomes:
    return {
        partition: _error(code) if (code := codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)) else None
        for partition in command.partitions
    }


_ERRORS: Final[dict[ErrorCode, type[RopewalkError]]] = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: transactions.UnknownProducerMapping,
    ErrorCode.PRODUCER_FENCED: transactions.TransactionalProducerFenced,
    ErrorCode.CONCURRENT_TRANSACTIONS: ConcurrentTransactions,
    ErrorCode.TRANSACTION_ABORTABLE: transactions.NotInTransaction,
    ErrorCode.INVALID_TXN_STATE: transactions.WrongTransactionState,
    ErrorCode.NOT_COORDINATOR: errors.ShardElsewhere,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: errors.ShardLoading,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: errors.ShardUnavailable,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: errors.UnknownPartition,
}


def _error(code: int) -> RopewalkError:
    """What the coordinator refused with before it was put into a code."""
    remote = RemoteError(code)
    kind = _ERRORS.get(remote.code)
    return ShardUnavailable(str(remote)) if kind is None else kind(remote.message)


def _hand_on(
    asked: "asyncio.Future[Answer]", command: AddPartitions, answer: "asyncio.Future[Outcomes]"
) -> None:
    if answer.done():
        return
    error = asked.exception()
    if error is not None:
        answer.set_exception(error)
        answer.exception()  # whoever asked may be gone with its connection
        return
    added = asked.result()
    assert isinstance(added, PartitionsAdded)
    answer.set_result(dict(zip(command.partitions, added.partitions, strict=True)))


def _forget(answer: "asyncio.Future[Outcomes]") -> None:
    """A refusal that nobody came for, since its client has gone, is not worth asyncio's complaint."""
    if not answer.cancelled():
        answer.exception()


def _pause(delay_ms: float) -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_later(delay_ms / 1000, over.set_result, None)
    return over
