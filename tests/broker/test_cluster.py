"""Changes to the cluster's facts: decided one at a time, on the newest image, and followed before they are answered."""

import asyncio
from collections.abc import Sequence

import pytest

from ropewalk.base.errors import InvalidRequest, NodeStopping, NotController, StorageFailed, TimedOut
from ropewalk.base.ids import NodeId, ProducerId, TopicId
from ropewalk.base.limits import ELECTIONS_PER_TURN
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.decisions import Decisions
from ropewalk.broker.cluster.facts import Facts
from ropewalk.controller.elections import InTurns
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import AppendOutcome, Committed, Holder, Raced, Snapshot, Unknown
from ropewalk.metadata.records import (
    ChangeAbandoned,
    ControllerChanged,
    MetadataRecord,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from ropewalk.runtime.clock import SystemClock


class ScriptedLog:
    """A metadata log whose answers are given beforehand; what another writer added is in `others`."""

    epoch = 1
    snapshot_due = False
    holder: Holder | None = None
    trouble: str | None = None
    unheard: str | None = None
    parted: str | None = None

    def __init__(self, *outcomes: str) -> None:
        self._outcomes = list(outcomes)
        self.records: list[MetadataRecord] = []
        self.others: list[MetadataRecord] = []

    @property
    def end_offset(self) -> int:
        return len(self.records)

    async def append(
        self, records: Sequence[MetadataRecord], *, expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        outcome = self._outcomes.pop(0) if self._outcomes else "committed"
        assert expected_epoch == self.epoch
        if outcome == "full":
            raise StorageFailed("no room")
        if outcome == "deposed":
            self.records.append(ControllerChanged(NodeId(1), self.epoch + 1))
            return Raced(self.epoch + 1, self.end_offset)
        if outcome == "raced":
            self.records += self.others
            return Raced(self.epoch, self.end_offset)
        assert expected_end_offset == self.end_offset
        if outcome == "unknown but written":
            self.records += records
            return Unknown("no answer")
        self.records += records
        return Committed(self.end_offset)

    async def snapshot(self) -> Snapshot:
        return Snapshot(0, 0, ())

    async def tail(self, start_offset: int) -> tuple[MetadataRecord, ...]:
        return tuple(self.records[start_offset:])

    async def write_snapshot(self, snapshot: Snapshot) -> None:
        raise AssertionError("none is due")

    def heard(self, start_offset: int) -> tuple[MetadataRecord, ...]:
        return tuple(self.records[start_offset:])

    async def take_over(self, node_id: NodeId, *, expected_epoch: int) -> int | None:
        raise AssertionError("the epoch has begun already")

    async def news(self, *, end_offset: int, holder_epoch: int, timeout_ms: float) -> None:
        raise AssertionError("nobody waits")

    async def run(self) -> None:
        raise AssertionError("there is nothing to hear")

    def close(self) -> None:
        pass


def allocate(image: Image) -> list[MetadataRecord]:
    return [ProducerIdsAllocated(NodeId(0), ProducerId(image.end_producer_id + 10))]


async def running(log: ScriptedLog) -> tuple[Cluster, "asyncio.Future[tuple[None, None]]", list[int]]:
    facts = Facts()
    decisions = Decisions(log, facts, SystemClock())
    followed: list[int] = []

    async def follow(records: Sequence[MetadataRecord]) -> None:
        followed.append(len(records))

    await decisions.load()
    facts.follow_with(follow)
    return Cluster(facts, decisions), asyncio.gather(decisions.run(), facts.run_following()), followed


def stop(cluster: Cluster) -> None:
    decisions = cluster._decisions
    assert decisions is not None
    decisions.stop()
    cluster.facts.stop()


@pytest.mark.parametrize(
    ("outcomes", "end_producer_id"),
    [
        pytest.param([], 10, id="committed"),
        pytest.param(["raced"], 110, id="another was quicker: decided again on the newer image"),
    ],
)
def test_a_change_is_decided_on_the_newest_image(outcomes: list[str], end_producer_id: int) -> None:
    async def main() -> int:
        log = ScriptedLog(*outcomes)
        log.others = [ProducerIdsAllocated(NodeId(1), ProducerId(100))]
        cluster, task, followed = await running(log)
        await cluster.propose(allocate, None)
        assert sum(followed) == 1 + len(outcomes)
        task.cancel()
        return cluster.image.end_producer_id

    assert asyncio.run(main()) == end_producer_id


def test_what_is_committed_while_the_node_is_busy_is_followed_at_once() -> None:
    async def main() -> None:
        cluster, task, followed = await running(ScriptedLog())
        may_go_on = asyncio.Event()

        async def follow(records: Sequence[MetadataRecord]) -> None:
            followed.append(len(records))
            await may_go_on.wait()

        cluster.facts.follow_with(follow)
        first = asyncio.ensure_future(cluster.propose(allocate, None))
        for _ in range(5):
            await cluster.commit(allocate, None)  # does not wait for the node
        second, all_followed = (
            asyncio.ensure_future(cluster.propose(allocate, None)),
            asyncio.ensure_future(cluster.followed()),
        )
        for _ in range(10):
            await asyncio.sleep(0)
        assert cluster.image.end_producer_id == 70
        assert not any(waiting.done() for waiting in (first, second, all_followed))
        may_go_on.set()
        await asyncio.gather(first, second, all_followed)
        assert followed == [1, 6]
        task.cancel()

    asyncio.run(main())


def test_a_node_that_cannot_follow_says_so_to_those_who_wait_and_goes_on() -> None:
    async def main() -> None:
        cluster, task, followed = await running(ScriptedLog())

        async def refuse(_: Sequence[MetadataRecord]) -> None:
            raise StorageFailed("that directory is another's")

        cluster.facts.follow_with(refuse)
        with pytest.raises(StorageFailed, match="another's"):
            await cluster.propose(allocate, None)
        assert cluster.image.end_producer_id == 10

        async def follow(records: Sequence[MetadataRecord]) -> None:
            followed.append(len(records))

        cluster.facts.follow_with(follow)
        await cluster.propose(allocate, None)
        assert followed == [1]
        task.cancel()

    asyncio.run(main())


def test_a_change_of_nothing_is_followed_too() -> None:
    async def main() -> None:
        cluster, task, followed = await running(ScriptedLog())
        await cluster.propose(lambda _: (), None)
        assert followed == [0]
        task.cancel()

    asyncio.run(main())


def test_an_unknown_outcome_is_told_as_such_and_the_image_still_follows_the_log() -> None:
    async def main() -> int:
        cluster, task, _ = await running(ScriptedLog("unknown but written"))
        with pytest.raises(TimedOut):
            await cluster.propose(allocate, None)
        task.cancel()
        return cluster.image.end_producer_id

    assert asyncio.run(main()) == 10


def test_a_refused_change_leaves_the_next_one_alone() -> None:
    async def main() -> int:
        cluster, task, _ = await running(ScriptedLog("full"))

        def refuse(_: Image) -> list[MetadataRecord]:
            raise InvalidRequest("no")

        with pytest.raises(StorageFailed):
            await cluster.propose(allocate, None)
        with pytest.raises(InvalidRequest):
            await cluster.propose(refuse, None)
        await asyncio.gather(cluster.propose(allocate, None), cluster.propose(allocate, None))
        task.cancel()
        return cluster.image.end_producer_id

    assert asyncio.run(main()) == 20


def test_whoever_waits_when_the_node_stops_is_sent_away() -> None:
    async def main() -> None:
        cluster, task, _ = await running(ScriptedLog())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        waiting = asyncio.ensure_future(cluster.propose(allocate, None))
        await asyncio.sleep(0)
        stop(cluster)
        with pytest.raises(NodeStopping):
            await waiting
        with pytest.raises(NodeStopping):
            await cluster.propose(allocate, None)
        with pytest.raises(NodeStopping):
            await cluster.followed()

    asyncio.run(main())


def test_whoever_waits_for_the_node_to_follow_is_sent_away_when_it_stops() -> None:
    async def main() -> None:
        cluster, task, _ = await running(ScriptedLog())

        async def never(_: Sequence[MetadataRecord]) -> None:
            await asyncio.Event().wait()

        cluster.facts.follow_with(never)
        waiting = [asyncio.ensure_future(cluster.propose(allocate, None)) for _ in range(2)]
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stop(cluster)
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, NodeStopping)

    asyncio.run(main())


def test_a_controller_that_was_replaced_stops_deciding() -> None:
    async def main() -> None:
        log = ScriptedLog("deposed")
        cluster, task, _ = await running(log)
        waiting = [asyncio.ensure_future(cluster.propose(allocate, None)) for _ in range(3)]
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, NotController)
        assert not cluster.decides
        assert cluster.image.controller_id == 1
        with pytest.raises(NotController):
            await cluster.propose(allocate, None)
        task.cancel()

    asyncio.run(main())


