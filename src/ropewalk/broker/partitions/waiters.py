"""Those who wait until a partition has come as far as they need, in the order of their offsets."""

import asyncio
from collections import deque
from math import inf

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset


class _Waiting(Struct):
    end_offset: Offset
    deadline_ms: float
    reached: asyncio.Future[None]


class Waiters:
    __slots__ = ("_expires_at_ms", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._expires_at_ms = inf
        """Nobody's time is over before this."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end_offset: Offset, deadline_ms: float) -> asyncio.Future[None]:
        """Done when `end_offset` has been reached."""
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._expires_at_ms = min(self._expires_at_ms, deadline_ms)
        waiting, index = self._waiting, len(self._waiting)
        while (
            index and waiting[index - 1].end_offset > end_offset
        ):  # those who write come in order, others may not
            index -= 1
        waiting.insert(index, _Waiting(end_offset, deadline_ms, reached))
        return reached

    @property
    def nearest_offset(self) -> Offset | None:
        """The least that somebody waits for."""
        return self._waiting[0].end_offset if self._waiting else None

    def release(self, offset: Offset) -> None:
        """Everything up to `offset` has been reached."""
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= offset:
            reached = waiting.popleft().reached
            if not reached.done():  # its time may be over
                reached.set_result(None)

    def expire(self, now_ms: float, reason: RopewalkError) -> None:
        """Send away those whose time is over, wherever they stand: each has a time of its own."""
        if now_ms < self._expires_at_ms:
            return
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            if each.deadline_ms <= now_ms:
                _fail(each, reason)
            else:
                self._waiting.append(each)
        self._expires_at_ms = min((each.deadline_ms for each in self._waiting), default=inf)

    def fail(self, reason: RopewalkError) -> None:
        """Send everybody away."""
        while self._waiting:
            _fail(self._waiting.popleft(), reason)


def _fail(waiting: _Waiting, reason: RopewalkError) -> None:
    if not waiting.reached.done():
        waiting.reached.set_exception(reason)
        waiting.reached.exception()  # whoever waited may be gone with its connection, and asyncio would complain of that
