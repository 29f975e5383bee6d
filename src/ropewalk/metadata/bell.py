"""Something to wait at until there is news."""

import asyncio
from typing import Final

NO_WAIT_S: Final = 0.001
"""How long to wait where there is something already: whoever asks for the same again and again must not keep the loop busy."""


class Bell:
    """Wakes whoever waits. Nothing is remembered: look again after waking, and before waiting."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], None] = {}

    def ring(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout_ms: float) -> bool:
        """Whether it rang before the time was up."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting[waiter] = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(waiter, None)
        return True
