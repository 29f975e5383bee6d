"""The plan of a follower's fetches: who is named, rests, is behind, or is repaired; and that leader and plan agree on the session."""

from copy import deepcopy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ropewalk.base.ids import LeaderEpoch, Offset, TopicId
from ropewalk.base.limits import CATCH_UP_PARTITIONS_MAX, REPLICA_FETCH_MS_MAX
from ropewalk.replication.fetch_plan import (
    FetchPlan,
    Key,
    LookAtStart,
    PlannedFetch,
    Repair,
    Settle,
    Step,
)
from ropewalk.replication.follower import Question, Restart, Truncate

TOPIC = TopicId(b"t" * 16)


class Copy:
    """A log that is nothing but its end."""

    def __init__(self) -> None:
        self.broker_epoch: int | None = None
        self.rest_until_ms = 0.0
        self.is_behind = False
        self.is_held = False
        self.is_unsettled = False
        self.is_damaged = False
        self.end_offset = 0
        self.question: Question | None = None

    def ask(self) -> Question | None:
        if self.is_unsettled:
            return None
        self.question = Question(LeaderEpoch(1), Offset(self.end_offset), LeaderEpoch(1), Offset(0))
        return self.question

    def repair(self) -> Truncate | Restart | None:
        return Truncate(Offset(0)) if self.is_damaged else None


def key(index: int) -> Key:
    return (TOPIC, index)


def following(*copies: Copy) -> FetchPlan[Copy]:
    plan: FetchPlan[Copy] = FetchPlan()
    for index, copy in enumerate(copies):
        plan.follow(key(index), copy)
    return plan


def next_fetch(
    plan: FetchPlan[Copy],
    now_ms: float = 0,
    *,
    broker_epoch: int = 7,
    catch_up_wait_ms: float = 0,
    counted_on: bool = False,
) -> tuple[list[Step], PlannedFetch | None]:
    return plan.next_fetch(
        now_ms,
        broker_epoch=broker_epoch,
        catch_up_wait_ms=catch_up_wait_ms,
        counts_on=lambda _: counted_on,
    )


def named(planned: PlannedFetch | None) -> list[int]:
    return [] if planned is None else [index for (_, index), _ in planned.named]


def test_the_first_fetch_of_a_session_names_all_and_is_not_held() -> None:
    plan = following(Copy(), Copy())
    steps, planned = next_fetch(plan)
    assert steps == [LookAtStart(key(0)), LookAtStart(key(1))]
    assert planned is not None
    assert named(planned) == [0, 1]
    assert (planned.session_id, planned.wait_ms_max, planned.may_be_held) == (0, 0, False)


def test_later_fetches_name_what_has_changed_and_may_be_held() -> None:
    grown, quiet = Copy(), Copy()
    plan = following(grown, quiet)
    next_fetch(plan)
    plan.on_answered(5)
    grown.end_offset = 3
    plan.on_taken(key(0), grown, has_grown=True)
    plan.on_taken(key(1), quiet, has_grown=False)
    _, planned = next_fetch(plan)
    assert planned is not None
    assert named(planned) == [0]
    assert (planned.session_id, planned.session_epoch) == (5, 1)
    assert planned.may_be_held


def test_what_rests_is_forgotten_and_named_when_its_time_has_come() -> None:
    resting, other = Copy(), Copy()
    plan = following(resting, other)
    next_fetch(plan)
    plan.on_answered(5)
    plan.rest(key(0), resting, until_ms=100)
    _, planned = next_fetch(plan, 40)
    assert planned is not None
    assert (named(planned), planned.forgotten, planned.wait_ms_max) == ([], (key(0),), 60)
    plan.on_answered(5)
    _, planned = next_fetch(plan, 100)
    assert named(planned) == [0]


def test_a_damaged_copy_is_repaired_before_the_leader_hears_of_it() -> None:
    damaged = Copy()
    damaged.is_damaged = True
    plan = following(damaged)
    steps, planned = next_fetch(plan)
    assert steps == [Repair(key(0), Truncate(Offset(0)))]
    assert planned is None


def test_a_damaged_copy_that_is_counted_on_is_not_cut() -> None:
    damaged = Copy()
    damaged.is_damaged = True
    steps, planned = next_fetch(following(damaged), counted_on=True)
    assert (steps, named(planned)) == ([LookAtStart(key(0))], [0])


@pytest.mark.parametrize(("catch_up_wait_ms", "expected"), [(0, CATCH_UP_PARTITIONS_MAX), (50, 0)])
def test_those_who_are_behind_share_what_is_left(catch_up_wait_ms: float, expected: int) -> None:
    copies = [Copy() for _ in range(CATCH_UP_PARTITIONS_MAX + 3)]
    for copy in copies:
        copy.is_behind = True
    plan = following(*copies)
    _, planned = next_fetch(plan, catch_up_wait_ms=catch_up_wait_ms)
    assert len(named(planned)) == expected
    assert plan.rest_ms(0, catch_up_wait_ms) == catch_up_wait_ms


