"""The processes of a local cluster: started, watched, and ended in order.

What a reader could get wrong
    A process that ends by itself is reported and left alone, since somebody may have killed it to see what happens; with
    `restarts` it is started again. The others go on.
    Whatever ends the block of `running`, no process outlives it: those that were not stopped are killed.
"""

import asyncio
import shlex
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.local.child import Child, how_it_ended
from ropewalk.local.console import Console
from ropewalk.local.errors import DidNotStart

STOP_S: Final = 60.0
"""What a process may take to make everything durable and to hand over; then it is killed."""

_ASK_EVERY_S: Final = 0.1
_RESTART_AFTER_S: Final = 1.0
"""A process that cannot start must not keep the machine busy with trying."""


class Seat:
    """A place in the cluster, and the process that has it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = command
        self.child: Child | None = None
        self.gone = asyncio.Event()
        """The process has ended and no other will be started."""


class Supervisor:
    def __init__(
        self,
        console: Console,
        environment: Mapping[str, str],
        *,
        restarts: bool,
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._console = console
        self._environment = environment
        self._restarts = restarts
        self._on_restart = on_restart
        self._seats: list[Seat] = []
        self._stopping = False
        self._tasks: asyncio.TaskGroup

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Whatever ends the block, no process outlives it."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                try:
                    yield
                finally:
                    self.kill()
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise

    async def start(self, seat: Seat) -> None:
        self._seats.append(seat)
        await self._begin(seat)
        self._tasks.create_task(self._watch(seat), name=seat.name)

    async def said(self, seat: Seat) -> str:
        """The first line that the seat's process prints; raises `DidNotStart` if it ends without one."""
        assert seat.child is not None, "it was started"
        child = seat.child
        await asyncio.wait((child.first_line, child.ended), return_when=asyncio.FIRST_COMPLETED)
        self.check_alive(seat)
        return await child.first_line

    def check_alive(self, seat: Seat) -> None:
        """Raises `DidNotStart`, for as long as the cluster is not ready."""
        child = seat.child
        assert child is not None, "it was started"
        if child.ended.done():
            words = child.last_line.removeprefix("ropewalk: ")
            raise DidNotStart(
                f"{seat.name} {how_it_ended(child.ended.result())}" + (f": {words}" if words else "")
            )

    async def until(self, seats: Sequence[Seat], is_true: Callable[[], Awaitable[bool]]) -> None:
        """Ask again and again; raises `DidNotStart` if one of the processes ends meanwhile."""
        while not await is_true():
            for seat in seats:
                self.check_alive(seat)
            await asyncio.sleep(_ASK_EVERY_S)

    async def stop(self, seats: Sequence[Seat]) -> None:
        """One after the other, in that order."""
        self._stopping = True
        for seat in seats:
            child = seat.child
            if child is None or child.ended.done():
                continue
            child.signal(signal.SIGTERM)
            done, _ = await asyncio.wait((child.ended,), timeout=STOP_S)
            if not done:
                self._console.say(f"{seat.name} has not stopped after {STOP_S:.0f} s and is killed")
                child.signal(signal.SIGKILL)
                await child.ended

    def kill(self) -> None:
        """All at once."""
        self._stopping = True
        for seat in self._seats:
            if seat.child is not None:
                seat.child.signal(signal.SIGKILL)

    async def _begin(self, seat: Seat) -> None:
        try:
            seat.child = await Child.start(seat.name, seat.command, self._environment, self._console)
        except OSError as error:
            raise DidNotStart(
                f"{seat.name}: cannot run {seat.command[0]}: {error.strerror or error}"
            ) from error

    async def _watch(self, seat: Seat) -> None:
        while await self._is_to_go_on(seat):
            await asyncio.sleep(_RESTART_AFTER_S)
            if self._stopping:
                break
            await self._begin(seat)
            self._on_restart()
        seat.gone.set()

    async def _is_to_go_on(self, seat: Seat) -> bool:
        """Wait until the process has ended; whether another is to take its place."""
        assert seat.child is not None, "it was started"
        await seat.child.run()
        if self._stopping:
            return False
        consequence = (
            "it is started again" if self._restarts else f"to start it again: {shlex.join(seat.command)}"
        )
        self._console.say(f"{seat.name} {how_it_ended(seat.child.ended.result())}; {consequence}")
        return self._restarts
