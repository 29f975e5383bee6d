"""Fair dispatch: who has much in flight lets the others go first, and nothing is held back where nobody else has anything."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.limits import QUEUE_NOISY_IN_FLIGHT_MIN
from ropewalk.queues.answers import Received
from ropewalk.queues.commands import Delete, Handle, Receive
from ropewalk.queues.fair_line import FairLine
from ropewalk.queues.settings import QueueSettings
from tests.queues.stage import Stage

FAIR = QueueSettings(is_fair=True)


def line_of(in_flight: dict[str, int], visible: Iterable[str]) -> FairLine:
    """So many of each group in flight, and then visible messages of these groups, called 1000, 1001, …"""
    line = FairLine()
    offset = 0
    for group, count in in_flight.items():
        for _ in range(count):
            line.know(offset, group)
            line.show([offset])
            line.give([offset])
            offset += 1
    for place, group in enumerate(visible, 1000):
        line.know(place, group)
        line.show([place])
    return line


@pytest.mark.parametrize(
    ("in_flight", "visible", "taken"),
    [
        pytest.param({"a": 29}, "ab", [1000, 1001], id="fewer than thirty are quiet, whatever their share"),
        pytest.param({"a": 30}, "ab", [1001, 1000], id="thirty are noisy"),
        pytest.param({"a": 30, "": 270}, "ab", [1000, 1001], id="a tenth is not more than a tenth"),
        pytest.param({"a": 31, "": 270}, "ab", [1001, 1000], id="more than a tenth is noisy"),
        pytest.param(
            {"a": 50, "c": 40}, "acb", [1002, 1001, 1000], id="of the noisy the one with fewest in flight"
        ),
        pytest.param(
            {"a": 40, "c": 40},
            "aacc",
            [1000, 1001, 1002, 1003],
            id="the noisy are given, where nobody else is",
        ),
        pytest.param({"": 500}, ["", "b", ""], [1000, 1001, 1002], id="who has no group is never noisy"),
    ],
)
def test_quiet_groups_come_first(in_flight: dict[str, int], visible: Iterable[str], taken: list[int]) -> None:
    assert list(line_of(in_flight, visible).take()) == taken


def test_a_message_that_was_visible_before_its_group_was_known_goes_with_its_group() -> None:
    """As after a change of leader: it had been received, and is read again when its group has become noisy."""
    line = FairLine()
    line.show([1000])
    for offset in range(QUEUE_NOISY_IN_FLIGHT_MIN):
        line.know(offset, "a")
        line.give([offset])
    line.know(1000, "a")
    line.show([1000])
    line.show([1001])
    assert list(line.take()) == [1001, 1000]
    line.give([1000])
    assert list(line.take()) == [1001]
    line.drop([1000])
    assert list(line.take()) == [1001]


@given(
    st.lists(st.tuples(st.sampled_from(["know", "give", "land", "drop"]), st.integers(0, 79)), max_size=300)
)
def test_the_order_is_that_of_the_rule_whatever_happened_before(steps: list[tuple[str, int]]) -> None:
    line = FairLine()
    visible: set[int] = set()
    flying: set[int] = set()
    for verb, offset in (
        [("know", each) for each in range(80)] + [("give", each) for each in range(50)] + steps
    ):
        group = _group(offset)
        is_known = offset in visible | flying
        if verb == "know" and not is_known:
            line.know(offset, group)
            line.show([offset])
            visible.add(offset)
        elif verb == "give" and offset in visible:
            line.give([offset])
            visible.discard(offset)
            flying.add(offset)
        elif verb == "land" and offset in flying:
            line.land(offset)
            line.show([offset])
            flying.discard(offset)
            visible.add(offset)
        elif verb == "drop" and is_known:
            line.drop([offset])
            visible.discard(offset)
            flying.discard(offset)
    counts = {group: sum(_group(each) == group for each in flying) for group in "ab"}
    noisy = {
        group: count
        for group, count in counts.items()
        if count >= QUEUE_NOISY_IN_FLIGHT_MIN and count * 10 > len(flying)
    }
    taken = list(line.take())
    assert sorted(taken) == sorted(visible), "nothing is held back"
    ranks = [noisy.get(_group(offset), 0) for offset in taken]
    assert ranks == sorted(ranks), "the quiet first, then those with fewest in flight"
    for rank in set(ranks) if len(set(noisy.values())) == len(noisy) else ():
        among = [offset for offset, each in zip(taken, ranks, strict=True) if each == rank]
        assert among == sorted(among), "and among equals the lowest offset"


def _group(offset: int) -> str:
    return "a" if offset < 40 else "b" if offset < 75 else ""


def test_a_group_that_floods_a_queue_does_not_keep_another_waiting() -> None:
    stage = Stage(FAIR)
    for _ in range(200):
        stage.send(group="flood")
    for _ in range(4):  # forty in flight: noisy from the thirtieth on
        assert isinstance(stage.answer(Receive(10, 30_000)), Received)
    late = stage.send(group="late")
    answer = stage.answer(Receive(10, 30_000))
    assert isinstance(answer, Received)
    assert late in [given.offset for given in answer.messages]
    assert len(answer.messages) == 10, "and nothing is held back"


def test_a_group_is_quiet_again_when_its_messages_are_deleted() -> None:
    stage = Stage(FAIR)
    for _ in range(60):
        stage.send(group="flood")
    taken = []
    for _ in range(4):
        answer = stage.answer(Receive(10, 30_000))
        assert isinstance(answer, Received)
        taken += [Handle(given.offset, answer.attempt) for given in answer.messages]
    stage.send(group="other")
    stage.answer(Delete(tuple(taken)))
    answer = stage.answer(Receive(1, 30_000))
    assert isinstance(answer, Received)
    assert answer.messages[0].offset == 40, "the oldest"
