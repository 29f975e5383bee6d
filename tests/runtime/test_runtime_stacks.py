"""Where tasks and threads stand, for a person."""

import asyncio

from ropewalk.runtime.loop import run
from ropewalk.runtime.stacks import stacks


async def _wait_for(what: "asyncio.Future[None]") -> None:
    await what


def test_tasks_that_wait_in_one_place_are_shown_once_with_how_many_they_are() -> None:
    async def main() -> str:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(_wait_for(never), name=f"waiter-{number}") for number in range(50)]
            await asyncio.sleep(0)
            shown = await stacks()
            for task in waiting:
                task.cancel()
        return shown

    shown = run(main())
    assert shown.startswith("51 tasks in 2 places\n")
    assert "50 x waiter-" in shown
    assert "in _wait_for" in shown
    assert "thread MainThread" in shown
