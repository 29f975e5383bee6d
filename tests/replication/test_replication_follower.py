"""What a follower asks, what it does about the answer, and where it cuts its log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log.epochs import EpochEnd
from ropewalk.replication.follower import (
    Append,
    Diverging,
    Elsewhere,
    Follower,
    MoveStart,
    Question,
    Records,
    Refusal,
    Restart,
    Truncate,
    Wait,
)
from ropewalk.replication.lineage import OutOfRange, find_divergence, truncation_offset
from tests.replication.nodes import ListLog


def _log(*epochs: int, start_offset: int = 0) -> ListLog:
    """One record for each epoch."""
    return ListLog(tuple((epoch, index) for index, epoch in enumerate(epochs)), start_offset=start_offset)


def _follower(*, high_watermark: int = 0) -> Follower:
    return Follower(leader_epoch=LeaderEpoch(5), high_watermark=Offset(high_watermark))


def _asked(follower: Follower, log: ListLog) -> Question:
    question = follower.ask(log, settled_offset=log.end_offset)
    assert question is not None
    return question


def _records(high_watermark: int, log_start_offset: int = 0) -> Records:
    return Records(Offset(high_watermark), Offset(log_start_offset))


def _diverging(epoch: int, end_offset: int) -> Diverging:
    return Diverging(EpochEnd(LeaderEpoch(epoch), Offset(end_offset)))


def test_it_asks_from_the_end_of_its_log_and_names_its_last_epoch() -> None:
    assert _asked(_follower(), _log(1, 1, 4)) == Question(LeaderEpoch(5), Offset(3), LeaderEpoch(4))
    assert _asked(_follower(), _log()) == Question(LeaderEpoch(5), Offset(0), LeaderEpoch(-1))


def test_it_asks_nothing_before_its_log_is_durable() -> None:
    follower, log = _follower(), _log(1, 1)
    assert follower.ask(log, settled_offset=Offset(1)) is None
    assert follower.ask(log, settled_offset=Offset(2)) is not None


def test_it_writes_what_it_is_sent_and_follows_the_leader_s_start() -> None:
    follower, log = _follower(), _log(1, 1)
    assert follower.on_answer(_asked(follower, log), _records(2), log) == [Append()]
    effects = follower.on_answer(_asked(follower, log), _records(2, 1), log)
    assert effects == [Append(), MoveStart(Offset(1))]


def test_its_high_watermark_is_what_it_was_told_as_far_as_it_is_durable() -> None:
    follower, log = _follower(high_watermark=1), _log(1, 1)
    assert follower.high_watermark(Offset(2)) == 1
    follower.on_answer(_asked(follower, log), _records(9), log)
    assert follower.high_watermark(Offset(2)) == 2
    assert follower.high_watermark(Offset(4)) == 4
    follower.on_answer(_asked(follower, log), _records(3), log)
    assert follower.high_watermark(Offset(9)) == 9, "a leader that has just been elected knows less"


def test_an_answer_counts_once_and_only_for_the_open_question() -> None:
    follower, log = _follower(), _log(1, 1)
    question = _asked(follower, log)
    assert follower.on_answer(question, _records(0), log) == [Append()]
    assert follower.on_answer(question, _records(0), log) == []


def test_an_answer_from_another_epoch_is_dropped() -> None:
    log = _log(1, 1)
    before = _follower()
    question = _asked(before, log)
    follower = Follower(leader_epoch=LeaderEpoch(6), high_watermark=Offset(0))
    _asked(follower, log)
    assert follower.on_answer(question, _diverging(1, 1), log) == []


def test_an_answer_to_what_was_asked_before_the_log_was_cut_is_dropped() -> None:
    follower = _follower()
    question = _asked(follower, _log(1, 1))
    assert follower.on_answer(question, _records(0), _log(1)) == []


@pytest.mark.parametrize("refusal", Refusal)
def test_a_refusal_is_waited_out(refusal: Refusal) -> None:
    follower, log = _follower(), _log(1)
    assert follower.on_answer(_asked(follower, log), refusal, log) == [Wait(refusal)]


@pytest.mark.parametrize(
    ("own", "diverging", "expected"),
    [
        pytest.param((1, 1, 1), (1, 2), 2, id="the leader's epoch ended earlier"),
        pytest.param((1, 1, 2), (1, 3), 2, id="the follower's epoch ended earlier"),
        pytest.param((1, 2, 4), (3, 3), 2, id="an epoch the follower does not have"),
        pytest.param((1, 2, 2), (0, 1), 0, id="nothing in common"),
    ],
)
def test_where_a_follower_cuts_its_log(
    own: tuple[int, ...], diverging: tuple[int, int], expected: int
) -> None:
    follower, log = _follower(high_watermark=3), _log(*own)
    effects = follower.on_answer(_asked(follower, log), _diverging(*diverging), log)
    assert effects == [Truncate(Offset(expected)) if expected else Restart(Offset(expected))]
    assert follower.high_watermark(Offset(9)) == expected


def test_a_follower_that_the_leader_cannot_continue_begins_again_at_the_leader_s_start() -> None:
    follower, log = _follower(high_watermark=1), _log(1, 1)
    effects = follower.on_answer(_asked(follower, log), Elsewhere(Offset(40)), log)
    assert effects == [Restart(Offset(40))]
    assert follower.high_watermark(Offset(50)) == 40


@pytest.mark.parametrize(
    ("fetch_offset", "last_epoch", "expected"),
    [
        pytest.param(6, 4, None, id="at the end"),
        pytest.param(4, 2, None, id="at the end of an epoch"),
        pytest.param(3, 2, None, id="within an epoch"),
        pytest.param(5, 2, EpochEnd(LeaderEpoch(2), Offset(4)), id="went on in an epoch that ended"),
        pytest.param(5, 3, EpochEnd(LeaderEpoch(2), Offset(4)), id="an epoch that the leader does not have"),
        pytest.param(7, 4, EpochEnd(LeaderEpoch(4), Offset(6)), id="beyond the end"),
        pytest.param(5, 9, EpochEnd(LeaderEpoch(4), Offset(6)), id="a later epoch"),
        pytest.param(1, 2, OutOfRange(Offset(2)), id="before the start"),
        pytest.param(3, 1, OutOfRange(Offset(2)), id="an epoch before all of the leader's"),
        pytest.param(2, -1, None, id="an empty log at the start"),
        pytest.param(5, -1, None, id="an empty log within"),
        pytest.param(7, -1, OutOfRange(Offset(2)), id="an empty log beyond the end"),
    ],
)
def test_what_a_leader_says_of_a_follower_s_log(
    fetch_offset: int, last_epoch: int, expected: EpochEnd | OutOfRange | None
) -> None:
    """The leader's log begins at 2: epoch 2 wrote it up to 4, epoch 4 the rest."""
    log = _log(2, 2, 2, 2, 4, 4, start_offset=2)
    found = find_divergence(
        log, fetch_offset=Offset(fetch_offset), last_fetched_epoch=LeaderEpoch(last_epoch)
    )
    assert found == expected


