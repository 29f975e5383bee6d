"""Transactional ids as administrators see them."""

from collections.abc import Callable, Mapping, Sequence

from ropewalk.base.patterns import compile_pattern
from ropewalk.transactions.answers import (
    DescribedTransaction,
    ListedTransaction,
    TransactionsDescribed,
    TransactionsListed,
)
from ropewalk.transactions.commands import ListTransactions
from ropewalk.transactions.errors import InvalidPattern, TransactionError, UnknownTransactionalId
from ropewalk.transactions.events import TransactionRecorded, TransactionState
from ropewalk.transactions.identity import check_transactional_id


def describe(
    transactions: Mapping[str, TransactionRecorded], transactional_ids: Sequence[str]
) -> TransactionsDescribed:
    return TransactionsDescribed(tuple(_described(transactions, name) for name in transactional_ids))


def list_matching(
    transactions: Mapping[str, TransactionRecorded], command: ListTransactions, now_ms: int
) -> TransactionsListed:
    """By name. A state that does not exist matches nothing, and is reported."""
    names = {state.value: state for state in TransactionState}
    states = {names[name] for name in command.states if name in names}
    producer_ids = frozenset(command.producer_ids)
    matches = _matcher(command.pattern)
    listed = [
        ListedTransaction(record.transactional_id, record.producer_id, record.state)
        for record in transactions.values()
        if (not command.states or record.state in states)
        and (not producer_ids or record.producer_id in producer_ids)
        and (command.longer_than_ms < 0 or _has_run(record, now_ms) > command.longer_than_ms)
        and (matches is None or matches(record.transactional_id))
    ]
    listed.sort(key=lambda entry: entry.transactional_id)
    return TransactionsListed(tuple(listed), tuple(name for name in command.states if name not in names))


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    try:
        return compile_pattern(pattern)
    except ValueError as problem:
        raise InvalidPattern(f"{pattern!r} is no regular expression: {problem}") from problem


def _has_run(record: TransactionRecorded, now_ms: int) -> int:
    """How long ago an open transaction began; -1 if none is open."""
    return now_ms - record.started_at_ms if record.state.is_open else -1


def _described(
    transactions: Mapping[str, TransactionRecorded], transactional_id: str
) -> DescribedTransaction | TransactionError:
    try:
        check_transactional_id(transactional_id)
    except TransactionError as refusal:
        return refusal
    record = transactions.get(transactional_id)
    if record is None:
        return UnknownTransactionalId(f"there is no transactional id {transactional_id!r}")
    return DescribedTransaction(
        transactional_id=transactional_id,
        state=record.state,
        timeout_ms=record.timeout_ms,
        started_at_ms=record.started_at_ms,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        partitions=record.partitions,
    )
