"""Work for those who have no task of their own."""

import asyncio

import pytest

from ropewalk.base.errors import NodeStopping, Throttled, TimedOut
from ropewalk.runtime.errands import Errands
from ropewalk.runtime.steps import begin


async def late(seconds: float) -> str:
    async with asyncio.timeout(60):  # which only a task can do
        await asyncio.sleep(seconds)
    return "done"


async def refused() -> str:
    raise TimedOut("too late")


def test_a_handler_without_a_task_waits_for_work_that_needs_one() -> None:
    async def main() -> list[object]:
        seen: list[object] = []
        errands = Errands(count_max=10)

        async def handler() -> str:
            return await errands.begin(late(0))

        running = asyncio.ensure_future(errands.run())
        begin(handler(), lambda result, error: seen.append(result or error))
        while not seen:
            await asyncio.sleep(0)
        running.cancel()
        return seen

    assert asyncio.run(main()) == ["done"]


def test_what_the_work_refuses_with_is_raised_to_whoever_waits() -> None:
    async def main() -> None:
        errands = Errands(count_max=10)
        running = asyncio.ensure_future(errands.run())
        with pytest.raises(TimedOut, match="too late"):
            await errands.begin(refused())
        running.cancel()

    asyncio.run(main())


def test_too_much_at_once_is_refused_and_room_comes_back() -> None:
    async def main() -> None:
        errands = Errands(count_max=2)
        waiting = [errands.begin(late(0)) for _ in range(2)]
        with pytest.raises(Throttled, match="2 requests to other nodes"):
            errands.begin(late(0))
        running = asyncio.ensure_future(errands.run())
        assert await asyncio.gather(*waiting) == ["done", "done"]
        assert await errands.begin(late(0)) == "done"
        running.cancel()

    asyncio.run(main())


def test_everybody_is_sent_away_when_the_node_stops() -> None:
    async def main() -> None:
        errands = Errands(count_max=10)
        running = asyncio.ensure_future(errands.run())
        begun = errands.begin(late(1000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        not_begun = errands.begin(late(1000))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for waiting in (begun, not_begun):
            with pytest.raises(NodeStopping):
                await waiting
        with pytest.raises(NodeStopping):
            errands.begin(late(0))

    asyncio.run(main())
