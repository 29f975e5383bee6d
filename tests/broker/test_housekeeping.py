"""Housekeeping with many partitions: it comes round to all of them, and costs nothing where nothing happens."""

import asyncio

import pytest

from ropewalk.base.limits import PARTITIONS_PER_TURN
from ropewalk.wire.messages import delete_topics
from tests.kafka.door import Door, at_the_door, batch_of

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
