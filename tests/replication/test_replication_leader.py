"""What a leader counts, whom it asks for, and whom it stops waiting for."""

import pytest

from ropewalk.base.ids import NodeId, Offset
from ropewalk.metadata.records import BrokerState
from ropewalk.replication.leader import LeaderSettings, Outcome
from ropewalk.replication.stragglers import Stragglers
from tests.replication.given import Story, brokers, facts, leader, node_ids


def test_the_high_watermark_is_the_smallest_durable_end_in_sync() -> None:
    story = Story(leader(facts(1, 2, 3)))
    story.append(10)
    story.fetch(2, 10)
    assert story.high_watermark == 0
    story.fetch(3, 4)
    assert story.high_watermark == 4
    story.fetch(3, 10)
    assert story.high_watermark == 10


def test_the_leader_s_own_disk_counts_too() -> None:
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    story.append(10, durable=False)
    story.fetch(2, 10)
    assert story.high_watermark == 0


def test_a_leader_alone_in_sync_knows_all_that_is_durable_to_be_committed() -> None:
    assert leader(facts(1), end_offset=9, durable_offset=6).high_watermark == 6


def test_a_follower_that_says_less_than_before_does_not_move_the_high_watermark_back() -> None:
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    story.append(10)
    story.fetch(2, 10)
    story.fetch(2, 3)
    assert story.high_watermark == 10
    story.append(12)
    assert story.high_watermark == 10


def test_an_older_process_of_a_follower_is_not_listened_to() -> None:
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    story.append(10)
    story.fetch(2, 2, epoch=8)
    story.fetch(2, 10, epoch=7)
    assert story.high_watermark == 2


@pytest.mark.parametrize("node", [4, 9])
def test_somebody_who_keeps_no_copy_is_not_listened_to(node: int) -> None:
    story = Story(leader(facts(1, replicas=(1, 2, 3))))
    assert not story.fetch(node, 0)
    assert NodeId(node) not in story.core.followers


def test_a_fetch_beyond_the_end_proves_nothing() -> None:
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    story.append(10)
    story.fetch(2, 11)
    assert story.high_watermark == 0


def test_an_observer_is_known_and_never_counted_or_asked_for() -> None:
    story = Story(leader(facts(1, replicas=(1, 2), observers=(3,))))
    story.append(10)
    assert not story.fetch(3, 10)
    assert story.high_watermark == 10
    assert story.core.followers[NodeId(3)].durable_offset == 10
    assert story.proposed() == []


def test_below_the_minimum_nothing_is_committed() -> None:
    story = Story(leader(facts(1), isr_count_min=2))
    story.append(10)
    assert (story.core.is_below_minimum, story.high_watermark) == (True, 0)
    story.core.on_facts(facts(1), story.now_ms, settings=LeaderSettings(isr_count_min=1))
    assert (story.core.is_below_minimum, story.high_watermark) == (False, 10)


def test_below_the_minimum_a_replica_can_still_join_although_the_high_watermark_stands_still() -> None:
    """The high watermark is behind the epoch's start and cannot reach it before somebody joins."""
    story = Story(leader(facts(1), end_offset=10, high_watermark=6, isr_count_min=2))
    assert not story.fetch(2, 9)
    assert story.fetch(2, 10)
    assert story.proposed() == [1, 2]


def test_a_replica_joins_only_where_the_epoch_began() -> None:
    """What is below may have been committed by a leader before, also where this one does not know it yet."""
    story = Story(leader(facts(1, 2), end_offset=10, high_watermark=4))
    assert not story.fetch(3, 6)
    assert story.proposed() == []
    assert story.fetch(3, 10)
    assert story.proposed() == [1, 2, 3]


def test_a_replica_joins_only_at_the_high_watermark() -> None:
    story = Story(leader(facts(1, 2)))
    story.append(5)
    story.fetch(2, 5)
    assert not story.fetch(3, 4)
    assert story.fetch(3, 5)


def test_whoever_is_proposed_is_waited_for_before_it_is_committed() -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    assert story.proposed() == [1, 2]
    story.append(5)
    assert story.high_watermark == 0
    story.fetch(2, 5)
    assert story.high_watermark == 5


