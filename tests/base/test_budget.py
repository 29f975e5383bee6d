"""A shared byte budget wakes those who wait, once, in order, when there is room."""

from ropewalk.base.budget import ByteBudget


def test_waiters_are_called_once_when_there_is_room_again() -> None:
    budget = ByteBudget(100)
    called: list[str] = []

    def first() -> None:
        called.append("first")

    def second() -> None:
        called.append("second")

    budget.take(150)
    assert budget.is_spent
    for resume in (first, second, first):
        budget.wait(resume)
    budget.give_back(40)
    assert called == []
    budget.give_back(20)
    assert (called, budget.is_spent) == (["first", "second"], False)
    budget.give_back(90)
    assert called == ["first", "second"]


def test_one_who_left_is_not_called() -> None:
    budget = ByteBudget(1)
    called: list[str] = []

    def resume() -> None:
        called.append("resumed")

    budget.take(1)
    budget.wait(resume)
    budget.leave(resume)
    budget.give_back(1)
    assert called == []
