"""Calls that are gathered: one at a time to each node, nothing lost, nothing out of order."""

import asyncio

import pytest

from ropewalk.base.errors import Throttled
from ropewalk.base.ids import NodeId
from ropewalk.broker.dispatch.gathered_calls import GatheredCalls

ONE, OTHER = NodeId(1), NodeId(2)


class Calls:
    """Every call waits until it is let go."""

    def __init__(self, group: asyncio.TaskGroup, *, items_max: int = 100) -> None:
        self.made: list[tuple[NodeId, list[str]]] = []
        self._gates: list[asyncio.Future[None]] = []
        self.gathered: GatheredCalls[str] = GatheredCalls(self._call, group.create_task, items_max=items_max)

    async def _call(self, node_id: NodeId, items: list[str]) -> None:
        self.made.append((node_id, items))
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gates.append(gate)
        await gate

    async def answer(self) -> None:
        """The oldest call is over, and whatever follows from it has happened."""
        self._gates.pop(0).set_result(None)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_comes_while_a_node_is_busy_goes_with_the_next_call() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            calls = Calls(group)
            for item in ("a", "b"):
                calls.gathered.add(ONE, item)
            await settle()
            for item in ("c", "d"):
                calls.gathered.add(ONE, item)
            await settle()
            assert calls.made == [(ONE, ["a", "b"])]
            await calls.answer()
            assert calls.made[1:] == [(ONE, ["c", "d"])]
            await calls.answer()
            calls.gathered.add(ONE, "e")
            await settle()
            assert calls.made[2:] == [(ONE, ["e"])]
            await calls.answer()

    asyncio.run(story())


def test_one_node_does_not_wait_for_another() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            calls = Calls(group)
            calls.gathered.add(ONE, "a")
            await settle()
            calls.gathered.add(OTHER, "b")
            await settle()
            assert calls.made == [(ONE, ["a"]), (OTHER, ["b"])]
            await calls.answer()
            await calls.answer()

    asyncio.run(story())


def test_too_many_go_in_several_calls_in_their_order() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            calls = Calls(group, items_max=2)
            for item in "abcde":
                calls.gathered.add(ONE, item)
            await settle()
            for _ in range(3):
                await calls.answer()
            assert [items for _, items in calls.made] == [["a", "b"], ["c", "d"], ["e"]]

    asyncio.run(story())


def test_what_cannot_be_begun_is_refused_and_forgotten() -> None:
    async def story() -> None:
        begun: list[str] = []

        async def call(_: NodeId, items: list[str]) -> None:
            begun.extend(items)

        async with asyncio.TaskGroup() as group:
            is_full = True

            def begin(work: object) -> object:
                assert asyncio.iscoroutine(work)
                if is_full:
                    work.close()
                    raise Throttled("too much is under way")
                return group.create_task(work)

            gathered: GatheredCalls[str] = GatheredCalls(call, begin, items_max=10)
            with pytest.raises(Throttled):
                gathered.add(ONE, "refused")
            is_full = False
            gathered.add(ONE, "taken")
        assert begun == ["taken"]

    asyncio.run(story())