def test_whoever_is_to_leave_is_waited_for_until_that_is_committed() -> None:
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    story.append(5)
    story.now_ms = 1001
    assert story.proposed() == [1]
    assert story.high_watermark == 0
    story.learn(1, partition_epoch=1, replicas=(1, 2))
    assert story.high_watermark == 5


def test_one_proposal_is_under_way_at_a_time() -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    assert story.proposed() == [1, 2]
    story.fetch(3, 0)
    assert story.proposed() == []
    story.learn(1, 2, partition_epoch=1)
    assert story.proposed() == [1, 2, 3]


def test_a_refusal_ends_the_waiting_and_it_is_tried_again_after_a_while() -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    proposal = story.propose()
    story.append(5)
    story.hear(proposal, Outcome.REFUSED)
    assert story.high_watermark == 5
    story.fetch(2, 5)
    assert story.proposed() == []
    story.now_ms = 100
    assert story.proposed() == [1, 2]


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.ACCEPTED])
def test_only_the_image_ends_the_waiting_where_it_may_have_been_accepted(outcome: Outcome) -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    story.hear(story.propose(), outcome)
    story.append(5)
    assert story.high_watermark == 0
    assert story.core.isr == set(node_ids(1))
    story.learn(1, partition_epoch=1)
    assert story.high_watermark == 5


def test_a_doubt_is_ended_by_proposing_what_is_committed_already() -> None:
    """2 was proposed, nobody knows what came of it, and 2 is gone: it would be waited for forever."""
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    story.hear(story.propose(), Outcome.UNKNOWN)
    story.append(5)
    story.now_ms = 2000
    proposal = story.propose(states={2: BrokerState.FENCED})
    assert proposal is not None
    assert [member.node_id for member in proposal.isr] == [1]
    assert story.high_watermark == 0


def test_a_refusal_of_the_second_proposal_leaves_the_first_in_doubt() -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    story.hear(story.propose(), Outcome.UNKNOWN)
    story.now_ms = 100
    story.hear(story.propose(), Outcome.REFUSED)
    story.append(5)
    assert story.high_watermark == 0


def test_the_outcome_of_a_proposal_that_the_image_has_overtaken_is_no_news() -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0)
    overtaken = story.propose()
    story.learn(1, partition_epoch=1)
    current = story.propose()
    story.hear(overtaken, Outcome.REFUSED)
    story.append(5)
    assert current is not None
    assert story.high_watermark == 0, "2 may be in sync by the second proposal"


def test_facts_that_are_older_than_those_known_change_nothing() -> None:
    story = Story(leader(facts(1, 2, partition_epoch=4)))
    story.learn(1, partition_epoch=3)
    assert story.core.isr == set(node_ids(1, 2))


@pytest.mark.parametrize(
    ("node", "state", "expected"),
    [
        pytest.param(2, BrokerState.FENCED, [1, 3], id="fenced, and does not stay"),
        pytest.param(2, BrokerState.STOPPING, [1, 2, 3], id="about to stop, and stays"),
        pytest.param(3, BrokerState.FENCED, [], id="fenced, and does not join"),
        pytest.param(3, BrokerState.STOPPING, [], id="about to stop, and does not join"),
        pytest.param(1, BrokerState.FENCED, [], id="fenced itself, and does not ask"),
        pytest.param(1, BrokerState.STOPPING, [1, 2, 3], id="about to stop itself, and asks"),
    ],
)
def test_the_state_of_a_broker_decides_who_is_asked_for(
    node: int, state: BrokerState, expected: list[int]
) -> None:
    story = Story(leader(facts(1, 2)))
    story.fetch(3, 0)
    proposal = story.propose(states={node: state})
    assert ([] if proposal is None else [int(member.node_id) for member in proposal.isr]) == expected


def test_a_newcomer_is_named_with_the_epoch_it_spoke_in_and_only_if_that_is_current() -> None:
    story = Story(leader(facts(1)))
    story.fetch(2, 0, epoch=7)
    assert story.propose(epochs={2: 9}) is None, "it has started again, and nobody has heard from that one"
    story.fetch(2, 0, epoch=9)
    proposal = story.propose(epochs={2: 9})
    assert proposal is not None
    assert [(member.node_id, member.broker_epoch) for member in proposal.isr] == [(1, 7), (2, 9)]


