"""A watch over the event loop of a node under test: who held it, for how long, and whether it was the machine.

A thread asks the loop for a turn, again and again, and sees how long that takes. A turn that comes late is written as a line of JSON to the
file that the environment names. Tests read the file, and fail on what is the node's own doing.

What a reader could get wrong
    A turn may be late because the machine had no processor for it, or because the whole process was stopped. The first the kernel
    tells (`schedstat`: how long threads were ready and did not run). All threads of the process count there: the loop's may wait
    for one that holds the interpreter, or that is to begin, and is itself not run. Of the second the watch knows nothing, since it was
    stopped itself: time in which it did not look does not count, unless the loop's thread used the processor meanwhile.
    The watch is a thread like any other, and may hear late that the loop has come by. So the loop itself notes when it did; what it
    computed after that belongs to other turns.
    A write that the disk makes wait is the disk's, not the code's. It is known by where the loop's thread stands.
    The garbage collector lets nobody look while it works. It says by itself how long it took, and is named first.
"""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec
from msgspec import Struct

STALLS_FILE: Final = "LOOP_STALLS_FILE"
"""The variable that names the file. No setting: nothing that a node does depends on it."""

_TICK_S: Final = 0.005
_REPORTED_MS: Final = 25.0
_LOOKED_MS_MAX: Final = 20.0
"""What one look at the clock accounts for, at most: whoever looks every five milliseconds and comes later was stopped, too."""

_FRAMES_MAX: Final = 8
_COLLECTED_MS_MIN: Final = 5.0


class Stall(Struct, frozen=True):
    pid: int
    at_s: float
    late_ms: float
    own_ms: float
    """What the node itself is to blame for."""
    is_disk: bool
    """Whether the loop's thread stood in a call to the disk when it was last looked at."""
    where: tuple[str, ...]
    """The innermost functions that ran, as far as anybody looked while they did."""


def watch_if_wanted(environment: Mapping[str, str]) -> None:
    """Call on the loop. Watches it until the process ends, where the environment names a file."""
    path = environment.get(STALLS_FILE)
    if path:
        LoopWatch(asyncio.get_running_loop(), Path(path)).start()


def read_stalls(path: Path) -> list[Stall]:
    """A process that was killed may have left half a line."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [msgspec.json.decode(line, type=Stall) for line in lines]


class _Turn:
    """When the loop came by, and how much its thread had computed by then. Whoever waits for it may hear of it much later."""

    __slots__ = ("at_s", "cpu_s", "has_come")

    def __init__(self) -> None:
        self.has_come = threading.Event()
        self.at_s = self.cpu_s = 0.0

    def come(self) -> None:
        """Called on the loop."""
        self.at_s, self.cpu_s = time.monotonic(), time.thread_time()
        self.has_come.set()


class LoopWatch:
    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        self._path = path
        self._thread_id = threading.get_ident()
        self._clock_id = time.pthread_getcpuclockid(self._thread_id)
        self._collecting_since_s = 0.0
        self._collected: dict[int, float] = {}
        """How long the collector worked since the loop was last asked for a turn, in milliseconds, by generation."""

    def start(self) -> None:
        gc.callbacks.append(self._on_collector)
        threading.Thread(target=self._run, name="watch on the loop", daemon=True).start()

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            gc.callbacks.remove(self._on_collector)

    def _watch(self) -> None:
        while not self._loop.is_closed():
            turn = _Turn()
            began_s, looked_ms = time.monotonic(), 0.0
            where: tuple[str, ...] = ()
            self._collected = {}
            cpu_s, waited_ms = time.clock_gettime(self._clock_id), self._waited_ms()
            try:
                self._loop.call_soon_threadsafe(turn.come)
            except RuntimeError:
                return  # the loop is closed
            seen_s = began_s
            while not turn.has_come.wait(_TICK_S):
                now_s = time.monotonic()
                looked_ms += min(_LOOKED_MS_MAX, (now_s - seen_s) * 1000)
                seen_s = now_s
                where = _stack(sys._current_frames().get(self._thread_id)) or where
            late_ms = (turn.at_s - began_s) * 1000
            if late_ms >= _REPORTED_MS:
                cpu_ms = (turn.cpu_s - cpu_s) * 1000
                ready_ms = self._waited_ms() - waited_ms
                self._report(late_ms, max(cpu_ms, looked_ms - ready_ms), (*self._collections(), *where))
            time.sleep(_TICK_S)

    def _on_collector(self, phase: str, info: Mapping[str, int]) -> None:
        if threading.get_ident() != self._thread_id:  # in a process of tests others may use other threads
            return
        if self._loop.is_closed():  # the thread may have another loop now, which is not this one's to watch
            return
        now_s = time.monotonic()
        if phase == "start":
            self._collecting_since_s = now_s
        else:
            generation = info["generation"]
            took_ms = (now_s - self._collecting_since_s) * 1000
            self._collected[generation] = self._collected.get(generation, 0.0) + took_ms

    def _collections(self) -> tuple[str, ...]:
        return tuple(
            f"garbage collector, generation {generation}: {took_ms:.0f} ms"
            for generation, took_ms in sorted(self._collected.items())
            if took_ms >= _COLLECTED_MS_MIN
        )

    def _waited_ms(self) -> float:
        """How long threads of this process have been ready without a processor, ever. A thread that has ended takes its time with it,
        which makes this less than it was: then the machine is believed to have done less."""
        waited_ms = 0.0
        for schedule in Path("/proc/self/task").glob("*/schedstat"):
            try:
                waited_ms += int(schedule.read_bytes().split()[1]) / 1e6
            except OSError:  # it has ended, or the kernel does not tell
                continue
        return waited_ms

    def _report(self, late_ms: float, own_ms: float, where: tuple[str, ...]) -> None:
        stall = Stall(
            os.getpid(),
            round(time.time(), 3),
            round(late_ms, 1),
            round(min(own_ms, late_ms), 1),
            bool(where) and "runtime/disk" in where[0],
            where,
        )
        line = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(line, msgspec.json.encode(stall) + b"\n")
        finally:
            os.close(line)


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    found: list[str] = []
    while frame is not None and len(found) < _FRAMES_MAX:
        code = frame.f_code
        name = code.co_filename.rpartition("ropewalk/")[2]
        found.append(f"{name}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return tuple(found)
