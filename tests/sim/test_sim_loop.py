"""The loop: virtual time, seeded scheduling, no way out."""

import asyncio
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context

import pytest

from ropewalk.sim.machines.fence import RealWorldTouched
from ropewalk.sim.machines.loop import Overtime, SimulatedLoop, Stuck, Unhandled, new_loop
from ropewalk.sim.machines.process import CURRENT, Process


def test_an_hour_passes_at_once() -> None:
    loop = new_loop(1)

    async def main() -> float:
        await asyncio.sleep(3600)
        return loop.time()

    started = time.monotonic()
    assert loop.run_until_complete(main()) == 3600
    assert time.monotonic() - started < 1
    loop.close()


def test_timers_of_one_instant_fire_in_the_order_they_were_set() -> None:
    loop = new_loop(1)
    fired: list[int] = []

    async def main() -> None:
        for number in range(50):
            loop.call_at(5.0, fired.append, number)
        await asyncio.sleep(6)

    loop.run_until_complete(main())
    assert fired == list(range(50))


def _finishing_order(seed: int) -> list[int]:
    loop = new_loop(seed)
    order: list[int] = []

    async def step(number: int) -> None:
        await asyncio.sleep(0)
        order.append(number)

    async def main() -> None:
        await asyncio.gather(*(step(number) for number in range(8)))

    loop.run_until_complete(main())
    loop.close()
    return order


def test_the_seed_decides_the_order_of_task_steps() -> None:
    orders = {tuple(_finishing_order(seed)) for seed in range(30)}
    assert len(orders) > 20
    assert _finishing_order(7) == _finishing_order(7)


@pytest.mark.parametrize("seed", range(5))
def test_plain_callbacks_keep_their_order(seed: int) -> None:
    loop = new_loop(seed)
    seen: list[int] = []

    async def main() -> None:
        for number in range(20):
            loop.call_soon(seen.append, number)
        await asyncio.sleep(0.1)

    loop.run_until_complete(main())
    assert seen == list(range(20))


def test_a_run_that_cannot_go_on_is_stuck_rather_than_silent() -> None:
    loop = new_loop(1)

    async def main() -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        loop.run_until_complete(main())
    loop.close()


def test_a_cancelled_timer_neither_fires_nor_moves_the_clock() -> None:
    loop = new_loop(1)

    async def main() -> None:
        loop.call_later(100, pytest.fail).cancel()
        await loop.create_future()

    with pytest.raises(Stuck):
        loop.run_until_complete(main())
    assert loop.time() == 0
    loop.close()


def test_a_run_ends_when_its_simulated_time_is_spent() -> None:
    loop = new_loop(1)
    with pytest.raises(Overtime):
        loop.run_until_complete(asyncio.sleep(100), limit_s=10)
    loop.close()


def test_timeouts_and_task_groups_of_the_standard_library_run_unchanged() -> None:
    loop = new_loop(3)

    async def main() -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.sleep(5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_future(), 1)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(n, n)) for n in range(3)]
        return f"{loop.time()} {[task.result() for task in tasks]}"

    assert loop.run_until_complete(main()) == "5.0 [0, 1, 2]"


REAL_THINGS: list[tuple[str, Callable[[], object]]] = [
    ("clock", lambda: time.time()),
    ("monotonic clock", lambda: time.monotonic()),
    ("performance counter", lambda: time.perf_counter_ns()),
    ("sleep", lambda: time.sleep(0)),
    ("random", lambda: random.random()),
    ("urandom", lambda: os.urandom(1)),
    ("uuid4", lambda: uuid.uuid4()),
    ("thread", lambda: threading.Thread(target=print).start()),
    ("socket", lambda: socket.socket()),
    ("socket pair", lambda: socket.socketpair()),
    ("file", lambda: os.open("/dev/null", os.O_RDONLY)),
    ("executor", lambda: asyncio.get_running_loop().run_in_executor(None, print)),
    ("foreign thread", lambda: asyncio.get_running_loop().call_soon_threadsafe(print)),
    ("reader", lambda: asyncio.get_running_loop().add_reader(0, print)),
]


@pytest.mark.parametrize("touch", [pytest.param(touch, id=name) for name, touch in REAL_THINGS])
def test_the_real_world_is_an_error_even_if_the_culprit_swallows_it(touch: Callable[[], object]) -> None:
    loop = new_loop(1)

    async def main() -> None:
        with suppress(RealWorldTouched):
            touch()
        await asyncio.sleep(1)

    with pytest.raises(RealWorldTouched):
        loop.run_until_complete(main())
    loop.close()


def test_the_real_world_is_back_after_the_run() -> None:
    loop = new_loop(1)
    loop.run_until_complete(asyncio.sleep(1))
    assert time.time() > 0
    random.random()
    loop.close()


def test_an_error_nobody_handles_ends_the_run() -> None:
    loop = new_loop(1)

    async def main() -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(Unhandled, match="ZeroDivisionError"):
        loop.run_until_complete(main())
    loop.close()


def _in_process(loop: SimulatedLoop, process: Process, call: Callable[[], None]) -> None:
    context = copy_context()
    context.run(CURRENT.set, process)
    loop.call_soon(call, context=context)


def test_nothing_of_a_dead_process_runs_not_even_a_finally() -> None:
    loop = new_loop(1)
    process = Process("node", 1)
    seen: list[str] = []

    async def inside() -> None:
        try:
            while True:
                seen.append("step")
                await asyncio.sleep(1)
        finally:
            seen.append("finally")

    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        _in_process(loop, process, lambda: tasks.append(loop.create_task(inside())))
        await asyncio.sleep(2.5)
        process.die("test")
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert seen == ["step"] * 3
    loop.close()


def test_a_process_may_exit_by_itself() -> None:
    loop = new_loop(1)
    process = Process("node", 1)
    causes: list[str] = []
    process.on_death(causes.append)

    async def main() -> None:
        _in_process(loop, process, lambda: sys.exit(7))
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert causes == ["exited with 7"]


_SCRIPT = """
import asyncio, sys
from ropewalk.sim.machines.world import World

async def serve(ports):
    async def echo(reader, writer):
        while data := await reader.read(100):
            writer.write(data)
            await writer.drain()
        writer.close()
    server = await asyncio.start_server(echo, "node", 9)
    def save():
        ports.disk.make_directory("/d")
        file = ports.disk.open("/d/f", create=True)
        file.append(ports.rng.randbytes(9000))
        ports.disk.sync_directory("/")
        ports.disk.sync_directory("/d")
    await ports.pool.run(save)
    return server

async def main(world):
    machine = world.machine("node")
    for life in range(3):
        await machine.start(serve)
        async def talk(number):
            reader, writer = await asyncio.open_connection("node", 9)
            for word in {"a", "b", "c"} and ["x" * n for n in (1, 500, 9)]:
                writer.write(word.encode())
                await reader.readexactly(len(word))
            writer.close()
        await asyncio.gather(*(talk(n) for n in range(5)))
        machine.cut_power()

with World(int(sys.argv[1])) as world:
    world.run(main(world))
    print(world.trace.hexdigest(), world.trace.event_count)
"""


def _trace_of(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    arguments = [sys.executable, "-c", _SCRIPT, str(seed)]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True).stdout


def test_the_same_seed_gives_the_same_trace_under_any_hash_seed() -> None:
    first = _trace_of(5, "0")
    assert int(first.split()[1]) > 200
    assert _trace_of(5, "1") == first
    assert _trace_of(5, "random") == first
    assert _trace_of(6, "0") != first
