"""Who waits: producers and partitions for a transaction to be finished, the finisher for one to be prepared."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.transactions.commands import AddPartitions, InitProducer

Patient: TypeAlias = InitProducer | AddPartitions


class Waiter(Struct, frozen=True):
    token: int
    command: Patient
    due_at_ms: int
    """When the patience has run out."""


class Waiting:
    def __init__(self) -> None:
        self._waiters: dict[str, dict[int, Waiter]] = {}
        """By transactional id, in the order in which they came."""
        self._by_token: dict[int, Waiter] = {}

    def add(self, waiter: Waiter) -> None:
        self._waiters.setdefault(waiter.command.transactional_id, {})[waiter.token] = waiter
        self._by_token[waiter.token] = waiter

    def remove(self, token: int) -> Waiter | None:
        waiter = self._by_token.pop(token, None)
        if waiter is not None:
            transactional_id = waiter.command.transactional_id
            waiters = self._waiters[transactional_id]
            del waiters[token]
            if not waiters:
                del self._waiters[transactional_id]
        return waiter

    def take(self, transactional_id: str) -> list[Waiter]:
        """All that wait for this transactional id; they wait no longer."""
        waiters = list(self._waiters.pop(transactional_id, {}).values())
        for waiter in waiters:
            del self._by_token[waiter.token]
        return waiters
