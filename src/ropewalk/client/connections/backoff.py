"""How long to wait before the next attempt: doubling, bounded, with jitter so that clients do not march in step."""

import asyncio

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ports import Clock, Rng


class Backoff:
    """One call's attempts. `wait` sleeps before the next, or gives the last error back when time is up."""

    __slots__ = ("_attempt_count", "_clock", "_deadline_ms", "_delay_ms", "_delay_ms_max", "_rng")

    def __init__(
        self, clock: Clock, rng: Rng, *, delay_ms: int, delay_ms_max: int, deadline_ms: float
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._delay_ms = float(delay_ms)
        self._delay_ms_max = delay_ms_max
        self._deadline_ms = deadline_ms
        self._attempt_count = 0

    @property
    def attempt_count(self) -> int:
        """How many attempts have failed so far."""
        return self._attempt_count

    async def wait(self, error: RopewalkError) -> None:
        """Raises `error`, the reason for waiting, when the deadline would pass during the wait."""
        self._attempt_count += 1
        delay_ms = self._delay_ms * self._rng.uniform(0.8, 1.2)
        self._delay_ms = min(2 * self._delay_ms, self._delay_ms_max)
        if self._clock.monotonic_ms() + delay_ms >= self._deadline_ms:
            raise error
        await asyncio.sleep(delay_ms / 1000)
