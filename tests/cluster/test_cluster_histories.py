"""Logs whose histories part come together again, and what the leader has deleted goes everywhere."""

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.broker.partitions.partition import Partition
from ropewalk.client.administration.admin import Admin
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.produce import Acks
from ropewalk.client.producer import Producer
from ropewalk.controller.reassignment import decide_set_observers
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_replication import TOPIC, copies, create, facts, hosted, read, send


def others_than(*node_ids: int | None) -> list[int]:
    return [node_id for node_id in range(3) if node_id not in node_ids]


async def create_away_from_the_controller(nodes: Nodes, client: Client) -> int:
    """Make the topic, again if need be, so that a node leads it that can be cut off from the controller."""
    for _ in range(20):
        await create(client)
        leader = facts(nodes, 0).leader
        if leader is not None and leader != nodes.controller():
            return leader
        await Admin(client).delete_topics([TOPIC])
    raise AssertionError("the controller's node led every time")


@pytest.mark.parametrize("seed", range(3))
def test_what_only_a_lost_leader_had_is_cut_when_it_comes_back(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            leader = await create_away_from_the_controller(nodes, client)
            await send(Producer(client, TOPIC), "a", "b")
            partition = hosted(nodes, leader)
            assert isinstance(partition, Partition)
            for other in others_than(leader):
                nodes.world.network.partition(f"node{leader}", f"node{other}")
            await send(Producer(client, TOPIC, acks=Acks.LEADER), "lost")
            assert (partition.log.end_offset, partition.high_watermark) == (3, 2)
            await nodes.until(lambda: facts(nodes, 0).leader not in (None, leader))
            nodes.world.network.partition("client", f"node{leader}")  # which still believes that it leads
            async with nodes.client() as another:
                await send(Producer(another, TOPIC), "kept")
            nodes.world.network.mend_all()
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1, 2})
            one, two, three = await copies(nodes, 0, 1, 2)
            assert one == two == three
            assert await read(client, 3) == ["a", "b", "kept"]

    in_a_cluster(story, seed=seed)


def test_a_follower_that_missed_everything_begins_where_its_leader_does() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            producer = Producer(client, TOPIC)
            await send(producer, "a", "b")
            absent = next(node_id for node_id in (1, 2) if node_id != facts(nodes, 0).leader)
            nodes.members[absent].kill()
            await nodes.until(lambda: absent not in facts(nodes, 0).isr)
            await send(producer, "c", "d", "e")
            await Admin(client).delete_records(TOPIC, {0: 4})
            await nodes.members[absent].start()
            await nodes.until(lambda: absent in facts(nodes, 0).isr)
            log = hosted(nodes, absent).log
            assert (log.start_offset, log.end_offset) == (4, 5)
            await send(producer, "f")
            assert log.end_offset == 6

    in_a_cluster(story)


def test_what_the_leader_deletes_goes_from_its_followers_too() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            producer = Producer(client, TOPIC)
            await send(producer, "a", "b", "c")
            await Admin(client).delete_records(TOPIC, {0: 2})
            await send(producer, "d")
            await nodes.until(
                lambda: [hosted(nodes, node_id).log.start_offset for node_id in range(3)] == [2, 2, 2]
            )

    in_a_cluster(story)


def test_with_acks_of_the_leader_nobody_waits_for_followers() -> None:
    async def story(nodes: Nodes) -> tuple[int, int]:
        async with nodes.client() as client:
            await create(client)
            await send(Producer(client, TOPIC), "a")
            leader = facts(nodes, 0).leader
            assert leader is not None
            for other in others_than(leader):
                for third in others_than(other):
                    nodes.world.network.partition(f"node{other}", f"node{third}")
            await send(Producer(client, TOPIC, acks=Acks.LEADER), "b")
            partition = hosted(nodes, leader)
            return partition.log.durable_offset, partition.high_watermark

    assert in_a_cluster(story) == (2, 1)


def test_an_observer_has_everything_and_is_waited_for_by_nobody() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client, replicas=2)
            topic = nodes[0].image.topics[TOPIC]
            (outside,) = others_than(*topic.partitions[0].replicas)
            producer = Producer(client, TOPIC)
            await send(producer, "a")
            await nodes[0]._parts.cluster.propose(
                lambda image: decide_set_observers(
                    image,
                    TOPIC,
                    0,
                    [NodeId(outside)],
                    settings=nodes[0]._parts.topics.settings,
                    now_ms=0,
                ),
                None,
            )
            await send(producer, "b")
            await nodes.until(lambda: hosted(nodes, outside).high_watermark == 2)
            nodes.members[outside].kill()
            await send(producer, "c")
            assert set(facts(nodes, 0).isr) == set(facts(nodes, 0).replicas)
            assert outside not in facts(nodes, 0).replicas

    # Node 0 decides, and has to be among the replicas.
    in_a_cluster(story)
