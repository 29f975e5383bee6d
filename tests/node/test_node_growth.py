"""A node that is alone looks after its topics as a cluster does."""

import asyncio

from tests.kafka.door import Door, at_the_door, batch_of


def test_topics_of_a_node_that_is_alone_grow_under_load_and_only_those_that_may() -> None:
    async def story(door: Door) -> None:
        await door.create("grows", partitions_auto_max="3", partitions_auto_byte_rate="1000")
        await door.create("stays", partitions_auto_byte_rate="1000")
        batch = batch_of("v" * 5_000)
        began_s = door.world.now_s
        while len((await door.topics())["grows"].partitions) < 3:
            assert door.world.now_s - began_s < 60, "it did not grow"
            for topic in ("grows", "stays"):
                assert (await door.produce(topic, bytearray(batch))).error_code == 0
            await asyncio.sleep(0.5)
        assert (await door.produce("grows", bytearray(batch), partition=2)).error_code == 0
        assert len((await door.topics())["stays"].partitions) == 1

    at_the_door(story, "partitions.auto.sustained.ms=5000")
