"""Receives that wait for a message, in order of arrival."""

from msgspec import Struct

from ropewalk.queues.commands import Receive


class Waiter(Struct):
    token: int
    command: Receive
    due_ms: int
    """The log's time: then it is answered, with nothing."""
    is_overdue: bool = False
    """Its own time is over, but the log has not been read yet."""
    gathers_until_ms: int | None = None
    """The log's time: until then more is read for it; None: there was nothing for it yet, or nothing to read."""


class Waiting:
    def __init__(self) -> None:
        self._waiters: dict[int, Waiter] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Waiter) -> None:
        self._waiters[waiter.token] = waiter

    def first(self) -> Waiter:
        return next(iter(self._waiters.values()))

    def get(self, token: int) -> Waiter | None:
        return self._waiters.get(token)

    def is_due(self, token: int, due_ms: int) -> bool:
        """Whether this due time still counts for the receive."""
        waiter = self._waiters.get(token)
        return waiter is not None and due_ms in (waiter.due_ms, waiter.gathers_until_ms)

    def remove(self, token: int) -> None:
        self._waiters.pop(token, None)

    def overdue(self) -> list[Waiter]:
        return [waiter for waiter in self._waiters.values() if waiter.is_overdue]

    def all(self) -> list[Waiter]:
        return list(self._waiters.values())
