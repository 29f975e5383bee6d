"""A node leads a partition or copies it, as committed facts say, and keeps its records whichever it is."""

import asyncio

import pytest

from ropewalk.base.errors import NotLeader
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.metadata.records import PartitionChanged
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import produce
from tests.kafka.door import Door, at_the_door, batch_of, produce_request

HERE, ELSEWHERE = NodeId(0), NodeId(7)


async def change(
    door: Door, topic_id: bytes, *, leader: NodeId | None, epoch: int, replicas: tuple[NodeId, ...]
) -> None:
    """Commit another state of the partition, as a controller elsewhere would have."""
    record = PartitionChanged(
        TopicId(topic_id), 0, replicas, replicas, leader, LeaderEpoch(epoch), partition_epoch=epoch
    )
    door.node._parts.cluster.image.apply(record)
    await door.node.partitions.follow([record])


def test_a_former_leader_sends_its_writers_away_and_keeps_its_records() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t")
        await door.produce("t", batch_of("a"))
        in_flight = door.send(produce.API, 9, produce_request("t", batch_of("b")))
        while next(door.node.partitions.all_led()).log.end_offset < 2:
            await asyncio.sleep(0.0001)
        await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE, HERE))
        answer = (await in_flight).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT, "it may be there on the other node"
        with pytest.raises(NotLeader):
            door.node.partitions.find("t", 0)
        (replica,) = door.node.partitions.all_followed()
        assert (replica.leader, replica.leader_epoch, replica.log.end_offset) == (ELSEWHERE, 1, 2)
        await change(door, topic_id, leader=HERE, epoch=2, replicas=(HERE,))
        assert (await door.produce("t", batch_of("c"))).base_offset == 2

    at_the_door(story)


def test_a_reader_that_waits_hears_that_the_leader_is_another() -> None:
    async def story(door: Door) -> int:
        topic_id = await door.create("t")
        reading = asyncio.ensure_future(door.fetch("t", 0, wait_ms=50_000))
        while not next(door.node.partitions.all_led()).watcher_count:
            await asyncio.sleep(0.0001)
        await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE, HERE))
        return (await reading).error_code

    assert at_the_door(story) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_is_kept_by_others_is_removed_here() -> None:
    async def story(door: Door) -> tuple[bool, list[object]]:
        topic_id = await door.create("t")
        await door.produce("t", batch_of("a"))
        await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE,))
        return door.node._parts.ports.disk.exists("/data/t-0"), list(door.node.partitions)

    assert at_the_door(story) == (False, [])


def test_a_start_removes_nothing_that_the_image_merely_does_not_name() -> None:
    async def story(door: Door) -> tuple[bool, bool]:
        topic_id = await door.create("t")
        await door.produce("t", batch_of("a"))
        partitions, directory = door.node.partitions, door.node._parts.place.directory
        held = directory.partitions()
        partitions._by_id[TopicId(topic_id)].clear()  # as in a start that has not opened it
        image = door.node._parts.cluster.image
        image.apply(
            PartitionChanged(TopicId(topic_id), 0, (ELSEWHERE,), (ELSEWHERE,), ELSEWHERE, LeaderEpoch(1), 1)
        )
        await partitions.open_all(held)
        before = door.node._parts.ports.disk.exists("/data/t-0")
        await partitions.remove_strays(held)
        return before, door.node._parts.ports.disk.exists("/data/t-0")

    assert at_the_door(story) == (True, False)


def test_newcomers_do_not_raise_the_minimum_before_they_are_in_sync() -> None:
    async def story(door: Door) -> list[int]:
        topic_id = TopicId(await door.create("t"))
        replicas = (HERE, ELSEWHERE, NodeId(8))
        codes = []
        for epoch, adding in ((1, replicas[1:]), (2, ())):
            record = PartitionChanged(
                topic_id,
                0,
                replicas,
                (HERE,),
                HERE,
                LeaderEpoch(0),
                partition_epoch=epoch,
                adding=adding,
            )
            door.node._parts.cluster.image.apply(record)
            await door.node.partitions.follow([record])
            codes.append((await door.produce("t", batch_of("a"))).error_code)
        return codes

    assert at_the_door(story) == [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS]


def test_a_process_that_has_not_registered_leads_nothing() -> None:
    """What the image says is about a former process, which may have written more in that epoch than this one has."""

    async def story(door: Door) -> None:
        topic_id = await door.create("t")
        await door.produce("t", batch_of("a"))
        roles = door.node.partitions._roles
        roles._may_lead = lambda: False  # as in a cluster, before the image has this process's registration
        await change(door, topic_id, leader=HERE, epoch=1, replicas=(HERE, ELSEWHERE))
        with pytest.raises(NotLeader):
            door.node.partitions.find("t", 0)
        (replica,) = door.node.partitions.all_followed()
        assert (replica.leader, replica.log.end_offset) == (None, 1)
        roles._may_lead = lambda: True
        await change(door, topic_id, leader=HERE, epoch=2, replicas=(HERE,))
        assert (await door.produce("t", batch_of("b"))).base_offset == 1

    at_the_door(story)
