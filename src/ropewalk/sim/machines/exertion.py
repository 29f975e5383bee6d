"""How much a node computes in one turn of its loop, and how often it has the disk do nothing.

Virtual time stands still while code runs, so a turn that would take seconds looks like any other. In runs that are weighed, each step of a
node costs virtual time, and the functions that it calls are counted: a turn of too many holds everybody else up.

What a reader could get wrong
    Calls are counted in the package alone, without `wire`: codecs are compiled at first use, which is once per process of the
    simulator and not once per run. The count is checked against a bound and never becomes part of a run, since caches make it differ a little.
    What runs in the disk pool is a step of the loop here, and none on a real machine: it does not count. Nor does what a node does
    to start: it keeps nobody waiting yet.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.process import Process

STEP_S: Final = 20e-6
"""What a step of a node costs in virtual time."""

TURN_CALLS_MAX: Final = 12_000
"""Functions called in one turn. A function of this project takes about a microsecond, with all that it calls outside."""

NOTHING_SYNCED_MAX: Final = 20
"""Syncs of nothing, one after the other. Somebody may wait for one that another's sync has just covered; nobody does so for long."""

_START: Final = "_start"
"""The task in which a node starts."""

_PACKAGE: Final = "/ropewalk/"
_LEFT_OUT: Final = ("/ropewalk/wire/", "/ropewalk/sim/")


class Exertion:
    def __init__(self, *, weighs_turns: bool) -> None:
        """Without weighing, steps cost nothing, and only what the disk pool is asked for is looked at."""
        self.weighs_turns = weighs_turns
        self.heaviest_calls = 0
        self.violations: list[Violation] = []
        self._calls = 0
        self._counts: dict[str, bool] = {}
        """By file: whether what is in it counts."""
        self._nothing_synced: dict[Process, int] = {}

    def weigh(self, run: Callable[[], None], process: Process, label: str) -> None:
        """Run one step, and look at what it took."""
        self._calls = 0
        sys.setprofile(self._on_event)
        try:
            run()
        finally:
            sys.setprofile(None)
        self.heaviest_calls = max(self.heaviest_calls, self._calls)
        if self._calls > TURN_CALLS_MAX and label != _START:
            text = f"{label} of {process} called {self._calls} functions in one turn"
            self.violations.append(Violation("T1", text))

    def on_errand(
        self, process: Process | None, function: Callable[..., object], arguments: tuple[object, ...]
    ) -> None:
        """The disk pool is asked to do something."""
        if process is None or not getattr(function, "__qualname__", "").endswith("GroupCommit._sync"):
            return
        if arguments[0]:
            self._nothing_synced[process] = 0
            return
        count = self._nothing_synced[process] = self._nothing_synced.get(process, 0) + 1
        if count == NOTHING_SYNCED_MAX:
            text = f"{process} had nothing synced {count} times, one after the other"
            self.violations.append(Violation("T2", text))

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            name = frame.f_code.co_filename
            counts = self._counts.get(name)
            if counts is None:
                counts = self._counts[name] = _PACKAGE in name and not any(part in name for part in _LEFT_OUT)
            if counts:
                self._calls += 1
