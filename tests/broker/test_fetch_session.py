"""One fetch session: no mark is lost, whatever happens between a look and the answer."""

from collections.abc import Callable

import pytest

from ropewalk.base.errors import UnknownPartition
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.broker.partitions.partition import topic_deleted
from ropewalk.broker.reading.fetch_session import FetchSession, Found, Interest
from ropewalk.log.epochs import EpochEnd
from tests.broker.partition_bench import NAME, Bench, at_the_bench


def following(bench: Bench, offset: int) -> tuple[FetchSession, Interest]:
    """A session that watches the partition, from `offset` on, as a reader that knows epoch 0."""
    interest = Interest("t", 0, Offset(offset), 1 << 20, 0)
    session = FetchSession([interest], topics_by_id=False)
    session.watch()
    session.on_found(interest, bench.partition)
    return session, interest


def grow(bench: Bench) -> None:
    bench.append("b")


def trim(bench: Bench) -> None:
    bench.append("b")
    bench.partition.take_removal(start_offset_durable=Offset(2))


def change_epoch(bench: Bench) -> None:
    bench.partition.set_leader_epoch(LeaderEpoch(1))


def end(bench: Bench) -> None:
    bench.partition.end(topic_deleted(NAME))


@pytest.mark.parametrize("change", [grow, trim, change_epoch, end])
def test_what_changes_after_the_look_is_still_due(change: Callable[[Bench], None]) -> None:
    async def story(bench: Bench) -> None:
        bench.append("a")
        session, interest = following(bench, 1)
        looked_at = [Found(interest, bench.partition)]
        change(bench)
        session.tell(looked_at, everyone=False)
        assert list(session.due) == [interest]

    at_the_bench(story, durable_first=False)


def test_what_is_quiet_is_told_once_and_is_then_no_longer_due() -> None:
    async def story(bench: Bench) -> None:
        bench.append("a")
        session, interest = following(bench, 1)
        looked_at = [Found(interest, bench.partition)]
        assert session.tell(looked_at, everyone=False) == looked_at
        assert not session.due
        assert session.tell(looked_at, everyone=False) == []
        assert session.tell(looked_at, everyone=True) == looked_at

    at_the_bench(story, durable_first=False)


def test_an_error_is_told_every_time_and_what_comes_after_it_too() -> None:
    async def story(bench: Bench) -> None:
        session, interest = following(bench, 0)
        quiet = [Found(interest, bench.partition)]
        session.tell(quiet, everyone=False)
        in_error = [Found(interest, None, UnknownPartition("t-0"))]
        session.on_found(interest, bench.partition)
        for _ in range(2):
            assert session.tell(in_error, everyone=False) == in_error
        assert session.tell(quiet, everyone=False) == quiet

    at_the_bench(story, durable_first=False)


def test_who_was_sent_to_where_its_log_parts_is_told_everything_when_it_comes_back() -> None:
    """Of an answer that says so a replica takes nothing else: it would keep waiting for the leader's start and high watermark."""

    async def story(bench: Bench) -> None:
        bench.append("a")
        session, interest = following(bench, 1)
        diverging = [Found(interest, bench.partition, diverging=EpochEnd(LeaderEpoch(0), Offset(1)))]
        assert session.tell(diverging, everyone=False) == diverging
        assert list(session.due) == [interest]
        quiet = [Found(interest, bench.partition)]
        assert session.tell(quiet, everyone=False) == quiet
        assert session.tell(quiet, everyone=False) == []

    at_the_bench(story, durable_first=False)


def test_a_session_watches_only_while_it_lives() -> None:
    async def story(bench: Bench) -> None:
        session, interest = following(bench, 0)
        session.follow(Interest("t", 0, Offset(5), 10, -1))
        assert (interest.offset, interest.bytes_max, interest.leader_epoch) == (5, 10, -1)
        assert bench.partition.watcher_count == 1
        session.forget("t", 0)
        assert bench.partition.watcher_count == 0
        bench.append("a")
        assert not session.due
        again, _ = following(bench, 0)
        again.close()
        assert bench.partition.watcher_count == 0

    at_the_bench(story, durable_first=False)
