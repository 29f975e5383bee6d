"""A process that is gone or hangs keeps no other from its turns, though all share a loop."""

import asyncio

import pytest

from ropewalk.runtime.steps import Pace
from ropewalk.sim.machines.loop import new_loop
from ropewalk.sim.machines.process import Process


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "paused"])
def test_a_process_that_runs_no_more_holds_up_no_walk_of_another(is_killed: bool) -> None:
    loop = new_loop(1)
    first, second = Process("first", 1), Process("second", 1)

    async def walk(piece_count: int) -> None:
        pace = Pace(1)
        for _ in range(piece_count):
            await pace.next()

    async def main() -> bool:
        began = loop.create_task(walk(1000), context=first.context())
        for _ in range(5):  # it waits for its turn
            await asyncio.sleep(0)
        assert not began.done()
        if is_killed:
            first.die("test")
        else:
            first.is_paused = True
        other = loop.create_task(walk(10), context=second.context())
        await asyncio.sleep(1)
        return other.done()

    assert loop.run_until_complete(main())
    loop.close()
