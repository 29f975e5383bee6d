"""Do a thing once for everyone who asks for it at the same time.

The first caller does the work; those who come meanwhile wait for its outcome. When the first is cancelled,
one of the others takes over, so that nobody inherits a cancellation that was not theirs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from ropewalk.base.errors import RopewalkError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    __slots__ = ("_flights",)

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Future[T | RopewalkError | None]] = {}

    async def run(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        while (flight := self._flights.get(key)) is not None:
            outcome = await asyncio.shield(flight)
            if isinstance(outcome, RopewalkError):
                raise outcome
            if outcome is not None:
                return outcome
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        # The outcome travels as a value: an exception set on a future nobody awaits would be logged as lost.
        outcome = None
        try:
            outcome = await work()
        except RopewalkError as error:
            outcome = error
            raise
        finally:
            del self._flights[key]
            flight.set_result(outcome)
        return outcome