def test_a_large_change_that_failed_half_way_is_given_up_before_the_next() -> None:
    topics: list[MetadataRecord] = [
        TopicCreated(TopicId(bytes([number]) * 16), f"topic-{number}", "o" * 600_000) for number in range(4)
    ]

    async def main() -> None:
        log = ScriptedLog("committed", "committed", "full")
        cluster, task, followed = await running(log)
        with pytest.raises(StorageFailed):
            await cluster.propose(lambda _: topics, None)
        assert cluster.image.is_amid_change
        await cluster.propose(allocate, None)
        assert not cluster.image.topics
        assert ChangeAbandoned() in log.records
        await cluster.propose(lambda _: topics, None)
        assert len(cluster.image.topics) == 4
        assert sum(followed) == 1 + 4
        task.cancel()

    asyncio.run(main())


def test_where_nobody_decides_a_proposal_is_refused() -> None:
    async def main() -> None:
        cluster = Cluster(Facts(), None)
        assert not cluster.decides
        with pytest.raises(NotController):
            await cluster.propose(allocate, None)

    asyncio.run(main())


def test_a_node_that_only_hears_of_changes_knows_when_it_has_reached_one() -> None:
    async def main() -> None:
        facts = Facts()
        followed: list[int] = []

        async def follow(records: Sequence[MetadataRecord]) -> None:
            followed.append(len(records))

        facts.follow_with(follow)
        task = asyncio.ensure_future(facts.run_following())
        waiting = asyncio.ensure_future(facts.reached(2))
        facts.apply(allocate(facts.image), start_offset=facts.image.end_offset)
        await asyncio.sleep(0)
        assert not waiting.done()
        facts.apply(allocate(facts.image), start_offset=facts.image.end_offset)
        await waiting
        assert sum(followed) == facts.followed_offset == 2
        await facts.reached(1)
        task.cancel()

    asyncio.run(main())


