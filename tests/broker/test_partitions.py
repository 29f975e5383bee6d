"""Partitions in step with an image that does not wait for them."""

import asyncio

import pytest

from ropewalk.base.ids import TopicId
from ropewalk.metadata.records import Fact, TopicDeleted, TopicSettingsChanged
from ropewalk.wire.messages import produce
from tests.kafka.door import Door, at_the_door, batch_of, produce_request


def test_a_topic_may_be_deleted_while_the_node_still_drops_another() -> None:
    async def story(door: Door) -> list[str]:
        dropped, changed = [TopicId(await door.create(name)) for name in ("dropped", "changed")]
        image = door.node._parts.cluster.image
        image.apply(TopicDeleted(dropped))
        records: list[Fact] = [TopicDeleted(dropped), TopicSettingsChanged(changed, {})]
        following = asyncio.ensure_future(door.node.partitions.follow(records))
        while any(partition.topic_id == dropped for partition in door.node.partitions):
            await asyncio.sleep(0)
        assert not following.done(), "it is at the disk now"
        image.apply(TopicDeleted(changed))
        await following
        await door.node.partitions.follow([TopicDeleted(changed)])
        return [str(partition.name) for partition in door.node.partitions]

    assert at_the_door(story) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_partition_may_be_removed_while_it_is_being_synced(seed: int) -> None:
    """What a sync names must not be taken away under it: a sync that fails ends the node."""

    async def story(door: Door) -> str | None:
        await door.create("others")
        topic_id = TopicId(await door.create("orders"))
        partitions = door.node.partitions
        writing = door.send(produce.API, 9, produce_request("orders", batch_of("a")))
        while not partitions.find("orders", 0).log.end_offset:
            await asyncio.sleep(0.000_01)
        await asyncio.sleep(0)  # the sync has begun
        door.node._parts.cluster.image.apply(TopicDeleted(topic_id))
        await partitions.follow([TopicDeleted(topic_id)])
        await writing
        return (await door.produce("others", batch_of("b"))).error_message

    assert at_the_door(story, seed=seed, can_sync_everything=False) is None
