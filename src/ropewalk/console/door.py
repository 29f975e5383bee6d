"""The console on an HTTP door: an address below which everything is its own, and nothing in memory until somebody looks.

What a reader could get wrong
    Jinja2, the pages and their files are imported and read with the first request, off the event loop: a node that nobody looks at starts as
    quickly, and is as small, as one without a console.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ropewalk.base.ports import Clock, Network, Pool, Rng
from ropewalk.console.gate import Place
from ropewalk.console.options import ConsoleOptions
from ropewalk.console.reach import Reach
from ropewalk.http1.message import Answer, Request, StreamedAnswer, Visitor
from ropewalk.runtime.bell import Bell

if TYPE_CHECKING:
    from ropewalk.console.application import Application
    from ropewalk.console.rendering import Rendering

ROOT: Final = "/console/"
_SWEEP_S: Final = 5.0


class Console:
    def __init__(
        self,
        *,
        clock: Clock,
        rng: Rng,
        pool: Pool,
        network: Network,
        place: Place,
        port: Callable[[], int],
        reach: Reach,
        options: ConsoleOptions,
    ) -> None:
        """`port` is asked when the door is open: it may be any free one."""
        self._clock = clock
        self._rng = rng
        self._pool = pool
        self._network = network
        self._place = place
        self._port = port
        self._reach = reach
        self._options = options
        self._application: Application | None = None
        self._loading: asyncio.Future[Rendering] | None = None
        self._wake = Bell()

    async def run(self) -> None:
        """Look after sessions and clients for as long as the door is open, then let go of everything."""
        try:
            while self._application is None:
                await self._wake.wait()
            while True:
                await asyncio.sleep(_SWEEP_S)
                self._application.sweep()
        finally:
            if self._application is not None:
                await self._application.stop()

    async def lead(self, _request: Request) -> Answer:
        """To the first page."""
        return Answer(HTTPStatus.SEE_OTHER, headers=(("location", ROOT),))

    async def answer(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        application = self._application
        if application is None:
            if self._loading is None:
                self._loading = self._pool.run(_load)
            application = self._begin(await self._loading)
        return await application.answer(request, visitor)

    def _begin(self, rendering: "Rendering") -> "Application":
        if self._application is None:
            from ropewalk.console.application import Application  # loaded a moment ago, in the pool

            self._application = Application(
                clock=self._clock,
                rng=self._rng,
                pool=self._pool,
                network=self._network,
                place=self._place,
                port=self._port(),
                reach=self._reach,
                options=self._options,
                rendering=rendering,
            )
            self._wake.ring()
        return self._application


def _load() -> "Rendering":
    from ropewalk.console.application import Application
    from ropewalk.console.rendering import Rendering

    assert Application is not None, "imported here for the sake of the time that it takes"
    return Rendering()
