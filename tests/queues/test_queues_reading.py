"""What is read of the log for a receive, how long one waits for it, and when messages were sent by what the log tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.limits import (
    QUEUE_DEDUPLICATION_MS,
    QUEUE_DEDUPLICATION_REST_MS,
    QUEUE_DELAY_MS_MAX,
    QUEUE_GATHER_MS,
    QUEUE_MARK_MS,
)
from ropewalk.queues import QueuePartition
from ropewalk.queues.answers import Received
from ropewalk.queues.commands import Message, Receive, Send, Sent
from ropewalk.queues.errors import TooManyInFlight
from ropewalk.queues.events import MoveIntended
from ropewalk.queues.sent_times import SentTimes
from ropewalk.queues.settings import DeadLetterTarget, QueueSettings
from ropewalk.queues.state import QueueState
from ropewalk.queues.step import QueueStep

NOW_MS = 1_000_000
KINDS = [pytest.param(False, id="standard"), pytest.param(True, id="fifo")]


def given_in(step: QueueStep) -> list[int] | None:
    """None: nobody was answered."""
    answers = [reply.answer for reply in (*step.prompts, *step.replies)]
    if not answers:
        return None
    (answer,) = answers
    assert isinstance(answer, Received)
    return [message.offset for message in answer.messages]


def messages(start: int, end: int) -> tuple[Message, ...]:
    return tuple(Message(offset, NOW_MS, f"g{offset % 2}") for offset in range(start, end))


@pytest.mark.parametrize("is_fifo", KINDS)
def test_a_receive_waits_for_what_can_be_read_and_is_given_all_it_wants(is_fifo: bool) -> None:
    core = QueuePartition(QueueSettings(is_fifo=is_fifo), QueueState(), committed_end=20, now_ms=NOW_MS)
    assert given_in(core.decide(1, Receive(10, 30_000), NOW_MS)) is None
    assert given_in(core.on_read(messages(0, 4), 4, NOW_MS)) is None, "four are too few, and there is more"
    assert core.next_read() == 4
    taken = given_in(core.on_read(messages(4, 15), 15, NOW_MS))
    assert taken is not None
    assert len(taken) == 10
    assert taken == list(range(10)) or is_fifo, "a FIFO queue gives by groups"


@pytest.mark.parametrize("is_fifo", KINDS)
@pytest.mark.parametrize("wait_ms", [0, 5_000])
def test_a_receive_that_has_something_does_not_wait_long_for_a_slow_disk(is_fifo: bool, wait_ms: int) -> None:
    core = QueuePartition(QueueSettings(is_fifo=is_fifo), QueueState(), committed_end=20, now_ms=NOW_MS)
    core.decide(1, Receive(10, 30_000, wait_ms), NOW_MS)
    core.on_read(messages(0, 4), 4, NOW_MS)
    assert core.deadline_ms() == NOW_MS + QUEUE_GATHER_MS
    assert given_in(core.tick(NOW_MS + QUEUE_GATHER_MS - 1)) is None
    assert sorted(given_in(core.tick(NOW_MS + QUEUE_GATHER_MS)) or ()) == [0, 1, 2, 3]


def test_a_receive_is_answered_at_once_where_nothing_more_can_be_read() -> None:
    core = QueuePartition(QueueSettings(), QueueState(), committed_end=4, now_ms=NOW_MS)
    core.decide(1, Receive(10, 30_000), NOW_MS)
    assert given_in(core.on_read(messages(0, 4), 4, NOW_MS)) == [0, 1, 2, 3]


def test_a_queue_that_may_give_no_more_does_not_read_for_it() -> None:
    core = QueuePartition(
        QueueSettings(is_fifo=True, in_flight_max=2), QueueState(), committed_end=20, now_ms=NOW_MS
    )
    core.decide(1, Receive(10, 30_000), NOW_MS)
    assert given_in(core.on_read(messages(0, 4), 4, NOW_MS)) == [0, 2], "as many as may be in flight"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(QueueSettings(in_flight_max=2, retry_backoff_ms=5_000), id="that rest"),
        pytest.param(
            QueueSettings(in_flight_max=2, dead_letters=DeadLetterTarget(1, bytes(16), 0)),
            id="that nobody moves",
        ),
    ],
)
def test_messages_count_as_in_flight_as_long_as_they_are_kept_in_mind(settings: QueueSettings) -> None:
    core = QueuePartition(settings, QueueState(), committed_end=9, now_ms=NOW_MS)
    core.decide(1, Receive(2, 1_000), NOW_MS)
    assert given_in(core.on_read(messages(0, 9), 9, NOW_MS)) == [0, 1]
    core.tick(NOW_MS + 1_000)
    assert core.figures().in_flight_count == 0
    (refusal,) = core.decide(2, Receive(2, 1_000), NOW_MS + 1_000).prompts
    assert isinstance(refusal.answer, TooManyInFlight)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 400_000)), min_size=1, max_size=60))
def test_no_message_is_taken_for_older_than_it_is(steps: list[tuple[int, int]]) -> None:
    """Messages come in handfuls, and the log's end is told after each."""
    times = SentTimes()
    sent_ms: list[int] = []
    now_ms = NOW_MS
    for count, pause_ms in steps:
        sent_ms += [now_ms] * count
        times.note(len(sent_ms), now_ms)
        now_ms += pause_ms
    oldest_ms = sent_ms[-1] - QUEUE_DELAY_MS_MAX
    for offset, at_ms in enumerate(sent_ms):
        latest_ms = times.latest_ms(offset)
        assert latest_ms is not None
        assert latest_ms >= at_ms, "never early"
        assert latest_ms <= max(at_ms + QUEUE_MARK_MS, oldest_ms), "and late by little, where it matters"
    assert len(times) <= 1 + sum(each > oldest_ms for _, each in times)
    assert list(SentTimes(times)) == list(times)
    assert times.latest_ms(len(sent_ms)) is None


