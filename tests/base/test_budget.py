"""A shared byte budget: who may go on while it is spent, and who is called when there is room."""

import asyncio

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import BUDGET_SMALL_BYTES

LARGE = BUDGET_SMALL_BYTES + 1


class Reader:
    def __init__(self, name: str, called: list[str]) -> None:
        self.name = name
        self._called = called

    def on_room(self) -> None:
        self._called.append(self.name)


def readers(*names: str) -> tuple[list[Reader], list[str]]:
    called: list[str] = []
    return [Reader(name, called) for name in names], called


def test_waiters_are_called_once_when_there_is_room_again() -> None:
    budget = ByteBudget(100)
    (first, second), called = readers("first", "second")
    budget.take(150)
    assert budget.is_spent
    for reader in (first, second, first):
        budget.wait(reader)
    budget.give_back(40)
    assert called == []
    budget.give_back(20)
    assert (called, budget.is_spent) == (["first", "second"], False)
    budget.give_back(90)
    assert called == ["first", "second"]


def test_one_who_left_is_not_called() -> None:
    budget = ByteBudget(1)
    (reader,), called = readers("one")
    budget.take(1)
    budget.wait(reader)
    budget.leave(reader)
    budget.give_back(1)
    assert called == []


def test_while_it_is_spent_the_small_go_on_and_of_the_large_one_at_a_time() -> None:
    budget = ByteBudget(100)
    (small, one, two, three), called = readers("small", "one", "two", "three")
    budget.take(100)
    assert [budget.admits(reader, LARGE) for reader in (one, two, three)] == [True, False, False]
    assert budget.admits(small, BUDGET_SMALL_BYTES)
    assert budget.admits(one, 2 * LARGE), "until it has come to its end"
    budget.leave(one)
    assert called == ["two"]
    assert [budget.admits(reader, LARGE) for reader in (one, two)] == [False, True]
    budget.leave(two)
    assert called == ["two", "three"]


def test_when_it_is_overdrawn_not_even_the_small_go_on() -> None:
    budget = ByteBudget(100)
    (small, large), _ = readers("small", "large")
    budget.take(150)
    assert budget.admits(large, LARGE), "somebody must come to an end"
    assert not budget.admits(small, 0)
    budget.give_back(1)
    assert budget.admits(small, 0)


def test_room_lets_everybody_on_again() -> None:
    budget = ByteBudget(100)
    (one, two), called = readers("one", "two")
    budget.take(100)
    assert [budget.admits(reader, LARGE) for reader in (one, two)] == [True, False]
    budget.give_back(1)
    assert called == ["two"]
    budget.take(1)
    assert budget.admits(two, LARGE), "nobody is favoured over it any more"


def test_grants_are_given_in_order_and_only_while_there_is_room() -> None:
    async def story() -> None:
        budget = ByteBudget(100)
        budget.take(110)
        first, gone, third, fourth = (budget.grant(size) for size in (50, 10, 60, 10))
        gone.cancel()
        budget.give_back(10)
        assert not first.done()
        budget.give_back(30)
        assert (first.done(), third.done(), budget.held_bytes) == (True, False, 120)
        budget.give_back(21)
        assert (third.done(), fourth.done(), budget.held_bytes) == (True, False, 159)
        budget.give_back(159)
        assert (fourth.done(), budget.held_bytes) == (True, 10)

    asyncio.run(story())
