"""Commands show what answers within three seconds, and leave the rest open, while a node hangs."""

import asyncio
import io

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.cli.consumption import Consumption, Range
from ropewalk.cli.failure import Failed
from ropewalk.cli.record_format import compile_format
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.administration.groups import Groups
from ropewalk.client.producer import Producer
from ropewalk.records.record import Record
from ropewalk.views.group_lag import measure
from ropewalk.views.observation import ClusterSource, draw
from ropewalk.views.offsets import Anchor, Where
from ropewalk.views.topic_description import collect
from tests.cluster.nodes import Nodes, in_a_cluster

PATIENCE_S = 4.0


async def prepare(nodes: Nodes) -> int:
    """A topic of three partitions, one on each node, with a record in each; the node that is to hang, which is not the controller."""
    async with nodes.client() as client:
        await Admin(client).create_topics([NewTopic("spread", 3, 1)])
        producer = Producer(client, "spread")
        for index in range(3):
            await producer.send([Record(value=b"%d" % index)], partition=index)
        await producer.drain()
        for group in ("a", "b", "c", "d"):
            await Groups(client).commit(group, {TopicPartition("spread", index): 0 for index in range(3)})
    return 2


def test_a_topic_is_described_as_far_as_its_leaders_answer() -> None:
    async def story(nodes: Nodes) -> None:
        hanging = await prepare(nodes)
        nodes[hanging].pause()
        began_s = nodes.world.now_s
        async with nodes.client() as client:
            described = await collect(client, "spread", all_settings=False)
        assert nodes.world.now_s - began_s < PATIENCE_S
        ends = {row.leader: row.end_offset for row in described.partitions}
        assert ends == {0: 1, 1: 1, hanging: None}

    in_a_cluster(story)


def test_the_lag_of_groups_is_shown_as_far_as_it_is_known() -> None:
    async def story(nodes: Nodes) -> None:
        hanging = await prepare(nodes)
        nodes[hanging].pause()
        began_s = nodes.world.now_s
        async with nodes.client() as client:
            measured = await measure(client, Groups(client), ["a", "b", "c", "d"])
        assert nodes.world.now_s - began_s < 2 * PATIENCE_S
        known = [each for each in measured if each.unanswered is None]
        assert [each.group for each in measured] == ["a", "b", "c", "d"]
        assert known
        assert all((each.lag, each.unknown) == (2, 1) for each in known)

    in_a_cluster(story)


def test_top_goes_on() -> None:
    async def story(nodes: Nodes) -> None:
        hanging = await prepare(nodes)
        nodes[hanging].pause()
        began_s = nodes.world.now_s
        async with nodes.client() as client:
            picture = draw(None, await ClusterSource(client, internal=False).look())
        assert nodes.world.now_s - began_s < 4 * PATIENCE_S
        assert {row.leader: row.end for row in picture.partitions} == {0: 1, 1: 1, hanging: None}

    in_a_cluster(story)


def test_records_of_leaders_that_answer_are_printed_and_the_others_named() -> None:
    async def story(nodes: Nodes) -> None:
        hanging = await prepare(nodes)
        nodes[hanging].pause()
        began_s = nodes.world.now_s
        sink = io.BytesIO()
        wanted = Range(None, Where(Anchor.BEGINNING), None, None, exit_at_end=True)
        async with nodes.client() as client:
            consumption = Consumption(client, "spread", wanted, compile_format("%v\\n"), sink)
            with pytest.raises(Failed, match="does not answer"):
                await consumption.run()
        assert nodes.world.now_s - began_s < 2 * PATIENCE_S
        assert len(sink.getvalue().splitlines()) == 2

    in_a_cluster(story)


def test_who_waits_for_more_reads_a_partition_from_when_its_leader_answers() -> None:
    async def story(nodes: Nodes) -> None:
        hanging = await prepare(nodes)
        nodes[hanging].pause()
        sink = io.BytesIO()
        wanted = Range(None, Where(Anchor.BEGINNING), None, 3, exit_at_end=False)
        async with nodes.client() as client:
            consumption = Consumption(client, "spread", wanted, compile_format("%v\\n"), sink)
            reading = asyncio.ensure_future(consumption.run())
            await nodes.until(lambda: len(sink.getvalue().splitlines()) == 2)
            nodes[hanging].resume()
            assert await reading == 3
        assert sorted(sink.getvalue().split()) == [b"0", b"1", b"2"]

    in_a_cluster(story)