def test_what_an_unclean_election_lost_was_not_sent_before() -> None:
    times = SentTimes()
    times.note(10, 1_000)
    times.note(20, 5_000)
    times.note(12, 9_000)
    assert times.latest_ms(11) == 9_000
    assert times.latest_ms(9) == 1_000


def test_a_delay_counts_from_when_the_message_was_there_and_not_from_when_it_is_read() -> None:
    core = QueuePartition(QueueSettings(), QueueState(), committed_end=1, now_ms=NOW_MS)
    core.decide(1, Receive(1, 30_000, 20_000), NOW_MS + 3_000)
    step = core.on_read((Message(0, NOW_MS, "", 4_000),), 1, NOW_MS + 3_000)
    assert given_in(step) is None
    assert given_in(core.tick(NOW_MS + 3_999)) is None
    assert given_in(core.tick(NOW_MS + 4_000)) == [0]


def test_ids_that_have_run_out_are_forgotten_though_nobody_sends_any_more() -> None:
    core = QueuePartition(QueueSettings(is_fifo=True), QueueState(), committed_end=0, now_ms=NOW_MS)
    core.decide(1, Send((Sent("g", "one"), Sent("g", "two")), 0), NOW_MS)
    over_ms = NOW_MS + QUEUE_DEDUPLICATION_MS
    assert core.deadline_ms() == over_ms + QUEUE_DEDUPLICATION_REST_MS
    core.tick(over_ms - 1)
    assert core.figures().deduplication_count == 2
    core.tick(over_ms + QUEUE_DEDUPLICATION_REST_MS)
    assert core.figures().deduplication_count == 0
    assert core.deadline_ms() is None


def test_what_other_partitions_have_in_flight_counts() -> None:
    settings = QueueSettings(is_fifo=True, in_flight_max=5)
    core = QueuePartition(settings, QueueState(), committed_end=9, now_ms=NOW_MS)
    core.on_held_elsewhere(3, NOW_MS)
    core.decide(1, Receive(10, 30_000), NOW_MS)
    assert given_in(core.on_read(messages(0, 9), 9, NOW_MS)) == [0, 2]
    assert core.held_count == 2
    assert given_in(core.decide(2, Receive(10, 30_000, 20_000), NOW_MS)) is None
    assert given_in(core.on_held_elsewhere(2, NOW_MS)) == [1], (
        "a receive that waits is given what there is room for"
    )


def test_what_is_on_its_way_is_not_given_out_when_its_delay_is_counted_again() -> None:
    """`ropewalk-sim --queues`, seed 40577: a move task's message was received under the next leader, for which the delay began anew, and moved as well."""
    state = QueueState()
    state.apply(MoveIntended((0,), b"t" * 16, 0, 7, 0, 0, NOW_MS, task_id=b"a task"))
    core = QueuePartition(QueueSettings(), state, committed_end=2, now_ms=NOW_MS)
    core.decide(1, Receive(10, 30_000, 0), NOW_MS)
    core.on_read((Message(0, NOW_MS, delay_ms=1_000), Message(1, NOW_MS, delay_ms=1_000)), 2, NOW_MS)
    core.tick(NOW_MS + 1_001)
    assert given_in(core.decide(2, Receive(10, 30_000, 0), NOW_MS + 1_002)) == [1]


def test_a_receive_for_nothing_new_is_answered_at_once_with_what_its_id_was_given() -> None:
    core = QueuePartition(QueueSettings(is_fifo=True), QueueState(), committed_end=9, now_ms=NOW_MS)
    again = Receive(0, 30_000, 20_000, b"an id")
    assert given_in(core.decide(1, again, NOW_MS)) == [], "though there is something to read"
    core.decide(2, Receive(1, 30_000, 0, b"an id"), NOW_MS)
    assert given_in(core.on_read(messages(0, 9), 9, NOW_MS)) == [0]
    assert given_in(core.decide(3, again, NOW_MS)) == [0]
    assert given_in(core.decide(4, Receive(0, 30_000, 20_000, b"another"), NOW_MS)) == []


@pytest.mark.parametrize(
    ("after_ms", "expected"), [(QUEUE_DEDUPLICATION_MS - 1, [0]), (QUEUE_DEDUPLICATION_MS, [])]
)
def test_the_id_of_a_receive_counts_for_five_minutes_however_long_its_messages_are_hidden(
    after_ms: int, expected: list[int]
) -> None:
    core = QueuePartition(QueueSettings(is_fifo=True), QueueState(), committed_end=1, now_ms=NOW_MS)
    receive = Receive(10, 3_600_000, 0, b"an id")
    core.decide(1, receive, NOW_MS)
    assert given_in(core.on_read(messages(0, 1), 1, NOW_MS)) == [0]
    assert given_in(core.decide(2, receive, NOW_MS + after_ms)) == expected


def test_what_holds_a_message_up_is_the_first_of_its_group_that_is_hidden() -> None:
    core = QueuePartition(QueueSettings(is_fifo=True), QueueState(), committed_end=8, now_ms=NOW_MS)
    core.decide(1, Receive(1, 30_000), NOW_MS)
    core.on_read(messages(0, 8), 8, NOW_MS)
    assert [core.held_up_by(offset) for offset in range(8)] == [None, None, 0, None, 0, None, 0, None]
    assert core.figures().hidden_group_count == 1
    core.tick(NOW_MS + 30_000)
    assert core.held_up_by(2) is None
    assert core.figures().hidden_group_count == 0
