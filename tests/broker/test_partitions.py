"""Partitions in step with an image that does not wait for them."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from ropewalk.base.ids import LeaderEpoch, TopicId
from ropewalk.base.limits import ROLES_PER_TURN
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.roles import Roles
from ropewalk.metadata.image import changed
from ropewalk.metadata.records import Fact, MetadataRecord, TopicDeleted, TopicSettingsChanged
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


def test_only_the_partitions_that_a_record_names_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(door: Door) -> list[int]:
        topic_id = TopicId(await door.create("orders", 200))
        facts, looked_at = door.node._parts.cluster.facts, []
        update = Roles.update

        def counted(roles: Roles, hosted: Hosted, *rest: Any) -> bool:
            looked_at.append(hosted.name.partition)
            return update(roles, hosted, *rest)

        monkeypatch.setattr(Roles, "update", counted)
        image = facts.image
        partition = structs.replace(image.partition("orders", 77), partition_epoch=9)
        facts.apply([changed(topic_id, partition)], start_offset=image.end_offset)
        await facts.followed()
        return looked_at

    assert at_the_door(story) == [77]


def test_a_change_of_many_partitions_is_followed_in_turns_and_each_as_the_image_has_it_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(door: Door) -> tuple[int, set[LeaderEpoch]]:
        topic_id = TopicId(await door.create("orders", 300))
        facts, steps, loop = door.node._parts.cluster.facts, [], door.world.loop
        update, image = Roles.update, facts.image

        def counted(roles: Roles, hosted: Hosted, *rest: Any) -> bool:
            steps.append(loop.step_count)
            if len(steps) == 10:  # another change comes while this one is being followed
                facts.apply(of_epoch(5), start_offset=image.end_offset)
            return update(roles, hosted, *rest)

        def of_epoch(epoch: int) -> list[MetadataRecord]:
            return [
                changed(
                    topic_id,
                    structs.replace(
                        partition,
                        leader_epoch=LeaderEpoch(epoch),
                        partition_epoch=partition.partition_epoch + 1,
                    ),
                )
                for partition in image.topic("orders").partitions
            ]

        monkeypatch.setattr(Roles, "update", counted)
        facts.apply(of_epoch(3), start_offset=image.end_offset)
        await facts.followed()
        epochs = {partition.leader_epoch for partition in door.node.partitions.all_led()}
        return max(Counter(steps).values()), epochs

    assert at_the_door(story) == (ROLES_PER_TURN, {5})
