"""Partitions on several nodes: who leads them, and what becomes of that when nodes come and go."""

from ropewalk.base.ids import NodeId
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.metadata.image import Partition
from tests.cluster.nodes import Nodes, in_a_cluster


async def create(nodes: Nodes, name: str, *, partitions: int = 3) -> None:
    async with nodes.client() as client:
        outcomes = await Admin(client).create_topics(
            [NewTopic(name, partition_count=partitions, replication_factor=3)]
        )
        assert set(outcomes.values()) == {None}, outcomes


def partitions_of(nodes: Nodes, name: str, *, seen_by: int) -> tuple[Partition, ...]:
    topic = nodes[seen_by].image.topics.get(name)
    return () if topic is None else topic.partitions


def test_every_node_leads_its_share_of_a_topic() -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes, "t")
        await nodes.until(lambda: len(partitions_of(nodes, "t", seen_by=2)) == 3)
        partitions = partitions_of(nodes, "t", seen_by=2)
        assert sorted(partition.leader or 0 for partition in partitions) == [0, 1, 2]
        assert {partition.isr for partition in partitions} <= {p.replicas for p in partitions}

    in_a_cluster(story)


def test_when_a_leader_is_killed_another_leads_within_a_second() -> None:
    async def story(nodes: Nodes) -> float:
        await create(nodes, "t")
        nodes.members[1].kill()
        took_s = await nodes.until(
            lambda: (
                all(
                    partition.leader in (0, 2) and NodeId(1) not in partition.isr
                    for partition in partitions_of(nodes, "t", seen_by=2)
                )
                and bool(partitions_of(nodes, "t", seen_by=2))
            )
        )
        epochs = [partition.leader_epoch for partition in partitions_of(nodes, "t", seen_by=2)]
        assert sorted(epochs) == [0, 0, 1]
        return took_s

    assert in_a_cluster(story) < 1.0


def test_a_node_that_stops_in_order_hands_over_first() -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes, "t")
        await nodes.until(lambda: len(partitions_of(nodes, "t", seen_by=1)) == 3)
        await nodes.members[1].node.stop()
        assert all(partition.leader in (0, 2) for partition in partitions_of(nodes, "t", seen_by=0))
        nodes.members[1].kill()
        await nodes.members[1].start()
        await nodes.until(lambda: nodes.is_serving(1, seen_by=0))

    in_a_cluster(story)
