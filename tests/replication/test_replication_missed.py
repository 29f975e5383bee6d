"""Which replicas have missed deletions that their leader cannot tell them of any more."""

import pytest
from msgspec.structs import replace

from ropewalk.base.ids import NodeId, Offset
from ropewalk.log.erasures import Erasures
from ropewalk.replication.missed import Missed
from tests.replication.given import facts, leader

PROCESS = 7


def has_missed(missed: Missed, erased: Erasures, fetch_offset: int, *, broker_epoch: int = PROCESS) -> bool:
    return missed.has_missed(
        NodeId(3),
        broker_epoch=broker_epoch,
        fetch_offset=Offset(fetch_offset),
        start_offset=Offset(5),
        erased=erased,
    )


@pytest.mark.parametrize(("fetch_offset", "told"), [(5, False), (6, True), (19, True), (20, False)])
def test_a_replica_goes_on_where_nothing_is_missing_or_begins_at_the_start(
    fetch_offset: int, told: bool
) -> None:
    assert has_missed(Missed(), Erasures(20), fetch_offset) is told


def test_a_copy_that_was_begun_here_goes_on_until_something_is_removed() -> None:
    missed, erased = Missed(), Erasures(20)
    assert not has_missed(missed, erased, 5)
    assert not has_missed(missed, erased, 12)
    erased.on_removed(11)  # below where the copy is, but who knows what of it came before that
    assert has_missed(missed, erased, 12)
    assert not has_missed(missed, erased, 5)
    assert not has_missed(missed, erased, 12)


def test_a_copy_that_another_process_began_proves_nothing() -> None:
    missed, erased = Missed(), Erasures(20)
    assert not has_missed(missed, erased, 5)
    assert has_missed(missed, erased, 12, broker_epoch=PROCESS + 1)


def test_nothing_is_to_be_removed_while_somebody_copies_everything_and_is_heard() -> None:
    missed, erased = Missed(), Erasures(20)
    core = leader(facts(1, 2), end_offset=30, high_watermark=30)

    def would_be_missed(now_ms: int) -> bool:
        return missed.would_be_missed(core.followers, erased=erased, now_ms=now_ms, silent_ms_max=100)

    def fetch(offset: int, now_ms: int) -> None:
        assert not has_missed(missed, erased, offset)
        core.on_fetch(NodeId(3), broker_epoch=PROCESS, fetch_offset=Offset(offset), now_ms=now_ms)

    assert not would_be_missed(1000)
    fetch(5, 1000)
    assert would_be_missed(1100)
    assert not would_be_missed(1101)
    fetch(20, 1200)  # from here on it would be told of everything, wherever it stood before
    assert not would_be_missed(1200)


def test_everybody_who_may_be_elected_is_counted_on() -> None:
    core = leader(facts(1, 2), end_offset=10, high_watermark=10)
    assert core.counts_on(NodeId(2))
    assert not core.counts_on(NodeId(3))
    core.on_facts(replace(facts(1, partition_epoch=1), eligible=(NodeId(3),)), 0)
    assert not core.counts_on(NodeId(2))
    assert core.counts_on(NodeId(3))
