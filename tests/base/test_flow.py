"""The flow of connections against a model that is nothing but its table: reasons, and what each forbids."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ropewalk.base.budget import ByteBudget
from ropewalk.base.flow import Flow, FlowBounds
from ropewalk.base.limits import BUDGET_SMALL_BYTES

BOUNDS = FlowBounds(
    requests_max=3, owed_bytes_max=1000, requests_per_turn=4, turn_ms=2.0, buffer_bytes_min=1 << 16
)
BUDGET_BYTES = 4 * BUDGET_SMALL_BYTES
LARGE = 2 * BUDGET_SMALL_BYTES
"""More than a connection may hold while the budget is spent, unless it is the one that is let on."""


class Wait:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def hurry(self) -> None:
        self.heard.append("hurry")

    def abandon(self) -> None:
        self.heard.append("abandon")


class Line:
    """A connection as the shell has it, and what it should be allowed by the table."""

    def __init__(self, budget: ByteBudget) -> None:
        self.flow = Flow(BOUNDS, budget, self)
        self.budget = budget
        self.reasons: set[str] = set()
        self.holds = 0
        self.waits: list[Wait] = []
        self.due: list[int | None] = []
        """One for each request: the size of its answer, None until there is one."""
        self.unanswered_bytes = 0
        self.unhandled_bytes = 0
        self.buffer_bytes = 0
        self.untaken_bytes = 0
        self.is_lost = False
        self.is_called = False

    def on_room(self) -> None:
        self.is_called = True

    @property
    def owed_bytes(self) -> int:
        return sum(size or 0 for size in self.due)

    @property
    def is_handled(self) -> bool:
        counted = {
            "held": self.holds > 0,
            "waited": bool(self.waits),
            "many due": len(self.due) >= BOUNDS.requests_max,
            "much owed": self.owed_bytes >= BOUNDS.owed_bytes_max,
            "no room": self.budget.is_overdrawn and self.buffer_bytes <= BOUNDS.buffer_bytes_min,
        }
        return not self.reasons and not any(counted.values())

    def settle(self) -> None:
        """As a shell does after whatever has happened to it. What is decided then is what the table says."""
        flow, budget = self.flow, self.budget
        flow.charge(self.buffer_bytes, self.untaken_bytes)
        flow.decide_reading(self.unhandled_bytes, self.buffer_bytes)
        if self.holds:
            assert not flow.is_reading
        elif not self.unhandled_bytes:
            assert flow.is_reading
        elif not self.is_handled:
            assert not flow.is_reading
        elif not budget.is_spent or (flow.charged_bytes <= BUDGET_SMALL_BYTES and not budget.is_overdrawn):
            assert flow.is_reading


class Flows(RuleBasedStateMachine):
    @initialize(count=st.integers(1, 3))
    def begin(self, count: int) -> None:
        self.budget = ByteBudget(BUDGET_BYTES)
        self.lines = [Line(self.budget) for _ in range(count)]
        self.others_bytes = 0

    def line(self, number: int) -> Line:
        return self.lines[number % len(self.lines)]

    def settle(self, *touched: Line) -> None:
        """Those to whom something has happened, and whomever the budget calls: nobody else looks."""
        for line in touched:
            line.settle()
        while called := [line for line in self.lines if line.is_called]:
            for line in called:
                line.is_called = False
                line.settle()

    @rule(number=st.integers(0, 2))
    def hold(self, number: int) -> None:
        line = self.line(number)
        line.flow.hold()
        line.holds += 1
        self.settle(line)

    @rule(number=st.integers(0, 2))
    def release(self, number: int) -> None:
        line = self.line(number)
        if line.holds:
            line.holds -= 1
            assert line.flow.release() == (line.holds == 0)
            self.settle(line)

    @rule(number=st.integers(0, 2))
    def begin_wait(self, number: int) -> None:
        line = self.line(number)
        line.waits.append(Wait())
        line.flow.begin_wait(line.waits[-1])
        self.settle(line)

    @rule(number=st.integers(0, 2))
    def end_wait(self, number: int) -> None:
        line = self.line(number)
        if line.waits:
            assert line.flow.end_wait(line.waits.pop())
            self.settle(line)

    @rule(number=st.integers(0, 2), is_over=st.booleans())
    def pause_door(self, number: int, is_over: bool) -> None:
        line = self.line(number)
        if is_over:
            line.flow.resume()
            line.reasons.discard("door paused")
        else:
            line.flow.pause()
            line.reasons.add("door paused")
        self.settle(line)

    @rule(number=st.integers(0, 2), is_over=st.booleans(), untaken_bytes=st.integers(1, LARGE))
    def pause_writing(self, number: int, is_over: bool, untaken_bytes: int) -> None:
        line = self.line(number)
        if is_over:
            line.flow.resume_writing()
            line.reasons.discard("untaken")
            line.untaken_bytes = 0
        else:
            line.flow.pause_writing()
            line.reasons.add("untaken")
            line.untaken_bytes = untaken_bytes
        self.settle(line)

    @rule(number=st.integers(0, 2), throttles_ms=st.lists(st.integers(1, 100), min_size=1, max_size=4))
    def mute(self, number: int, throttles_ms: list[int]) -> None:
        """However often and in whatever order, it is muted for the longest, and that much is told."""
        line = self.line(number)
        line.flow.unmute()
        assert sum(line.flow.mute(0.0, throttle_ms) for throttle_ms in throttles_ms) == max(throttles_ms)
        line.reasons.add("muted")
        self.settle(line)

    @rule(number=st.integers(0, 2))
    def unmute(self, number: int) -> None:
        line = self.line(number)
        line.flow.unmute()
        line.reasons.discard("muted")
        self.settle(line)

    @rule(number=st.integers(0, 2), count=st.integers(1, 8), request_ms=st.sampled_from([0.0, 0.5, 2.0]))
    def take_a_turn(self, number: int, count: int, request_ms: float) -> None:
        line = self.line(number)
        line.flow.begin_handling(0.0)
        assert line.flow.is_handling
        over = [line.flow.is_turn_over(request_ms * (index + 1)) for index in range(count)]
        line.flow.is_handling = False
        assert over == [
            index + 1 >= BOUNDS.requests_per_turn or request_ms * (index + 1) >= BOUNDS.turn_ms
            for index in range(count)
        ]
        if any(over):
            line.reasons.add("had its turn")
        self.settle(line)

    @rule(number=st.integers(0, 2))
    def go_round(self, number: int) -> None:
        line = self.line(number)
        line.flow.begin_next_turn()
        line.reasons.discard("had its turn")
        self.settle(line)

    @rule(number=st.integers(0, 2), held_bytes=st.integers(0, LARGE))
    def request(self, number: int, held_bytes: int) -> None:
        """It comes to a handler, which waits."""
        line = self.line(number)
        if line.is_handled and not line.is_lost:
            line.flow.on_request()
            line.flow.on_kept_waiting(held_bytes)
            line.due.append(None)
            line.unanswered_bytes += held_bytes
            self.settle(line)

    @rule(number=st.integers(0, 2), size=st.integers(0, 1200), which=st.integers(0, 9))
    def answer(self, number: int, size: int, which: int) -> None:
        line = self.line(number)
        waiting = [index for index, answer in enumerate(line.due) if answer is None]
        if waiting:
            line.due[waiting[which % len(waiting)]] = size
            held_bytes = line.unanswered_bytes if len(waiting) == 1 else 0
            line.unanswered_bytes -= held_bytes
            line.flow.on_answered(size, held_bytes)
            self.settle(line)

    @rule(number=st.integers(0, 2))
    def send(self, number: int) -> None:
        """What is answered, in the order of the requests."""
        line = self.line(number)
        if line.flow.may_send and not line.is_lost:
            sent: list[int] = []
            while line.due and line.due[0] is not None:
                sent.append(line.due.pop(0) or 0)
            line.flow.on_sent(len(sent), sum(sent))
            self.settle(line)

    @rule(
        number=st.integers(0, 2),
        unhandled_bytes=st.sampled_from([0, 1, LARGE]),
        buffer_bytes=st.sampled_from([0, 1 << 16, LARGE]),
    )
    def receive(self, number: int, unhandled_bytes: int, buffer_bytes: int) -> None:
        line = self.line(number)
        line.unhandled_bytes = unhandled_bytes
        line.buffer_bytes = max(buffer_bytes, unhandled_bytes)
        self.settle(line)

    @rule(number=st.integers(0, 2))
    def calm_down(self, number: int) -> None:
        """All reasons of its own are over, so that the budget alone decides."""
        line = self.line(number)
        for _ in range(line.holds):
            line.flow.release()
        for wait in line.waits:
            line.flow.end_wait(wait)
        line.flow.begin_next_turn()
        line.flow.unmute()
        line.flow.resume()
        line.flow.resume_writing()
        line.holds, line.untaken_bytes = 0, 0
        line.waits.clear()
        line.reasons.clear()
        self.settle(line)

    @rule(share=st.sampled_from([0.0, 0.9, 1.0, 1.6]))
    def others(self, share: float) -> None:
        """Somebody else holds so much of the budget."""
        wanted = int(BUDGET_BYTES * share)
        if wanted > self.others_bytes:
            self.budget.take(wanted - self.others_bytes)
        else:
            self.budget.give_back(self.others_bytes - wanted)
        self.others_bytes = wanted
        self.settle()

    @rule(number=st.integers(0, 2))
    def end_input(self, number: int) -> None:
        line = self.line(number)
        if not line.flow.has_input_ended:
            line.flow.end_input()
            assert all(wait.heard == ["hurry"] for wait in line.waits)
            self.settle(line)

    @precondition(lambda self: len(self.lines) > 1)
    @rule(number=st.integers(0, 2))
    def lose(self, number: int) -> None:
        line = self.lines.pop(number % len(self.lines))
        line.is_lost = True
        line.flow.lose()
        assert line.flow.charged_bytes == 0
        assert all(wait.heard[-1] == "abandon" for wait in line.waits)
        assert not line.flow.may_handle(LARGE)
        line.flow.decide_reading(0, 0)
        assert not line.flow.is_reading
        self.settle()

    @invariant()
    def what_is_allowed_is_what_the_table_allows(self) -> None:
        for line in getattr(self, "lines", ()):
            flow = line.flow
            assert flow.may_handle(line.buffer_bytes) == line.is_handled
            assert flow.may_send == ("door paused" not in line.reasons)
            assert flow.owes_much == (line.owed_bytes >= BOUNDS.owed_bytes_max)
            assert flow.is_finished(line.buffer_bytes) == (
                flow.has_input_ended and not line.due and line.is_handled
            )

    @invariant()
    def whoever_may_go_on_has_been_called(self) -> None:
        for line in getattr(self, "lines", ()):
            if line.is_handled and not line.holds and not self.budget.is_spent:
                assert line.flow.is_reading

    @invariant()
    def one_of_the_large_is_let_on_while_the_budget_is_spent(self) -> None:
        stuck = [
            line
            for line in getattr(self, "lines", ())
            if line.unhandled_bytes and line.is_handled and not line.flow.is_reading
        ]
        if stuck:
            assert any(line.unhandled_bytes and line.flow.is_reading for line in self.lines)

    @invariant()
    def the_budget_holds_what_connections_hold(self) -> None:
        if hasattr(self, "budget"):
            for line in self.lines:
                assert line.flow.charged_bytes == (
                    line.buffer_bytes + line.owed_bytes + line.unanswered_bytes + line.untaken_bytes
                )
            held = sum(line.flow.charged_bytes for line in self.lines)
            assert self.budget.held_bytes == held + self.others_bytes


def test_one_that_was_stopped_by_an_overdrawn_budget_is_called_when_there_is_room() -> None:
    budget = ByteBudget(BUDGET_BYTES)
    line = Line(budget)
    budget.take(2 * BUDGET_BYTES)
    line.unhandled_bytes = line.buffer_bytes = 100
    line.settle()
    assert not line.flow.is_reading
    budget.give_back(2 * BUDGET_BYTES)
    assert line.is_called


def test_one_that_has_read_all_there_was_lets_the_next_on() -> None:
    budget = ByteBudget(BUDGET_BYTES)
    budget.take(BUDGET_BYTES)
    lines = [Line(budget), Line(budget)]
    for line in lines:
        line.unhandled_bytes = line.buffer_bytes = LARGE
        line.settle()
    assert [line.flow.is_reading for line in lines] == [True, False]
    lines[0].unhandled_bytes = 0
    lines[0].settle()
    assert lines[1].is_called


TestFlows = Flows.TestCase
TestFlows.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
