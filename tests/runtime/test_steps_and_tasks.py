"""Coroutines without tasks, and tasks with a supervisor."""

import asyncio

import pytest

from ropewalk.runtime.steps import Pace, begin
from ropewalk.runtime.tasks import Supervisor


def test_a_coroutine_that_never_waits_ends_before_begin_returns() -> None:
    seen: list[object] = []

    async def work() -> int:
        return 7

    assert begin(work(), lambda result, error: seen.append((result, error)))
    assert seen == [(7, None)]


def test_a_coroutine_goes_on_when_what_it_waits_for_is_done() -> None:
    async def main() -> list[object]:
        seen: list[object] = []
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def work() -> int:
            seen.append("started")
            await asyncio.sleep(0)
            return await future + 1

        assert not begin(work(), lambda result, _: seen.append(result))
        assert seen == ["started"]
        future.set_result(41)
        while len(seen) < 2:
            await asyncio.sleep(0)
        return seen

    assert asyncio.run(main()) == ["started", 42]


@pytest.mark.parametrize("wait", [False, True], ids=["at once", "after a wait"])
def test_an_escaping_error_is_handed_on(wait: bool) -> None:
    async def main() -> BaseException | None:
        done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            if wait:
                await asyncio.sleep(0)
            raise KeyError("boom")

        begin(work(), lambda _, error: done.set_result(error))
        return await done

    assert isinstance(asyncio.run(main()), KeyError)


def test_the_first_failing_task_is_reported_and_stop_cancels_the_rest() -> None:
    async def main() -> tuple[list[str], bool]:
        failures: list[str] = []
        supervisor = Supervisor(lambda name, error: failures.append(f"{name}: {error}"))
        cancelled = False

        async def fails() -> None:
            raise OSError("no disk")

        async def runs() -> None:
            nonlocal cancelled
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancelled = True
                raise

        supervisor.start("runs", runs())
        supervisor.start("fails", fails())
        while not failures:
            await asyncio.sleep(0)
        await supervisor.stop()
        return failures, cancelled

    assert asyncio.run(main()) == (["fails: no disk"], True)


@pytest.mark.parametrize("are_errands", [False, True])
def test_a_task_that_returns_is_reported_unless_it_was_an_errand(are_errands: bool) -> None:
    async def main() -> list[str]:
        failures: list[str] = []
        supervisor = Supervisor(lambda name, error: failures.append(repr(error)), are_errands=are_errands)

        async def returns() -> None:
            await asyncio.sleep(0)

        supervisor.start("the controller", returns())
        for _ in range(5):
            await asyncio.sleep(0)
        return failures

    assert asyncio.run(main()) == (
        [] if are_errands else ["TaskReturned('the controller has ended by itself')"]
    )


def test_of_all_that_goes_at_a_pace_one_has_its_pieces_in_a_turn_of_the_loop() -> None:
    """However many walks are under way, others wait for no more than one of them."""
    worked: list[list[int]] = [[]]

    async def walk(number: int) -> None:
        pace = Pace(3)
        for _ in range(12):
            await pace.next()
            worked[-1].append(number)

    async def count_turns(walks: "list[asyncio.Task[None]]") -> None:
        while not all(each.done() for each in walks):
            worked.append([])
            await asyncio.sleep(0)

    async def main() -> None:
        walks = [asyncio.ensure_future(walk(number)) for number in range(5)]
        await asyncio.sleep(0)  # each has begun with its first pieces
        await count_turns(walks)

    asyncio.run(main())
    later = worked[1:]
    assert max(map(len, later)) == 3
    assert all(len(set(turn)) <= 1 for turn in later)
    assert sorted(number for turn in worked for number in turn) == sorted(list(range(5)) * 12)


def test_one_who_was_cancelled_at_a_pace_keeps_nobody_waiting() -> None:
    async def main() -> list[str]:
        done: list[str] = []

        async def walk(name: str) -> None:
            pace = Pace(1)
            for _ in range(3):
                await pace.next()
            done.append(name)

        first, second = asyncio.ensure_future(walk("first")), asyncio.ensure_future(walk("second"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first, second])
        return done

    assert asyncio.run(main()) == ["second"]