def test_a_follower_that_reaches_what_the_end_was_at_its_last_fetch_does_not_lag() -> None:
    """Under load nobody ever stands at the very end."""
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    for end_offset in range(10, 100, 10):
        story.append(end_offset)
        story.fetch(2, end_offset - 10)
        story.now_ms += 400
        assert story.proposed() == []
    story.now_ms += 700
    assert story.proposed() == [1]


def test_a_follower_at_the_end_lags_only_from_the_next_append_on() -> None:
    story = Story(leader(facts(1, 2, replicas=(1, 2))))
    story.fetch(2, 0)
    story.now_ms = 60_000
    assert story.proposed() == []
    story.append(5)
    story.now_ms = 61_000
    assert story.proposed() == []
    story.now_ms = 61_001
    assert story.core.due_at_ms() == 61_001
    assert story.proposed() == [1]


def test_a_replica_that_would_be_dropped_at_once_does_not_join() -> None:
    story = Story(leader(facts(1, 2)))
    story.append(5)
    story.fetch(2, 5)
    story.append(50)
    story.fetch(3, 5)
    story.now_ms = 5000
    assert not story.fetch(3, 5), "it has reached the high watermark, and is far behind"
    assert story.fetch(3, 50)


def test_a_follower_that_is_removed_is_forgotten_and_one_that_is_added_begins_anew() -> None:
    story = Story(leader(facts(1, 2)))
    story.append(5)
    story.fetch(2, 5)
    story.fetch(3, 5)
    story.learn(1, 3, partition_epoch=1, replicas=(1, 3))
    assert tuple(story.core.followers) == node_ids(3)
    story.learn(1, 3, partition_epoch=2, replicas=(1, 3, 2))
    assert not story.core.followers[NodeId(2)].is_heard


def _quorum(*isr: int, isr_count_min: int = 2) -> Story:
    story = Story(leader(facts(*isr), isr_count_min=isr_count_min, straggler_ms=100, lag_ms_max=60_000))
    story.append(5)
    return story


def test_a_straggler_is_dropped_where_a_quorum_is_enough() -> None:
    story = _quorum(1, 2, 3)
    story.fetch(2, 5)
    story.now_ms = 101
    Stragglers().sweep([story.core], story.now_ms)
    assert story.proposed() == [1, 2]
    story.learn(1, 2, partition_epoch=1)
    assert story.high_watermark == 5


def test_a_straggler_is_waited_for_where_everybody_has_to_agree() -> None:
    story = Story(leader(facts(1, 2, 3)))
    story.append(5)
    story.fetch(2, 5)
    story.now_ms = 500
    Stragglers().sweep([story.core], story.now_ms)
    assert story.proposed() == []


@pytest.mark.parametrize(
    ("isr", "isr_count_min"),
    [
        pytest.param((1, 3), 1, id="a majority of the replicas stays"),
        pytest.param((1, 2, 3), 3, id="the minimum stays"),
    ],
)
def test_a_straggler_is_kept_where_too_few_would_be_left(isr: tuple[int, ...], isr_count_min: int) -> None:
    story = _quorum(*isr, isr_count_min=isr_count_min)
    story.fetch(2, 5)
    story.now_ms = 500
    Stragglers().sweep([story.core], story.now_ms)
    assert 3 in story.core.isr
    assert story.proposed() in ([], [1, 2, 3])


def test_of_two_stragglers_as_many_go_as_may() -> None:
    story = _quorum(1, 2, 3)
    story.now_ms = 500
    Stragglers().sweep([story.core], story.now_ms)
    assert len(story.proposed()) == 2