@st.composite
def _histories(draw: st.DrawFn) -> tuple[ListLog, ListLog]:
    """Two replicas' logs as a cluster could have made them: each epoch's leader continues some log there was."""
    logs: list[tuple[tuple[int, int], ...]] = [()]
    for epoch in range(draw(st.integers(1, 6))):
        log = draw(st.sampled_from(logs))
        for index in range(draw(st.integers(0, 3))):
            log = (*log, (epoch, 10 * epoch + index))
            logs.append(log)
    return ListLog(draw(st.sampled_from(logs))), ListLog(draw(st.sampled_from(logs)))


@given(_histories())
def test_a_follower_comes_to_agree_with_its_leader_and_loses_nothing_that_they_share(
    logs: tuple[ListLog, ListLog],
) -> None:
    leader, log = logs
    shared = 0
    for own, other in zip(log.records, leader.records, strict=False):
        if own != other:
            break
        shared += 1
    while True:
        divergence = find_divergence(
            leader, fetch_offset=log.end_offset, last_fetched_epoch=log.leader_epoch_latest
        )
        if divergence is None:
            break
        if isinstance(divergence, OutOfRange):
            offset = divergence.start_offset
        else:
            offset = truncation_offset(log, divergence)
        assert shared <= offset < log.end_offset
        log = ListLog(log.records[:offset])
    assert log.records == leader.records[:shared]
