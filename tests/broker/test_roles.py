"""A node leads a partition or copies it, as committed facts say, and keeps its records whichever it is."""

import asyncio

import pytest

from ropewalk.base.errors import NotLeader
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from ropewalk.log.directory import Held
from ropewalk.metadata.records import PartitionChanged
from ropewalk.records.batch import decode_header
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


@pytest.mark.parametrize("seed", range(8))
def test_a_log_whose_role_has_changed_may_be_removed_while_it_is_being_synced(seed: int) -> None:
    """The sync is that of the leader; the one who is removed is its follower. A sync that fails ends the node."""

    async def story(door: Door) -> str | None:
        await door.create("others")
        topic_id = await door.create("t")
        writing = door.send(produce.API, 9, produce_request("t", batch_of("a")))
        while not door.node.partitions.find("t", 0).log.end_offset:
            await asyncio.sleep(0.000_01)
        await asyncio.sleep(0)  # the sync has begun
        await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE, HERE))
        await change(door, topic_id, leader=ELSEWHERE, epoch=2, replicas=(ELSEWHERE,))
        await writing
        return (await door.produce("others", batch_of("b"))).error_message

    assert at_the_door(story, seed=seed, can_sync_everything=False) is None


def test_who_copies_what_was_removed_a_moment_ago_asks_for_no_sync_of_it() -> None:
    """The image tells of a removal before fetchers hear of it; one of them may have a batch in hand that is not durable."""

    async def story(door: Door) -> str | None:
        await door.create("others")
        topic_id = await door.create("t")
        await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE, HERE))
        (replica,) = door.node.partitions.all_followed()
        batch = batch_of("a")
        replica.append(memoryview(batch), decode_header(batch), 0)
        await change(door, topic_id, leader=ELSEWHERE, epoch=2, replicas=(ELSEWHERE,))
        commits = door.node.partitions.home_of(replica).commits
        commits.note(replica)
        assert commits.waiting() == []
        return (await door.produce("others", batch_of("b"))).error_message

    assert at_the_door(story) is None


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


@pytest.mark.parametrize("seed", range(8))
def test_a_stray_that_is_wanted_again_is_not_removed_under_whoever_opens_it(seed: int) -> None:
    """A node that starts removes what others keep now; meanwhile the partition may be given back to it."""

    async def story(door: Door) -> list[str]:
        topic_ids = [await door.create(name) for name in ("others", "t")]
        for topic_id in topic_ids:
            await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE,))
        strays = [
            Held(TopicPartition(name, 0), TopicId(topic_id))
            for name, topic_id in zip(("others", "t"), topic_ids, strict=True)
        ]
        parts = door.node._parts
        await parts.ports.pool.run(parts.disk.directory.create_partitions, strays)
        await asyncio.gather(
            door.node.partitions.remove_strays(strays),
            change(door, topic_ids[1], leader=HERE, epoch=2, replicas=(HERE,)),
        )
        assert (await door.produce("t", batch_of("a"))).error_code == ErrorCode.NONE
        return [path for path, _ in door.machine.platters.files() if path.endswith("/t-0/partition")]

    assert len(at_the_door(story, seed=seed)) == 1


def test_who_has_let_go_of_a_log_says_nothing_more_of_where_it_starts() -> None:
    """A fetcher may have been told of a start a moment before. The name may be that of another copy by now, with fewer records."""

    async def story(door: Door) -> tuple[int, tuple[object, ...]]:
        topic_id = await door.create("t")
        for value in "abcde":
            await door.produce("t", batch_of(value))
        await change(door, topic_id, leader=ELSEWHERE, epoch=1, replicas=(ELSEWHERE, HERE))
        (replica,) = door.node.partitions.all_followed()
        await change(door, topic_id, leader=ELSEWHERE, epoch=2, replicas=(ELSEWHERE,))
        await change(door, topic_id, leader=ELSEWHERE, epoch=3, replicas=(ELSEWHERE, HERE))
        with pytest.raises(NotLeader):
            await door.node.partitions.trim(replica, Offset(3))
        await door.node._parts.disk.recovery_points.save()
        await door.restart()
        (partition,) = door.node.partitions.all_led()
        return partition.log.start_offset, partition.log.damaged

    assert at_the_door(story) == (0, ())
