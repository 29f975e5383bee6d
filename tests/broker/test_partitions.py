"""Partitions in step with an image that does not wait for them."""

import asyncio

from ropewalk.base.ids import TopicId
from ropewalk.metadata.records import Fact, TopicDeleted, TopicSettingsChanged
from tests.kafka.door import Door, at_the_door


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