def test_what_waits_for_the_disk_alone_is_synced_and_not_named() -> None:
    unsettled = Copy()
    unsettled.is_unsettled = True
    plan = following(unsettled)
    steps, planned = next_fetch(plan)
    assert (steps, planned) == ([LookAtStart(key(0)), Settle(key(0))], None)
    assert plan.waits_for_disk(0, 0)
    unsettled.rest_until_ms = 10
    assert not plan.waits_for_disk(0, 0)


class Session(RuleBasedStateMachine):
    """A leader that keeps a session beside a plan, whatever happens to the copies."""

    def __init__(self) -> None:
        super().__init__()
        self.plan: FetchPlan[Copy] = FetchPlan()
        self.copies: dict[int, Copy] = {}
        self.leaders: dict[int, int] = {}
        """By partition: where the leader believes the copy to end."""
        self.session_id = 0
        self.now_ms = 0.0
        self.broker_epoch = 1
        self.planned: PlannedFetch | None = None
        for index in range(3):
            self.follow_again(index)

    @rule(index=st.integers(0, 2))
    def follow_again(self, index: int) -> None:
        if index not in self.copies:
            self.copies[index] = Copy()
            self.plan.follow(key(index), self.copies[index])

    @rule(index=st.integers(0, 2))
    def leave(self, index: int) -> None:
        if self.copies.pop(index, None) is not None:
            self.plan.leave(key(index))

    @rule(index=st.integers(0, 2), ms=st.integers(1, 50))
    def rest(self, index: int, ms: int) -> None:
        if index in self.copies:
            self.plan.rest(key(index), self.copies[index], self.now_ms + ms)

    @rule(index=st.integers(0, 2), is_behind=st.booleans(), is_held=st.booleans())
    def change(self, index: int, is_behind: bool, is_held: bool) -> None:
        if index in self.copies:
            self.copies[index].is_behind = is_behind
            if is_held and not self.copies[index].is_held:
                self.plan.on_cut_begun(key(index))
            self.copies[index].is_held = is_held

    @rule(ms=st.integers(1, 100))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def register_again(self) -> None:
        self.broker_epoch += 1

    @precondition(lambda self: self.planned is None)
    @rule(catch_up_wait_ms=st.sampled_from([0.0, 20.0]))
    def ask(self, catch_up_wait_ms: float) -> None:
        steps, self.planned = next_fetch(
            self.plan, self.now_ms, broker_epoch=self.broker_epoch, catch_up_wait_ms=catch_up_wait_ms
        )
        assert {step.key for step in steps} <= {key(index) for index in self.copies}
        for index in named(self.planned):
            copy = self.copies[index]
            assert not copy.is_held
            assert copy.rest_until_ms <= self.now_ms
            assert not (copy.is_behind and catch_up_wait_ms)
        assert 0 <= self.plan.rest_ms(self.now_ms, catch_up_wait_ms) <= REPLICA_FETCH_MS_MAX

    @precondition(lambda self: self.planned is not None)
    @rule(grows=st.booleans())
    def answer(self, grows: bool) -> None:
        planned, self.planned = self.planned, None
        assert planned is not None
        if planned.session_id == 0:
            self.leaders, self.session_id = {}, self.session_id + 1
        else:
            assert planned.session_id == self.session_id
        for _, index in planned.forgotten:
            del self.leaders[index]
        for (_, index), question in planned.named:
            self.leaders[index] = question.fetch_offset
        self.plan.on_answered(self.session_id)
        for index in list(self.leaders):
            copy = self.copies.get(index)
            if copy is not None and not copy.is_held and self.leaders[index] == copy.end_offset:
                copy.end_offset += grows
                self.plan.on_taken(key(index), copy, has_grown=grows)

    @precondition(lambda self: self.planned is not None)
    @rule()
    def fail(self) -> None:
        self.planned = None
        self.plan.begin_anew()

    @invariant()
    def a_leader_that_was_told_all_sends_nothing_for_those_who_left(self) -> None:
        """Everything that the leader keeps is copied here, or it will be told to forget it."""
        if self.planned is None and self.plan.session_id:
            _, planned = next_fetch(deepcopy(self.plan), self.now_ms, broker_epoch=self.broker_epoch)
            if planned is not None and planned.session_id:
                kept = set(self.leaders) - {index for _, index in planned.forgotten}
                assert kept <= set(self.copies)


TestSession = Session.TestCase
TestSession.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
