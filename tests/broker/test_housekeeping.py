"""Housekeeping with many partitions: it comes round to all of them, and costs nothing where nothing happens."""

import asyncio

import pytest

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId
from ropewalk.base.limits import PARTITIONS_PER_TURN
from ropewalk.broker.partitions.cutting import Cutting
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.log.log import Log
from ropewalk.metadata.records import PartitionChanged
from ropewalk.wire.messages import delete_topics
from tests.kafka.door import Door, at_the_door, batch_of

ELSEWHERE = NodeId(7)
MANY = 2 * PARTITIONS_PER_TURN + 10


def snapshots(door: Door, partition: str) -> list[str]:
    return [
        path
        for path, _ in door.machine.platters.files()
        if f"/{partition}/" in path and path.endswith(".snapshot")
    ]


async def fill(door: Door, *partitions: int) -> None:
    """Close a segment or two, which are full after a millisecond: then a snapshot is due."""
    for index in partitions:
        for _ in range(3):
            await door.produce("t", batch_of("x"), partition=index)
            await asyncio.sleep(0.002)


def test_every_partition_gets_its_snapshot_however_many_there_are() -> None:
    async def story(door: Door) -> None:
        await door.create("t", MANY, segment_ms="1")
        await fill(door, 0, MANY - 1)
        await asyncio.sleep(4)
        assert snapshots(door, "t-0")
        assert snapshots(door, f"t-{MANY - 1}")
        assert not snapshots(door, "t-1")

    at_the_door(story)


def test_a_node_that_nobody_writes_to_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(door: Door) -> None:
        await door.create("t", MANY)
        await door.produce("t", batch_of("x"))
        await asyncio.sleep(3)
        changes: list[object] = []
        monkeypatch.setattr(door.machine.platters, "on_change", changes.append)
        await asyncio.sleep(30)
        assert changes == []
        await door.produce("t", batch_of("y"))
        written_count = len(changes)
        await asyncio.sleep(3)
        assert len(changes) > written_count > 0  # the record itself, and then its recovery point

    at_the_door(story)


def test_a_tick_holds_the_loop_no_longer_for_all_that_it_does_than_for_one_thing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by clusters of whole nodes, seed 461: high watermarks, snapshots, retention and compaction were due at once."""
    asked: list[int] = [0]
    is_wanted = LogWork.is_wanted

    def counting(work: LogWork, log: Log) -> bool:
        """The walks ask once or twice of each partition, and each turn is counted by itself."""
        if not asked[-1]:
            asyncio.get_running_loop().call_soon(asked.append, 0)
        asked[-1] += 1
        return is_wanted(work, log)

    async def story(door: Door) -> None:
        await door.create("t", PARTITIONS_PER_TURN - 10)
        housekeeping = door.node.housekeeping
        housekeeping._retention_due_ms = housekeeping._compaction_due_ms = housekeeping._scrub_due_ms = 0.0
        monkeypatch.setattr(LogWork, "is_wanted", counting)
        await housekeeping.tick()
        assert sum(asked) > 4 * (PARTITIONS_PER_TURN - 10)
        assert max(asked) <= 2 * PARTITIONS_PER_TURN

    at_the_door(story)


@pytest.mark.parametrize("seed", range(8))
def test_a_topic_may_be_deleted_while_its_snapshots_are_written(seed: int) -> None:
    async def story(door: Door) -> None:
        await door.create("t", 8, segment_ms="1")
        await fill(door, *range(8))
        request = delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState("t"),))
        await asyncio.gather(door.node.housekeeping.tick(), door.call(delete_topics.API, 6, request))
        assert not door.node.failed.done()
        await door.create("t", 8)

    at_the_door(story, seed=seed)


def test_what_finds_no_room_keeps_nobody_from_cutting_a_log_that_is_being_compacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The node follows when the cut is done, the cut waits for the pass of compaction to be given up, and that is done here."""
    monkeypatch.setattr("ropewalk.broker.upkeep.compactor.COMPACTION_BYTES_PER_TICK", 1)

    async def story(door: Door) -> int:
        parts = door.node._parts
        partitions, image = door.node.partitions, parts.cluster.image
        topic_id = TopicId(
            await door.create("t", segment_ms="1", cleanup_policy="compact", min_cleanable_dirty_ratio="0")
        )
        await fill(door, *[0] * 10)
        (partition,) = partitions.all_led()
        housekeeping = door.node.housekeeping
        housekeeping._compaction_due_ms = 0.0
        assert await housekeeping.compactor.step(), "a pass is under way"
        others = (ELSEWHERE, NodeId(0))
        there = PartitionChanged(topic_id, 0, others, others, ELSEWHERE, LeaderEpoch(1), 1)
        image.apply(there)
        await partitions.follow([there])
        (replica,) = partitions.all_followed()
        cutting = Cutting(partitions.log_work, parts.ports.pool, parts.ports.clock)
        cut = asyncio.ensure_future(
            cutting.cut_back(replica, parts.disk, Offset(2), leader_epoch=LeaderEpoch(1))
        )
        while not replica.is_at_work:
            await asyncio.sleep(0.0001)
        partitions._unopened[TopicId(b"u" * 16), 0] = StorageFailed("no room")
        here = PartitionChanged(topic_id, 0, others, others, NodeId(0), LeaderEpoch(2), 2)
        image.apply(here)
        parts.facts._unfollowed.append(here)
        parts.facts.follow_soon()
        async with asyncio.timeout(0.1):
            await housekeeping.tick()
            await cut
            await parts.facts.followed()
        assert next(partitions.all_led()).log is partition.log
        return partition.log.end_offset

    assert at_the_door(story) == 2