def test_a_straggler_is_dropped_from_every_partition_at_once_and_not_again_for_a_while() -> None:
    slow, idle = _quorum(1, 2, 3), _quorum(1, 2, 3)
    idle.fetch(2, 5)
    idle.fetch(3, 5)
    slow.fetch(2, 5)
    stragglers = Stragglers()
    slow.now_ms = idle.now_ms = 200
    stragglers.sweep([slow.core, idle.core], 200)
    assert slow.proposed() == idle.proposed() == [1, 2]

    later = _quorum(1, 2, 3)
    later.fetch(2, 5)
    for now_ms, expected in ((30_199, []), (30_200, [1, 2])):
        later.now_ms = now_ms
        stragglers.sweep([later.core], now_ms)
        assert later.proposed() == expected


def test_a_straggler_returns_after_it_has_kept_up_for_a_while() -> None:
    story = _quorum(1, 2, 3)
    story.fetch(2, 5)
    story.fetch(3, 0)
    story.now_ms = 101
    Stragglers().sweep([story.core], story.now_ms)
    assert story.proposed() == [1, 2]
    story.learn(1, 2, partition_epoch=1)
    for now_ms in range(200, 10_101, 100):
        story.now_ms = now_ms
        assert not story.fetch(3, 5)
    assert story.core.due_at_ms() == 10_101
    story.now_ms = 10_101
    assert story.proposed() == [1, 2, 3]


def test_a_start_is_settled_when_all_replicas_have_named_it() -> None:
    story = Story(leader(facts(1, 2, 3), end_offset=10, high_watermark=10))
    story.core.on_start(Offset(4))
    for node in (2, 3):
        assert (story.core.start_settled, story.core.low_watermark(brokers())) == (0, -1)
        story.core.on_fetch(
            NodeId(node), broker_epoch=7, fetch_offset=Offset(10), start_offset=Offset(4), now_ms=0
        )
    assert (story.core.start_settled, story.core.low_watermark(brokers())) == (4, 4)


@pytest.mark.parametrize(
    ("starts", "fenced", "awaited", "expected"),
    [
        pytest.param({2: 4, 3: 4}, (), 4, None, id="all have named it"),
        pytest.param({2: 4}, (3,), 4, 4, id="the one out of service is spoken for"),
        pytest.param({2: 4}, (3,), None, None, id="nobody waits"),
        pytest.param({2: 4, 3: 0}, (3,), 4, 4, id="out of service with an earlier start"),
        pytest.param({2: 0}, (3,), 4, None, id="one in service is waited for first"),
        pytest.param({2: 4, 3: 0}, (), 4, None, id="all are in service"),
    ],
)
def test_a_start_is_recorded_for_those_out_of_service(
    starts: dict[int, int], fenced: tuple[int, ...], awaited: int | None, expected: int | None
) -> None:
    in_sync = tuple(node for node in (1, 2, 3) if node not in fenced)
    core = leader(facts(*in_sync), end_offset=10, high_watermark=10)
    core.on_start(Offset(4))
    for node, start in starts.items():
        core.on_fetch(
            NodeId(node), broker_epoch=7, fetch_offset=Offset(10), start_offset=Offset(start), now_ms=0
        )
    proposal = core.propose(
        brokers(states=dict.fromkeys(fenced, BrokerState.FENCED)),
        0,
        start_awaited=None if awaited is None else Offset(awaited),
    )
    assert (None if proposal is None else proposal.start_offset) == expected


def test_who_begins_before_its_leader_does_not_join() -> None:
    story = Story(leader(facts(1, 2), end_offset=10, high_watermark=10))
    story.core.on_start(Offset(4))
    story.fetch(2, 10)
    assert (
        story.core.on_fetch(
            NodeId(3), broker_epoch=7, fetch_offset=Offset(10), start_offset=Offset(3), now_ms=0
        )
        is False
    )
    assert story.core.on_fetch(
        NodeId(3), broker_epoch=7, fetch_offset=Offset(10), start_offset=Offset(4), now_ms=0
    )


def test_a_smaller_set_in_sync_counts_only_with_the_larger_minimum_of_its_partition_epoch() -> None:
    story = Story(leader(facts(1, 2, 3), isr_count_min=2))
    story.append(10)
    story.fetch(2, 10)
    raised = LeaderSettings(isr_count_min=3)
    story.core.on_facts(facts(1, 2, partition_epoch=9), story.now_ms, settings=raised)
    assert (story.core.is_below_minimum, story.high_watermark) == (True, 0)
