"""Something to wait at until there is news."""

import asyncio
from typing import Final

NO_WAIT_S: Final = 0.001
"""How long to wait where there is something already: whoever asks for the same again and again must not keep the loop busy."""


class Bell:
    """Wakes whoever waits. Nothing is remembered: look again after waking, and before waiting."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[bool], None] = {}

    def ring(self) -> None:
        for waiter in self._waiting:
            _wake(waiter, True)

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Whether it rang before the time was up."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiting[waiter] = None
        timer = None if timeout_ms is None else loop.call_later(timeout_ms / 1000, _wake, waiter, False)
        try:
            return await waiter
        finally:
            del self._waiting[waiter]
            if timer is not None:
                timer.cancel()


def _wake(waiter: "asyncio.Future[bool]", rang: bool) -> None:
    if not waiter.done():
        waiter.set_result(rang)
