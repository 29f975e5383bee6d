"""Who is alive: one object per life of a simulated process.

Everything a process does on the loop carries it in its context, as contexts are inherited by tasks and
callbacks. When the process dies, the loop drops whatever it had planned; nothing of it runs again, not even
a `finally`, exactly as after a power cut.
"""

import asyncio
import weakref
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Final

from ropewalk.runtime.steps import OWN_LANE, Lane


class Process:
    """One life, from start to death, of a program on a host."""

    __slots__ = ("__weakref__", "_on_death", "alive", "host", "is_paused", "lane", "life", "tasks")

    def __init__(self, host: str, life: int) -> None:
        self.host = host
        self.life = life
        self.alive = True
        self.is_paused = False
        """As by SIGSTOP: nothing of it runs, and whatever becomes due waits."""
        self.lane = Lane()
        """Its walks take turns among themselves, as on a loop of its own."""
        self.tasks: weakref.WeakSet[asyncio.Task[object]] = weakref.WeakSet()
        self._on_death: list[Callable[[str], None]] = []

    def __str__(self) -> str:
        return f"{self.host}#{self.life}"

    def context(self) -> Context:
        """For what is to run in it."""
        context = copy_context()
        context.run(CURRENT.set, self)
        context.run(OWN_LANE.set, self.lane)
        return context

    def on_death(self, call: Callable[[str], None]) -> None:
        """`call` is given the cause, once, in the order of registration."""
        self._on_death.append(call)

    def die(self, cause: str) -> None:
        if not self.alive:
            return
        self.alive = False
        for call in self._on_death:
            call(cause)
        self._on_death.clear()


CURRENT: Final[ContextVar[Process | None]] = ContextVar("simulated_process", default=None)
"""The process on whose behalf code runs; None for the world itself: clients, nemesis, the wires."""


class Died(Exception):
    """The process that was to do something is no more."""


class PowerCut(BaseException):
    """Raised inside a dead process to unwind it; like an interrupt, no ordinary handler may stop it."""