def test_a_snapshot_brings_a_node_that_fell_behind_up_to_date() -> None:
    async def main() -> None:
        facts, other = Facts(), Image()
        followed: list[MetadataRecord] = []

        async def follow(records: Sequence[MetadataRecord]) -> None:
            followed.extend(records)

        facts.follow_with(follow)
        topics = [TopicCreated(TopicId(b"a" * 16), "kept"), TopicCreated(TopicId(b"b" * 16), "deleted")]
        facts.apply(topics, start_offset=0)
        facts.begin()
        task = asyncio.ensure_future(facts.run_following())
        for record in (
            TopicCreated(TopicId(b"a" * 16), "kept"),
            TopicCreated(TopicId(b"c" * 16), "made"),
            *allocate(other),
        ):
            other.apply(record)
        facts.restart(Snapshot(3, 40, tuple(other.facts())))
        await facts.reached(40)
        assert [*facts.image.facts()] == [*other.facts()]
        assert facts.image.end_offset == facts.followed_offset == 40
        assert TopicDeleted(TopicId(b"b" * 16)) in followed
        assert TopicCreated(TopicId(b"c" * 16), "made") in followed
        task.cancel()

    asyncio.run(main())


def test_a_decision_about_many_partitions_is_made_in_turns_and_anew_if_the_image_has_changed() -> None:
    async def main() -> tuple[int, list[int], int]:
        log = ScriptedLog()
        cluster, tasks, _ = await running(log)
        begun: list[int] = []
        turn_count = 0

        def decide(image: Image) -> InTurns:
            begun.append(image.end_offset)
            for number in range(3 * ELECTIONS_PER_TURN):
                yield
                if (
                    number == 2 * ELECTIONS_PER_TURN and len(begun) == 1
                ):  # something is heard from the log meanwhile
                    log.records += allocate(image)
                    cluster.facts.apply(log.records[image.end_offset :], start_offset=image.end_offset)
            return allocate(image)

        async def beside() -> None:
            nonlocal turn_count
            while True:
                turn_count += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(beside())
        await cluster.commit(decide, None)
        other.cancel()
        stop(cluster)
        tasks.cancel()
        return turn_count, begun, cluster.image.end_producer_id

    turn_count, begun, end_producer_id = asyncio.run(main())
    assert turn_count >= 4
    assert begun == [0, 1]
    assert end_producer_id == 20
