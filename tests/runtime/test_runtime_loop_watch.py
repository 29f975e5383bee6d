"""The watch over a loop: it names who held it, and tells the node's own doing from the machine's."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ropewalk.runtime import loop_watch
from ropewalk.runtime.loop_watch import STALLS_FILE, Stall, read_stalls, watch_if_wanted
from ropewalk.sim.machines.world import World


def stalls_of(path: Path, hold: Callable[[], object], is_found: Callable[[Stall], bool]) -> Stall:
    """Holds the loop again and again until it is reported."""

    async def main() -> Stall:
        watch_if_wanted({STALLS_FILE: str(path)})
        while True:
            hold()
            await asyncio.sleep(0.05)
            for stall in read_stalls(path):
                if is_found(stall):
                    return stall

    return asyncio.run(main())


def compute_for_long() -> None:
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        pass


def wait_for_long() -> None:
    time.sleep(0.2)


def test_whoever_computes_on_the_loop_is_named(tmp_path: Path) -> None:
    stall = stalls_of(
        tmp_path / "stalls", compute_for_long, lambda stall: "compute_for_long" in str(stall.where)
    )
    assert stall.own_ms >= 100
    assert stall.late_ms >= stall.own_ms
    assert stall.pid == os.getpid()
    assert not stall.is_disk


def test_whoever_waits_on_the_loop_is_named(tmp_path: Path) -> None:
    stall = stalls_of(
        tmp_path / "stalls",
        wait_for_long,
        lambda stall: "wait_for_long" in str(stall.where) and stall.own_ms >= 100,
    )
    assert not stall.is_disk


def test_what_the_loop_does_after_it_came_by_is_not_held_against_that_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with too few processors wakes the watch long after the loop has come by."""
    path = tmp_path / "stalls"
    computed = threading.Event()
    turns: list[loop_watch._Turn] = []

    class LateEvent(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return super().wait(30) and computed.wait(30)

    class Turn(loop_watch._Turn):
        __slots__ = ()

        def __init__(self) -> None:
            super().__init__()
            self.has_come = LateEvent()
            turns.append(self)

    async def main() -> None:
        watch_if_wanted({STALLS_FILE: str(path)})
        until_s = time.thread_time() + 0.5
        while time.thread_time() < until_s:  # in short turns, and far longer than a stall altogether
            await asyncio.sleep(0)
        computed.set()
        while len(turns) < 2:  # the first has been reported, if it was to be
            await asyncio.sleep(0)

    monkeypatch.setattr(loop_watch, "_Turn", Turn)
    asyncio.run(main())
    assert all(stall.own_ms < 250 for stall in read_stalls(path))


def test_a_process_that_was_stopped_is_not_to_blame(tmp_path: Path) -> None:
    path = tmp_path / "stalls"
    program = (
        "import asyncio, os\n"
        "from ropewalk.runtime.loop_watch import watch_if_wanted\n"
        "async def main():\n"
        "    watch_if_wanted(os.environ)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, STALLS_FILE: str(path)}, stdout=subprocess.PIPE
    )
    output = process.stdout
    assert output is not None
    try:
        assert output.readline() == b"ready\n"
        while not any(stall.late_ms >= 500 for stall in read_stalls(path)):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.7)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.1)
        assert all(stall.own_ms < 250 for stall in read_stalls(path))
    finally:
        process.kill()
        process.wait()
        output.close()


def test_nothing_is_watched_unless_it_is_wanted() -> None:
    async def main() -> None:
        watch_if_wanted({})

    asyncio.run(main())


def test_a_line_that_a_killed_process_left_unfinished_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "stalls"
    path.write_bytes(b'{"pid":1,"at_s":1.5,"late_ms":30,"own_ms":20,"is_disk":false,"where":["a"]}\n{"pid":')
    assert read_stalls(path) == [Stall(1, 1.5, 30, 20, is_disk=False, where=("a",))]
    assert read_stalls(tmp_path / "none") == []


def test_the_garbage_collector_is_named(tmp_path: Path) -> None:
    kept = [[index] for index in range(1_000_000)]

    def collect() -> None:
        gc.collect()

    stall = stalls_of(tmp_path / "stalls", collect, lambda stall: "garbage collector" in str(stall.where))
    assert "generation 2" in stall.where[0]
    assert kept


def test_a_watch_ends_with_its_loop(tmp_path: Path) -> None:
    """A process of tests has one loop after the other in the same thread, simulated ones among them."""
    before = list(gc.callbacks)

    async def watched() -> None:
        watch_if_wanted({STALLS_FILE: str(tmp_path / "stalls")})
        assert gc.callbacks != before

    async def simulated() -> None:
        gc.collect()

    asyncio.run(watched())
    with World(0) as world:
        world.run(simulated(), limit_s=1)
    while gc.callbacks != before:
        time.sleep(0.005)
