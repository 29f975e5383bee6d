"""Moves and elections asked for at the Kafka door of a cluster."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from ropewalk.base.ids import NodeId
from ropewalk.client.calls.client import Client
from ropewalk.metadata.image import Partition
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_partition_reassignments,
    create_topics,
    elect_leaders,
    list_partition_reassignments,
)
from ropewalk.wire.types import Message
from tests.cluster.nodes import Nodes, in_a_cluster

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

MOVING = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


async def ask(client: Client, api: Api[Q, R], request: Q) -> R:
    deadline_ms = client.session.deadline_ms()
    connection = await client.session.cluster.any_connection(deadline_ms=deadline_ms)
    return await connection.call(api, request, deadline_ms=deadline_ms)


async def reassign(client: Client, replicas: tuple[int, ...] | None) -> int:
    partition = alter_partition_reassignments.ReassignablePartition(0, replicas)
    topic = alter_partition_reassignments.ReassignableTopic("orders", (partition,))
    request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=(topic,))
    response = await ask(client, alter_partition_reassignments.API, request)
    return response.topics[0].partitions[0].error_code


async def moving(client: Client, *indexes: int) -> list[MOVING]:
    topic = list_partition_reassignments.ListPartitionReassignmentsTopics("orders", indexes)
    request = list_partition_reassignments.ListPartitionReassignmentsRequest(
        topics=(topic,) if indexes else None
    )
    response = await ask(client, list_partition_reassignments.API, request)
    return [
        (found.replicas, found.adding_replicas, found.removing_replicas)
        for topic_moving in response.topics
        for found in topic_moving.partitions
    ]


def partition_at(nodes: Nodes, node_id: int) -> Partition:
    return nodes[node_id].image.partition("orders", 0)


async def make_orders(
    nodes: Nodes, client: Client, *replicas: int, settings: Mapping[str, str] = MappingProxyType({})
) -> None:
    """A topic of one partition on the given nodes, known to all."""
    assignment = create_topics.CreatableReplicaAssignment(0, replicas)
    configs = tuple(create_topics.CreatableTopicConfig(name, value) for name, value in settings.items())
    asked = create_topics.CreatableTopic("orders", -1, -1, (assignment,), configs)
    (made,) = (await ask(client, create_topics.API, create_topics.CreateTopicsRequest((asked,)))).topics
    assert made.error_code == ErrorCode.NONE
    await nodes.until(lambda: all("orders" in nodes[node_id].image.topics for node_id in range(3)))


def test_a_move_is_listed_while_it_is_under_way_and_can_be_given_up() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1)
            nodes.members[2].kill()
            await nodes.until(lambda: not nodes.is_serving(2, seen_by=0))
            assert await moving(client) == []
            assert await reassign(client, (1, 2)) == ErrorCode.NONE
            assert await moving(client) == [((1, 2, 0), (2,), (0,))]
            assert await moving(client, 0) == [((1, 2, 0), (2,), (0,))]
            assert await moving(client, 7) == []
            assert await reassign(client, None) == ErrorCode.NONE
            assert await moving(client) == []
            assert await reassign(client, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    in_a_cluster(story)


def test_the_preferred_replica_is_elected_at_the_door() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1)
            assert await reassign(client, (1, 0)) == ErrorCode.NONE
            request = elect_leaders.ElectLeadersRequest(0, (elect_leaders.TopicPartitions("orders", (0,)),))
            codes = []
            for _ in range(2):
                response = await ask(client, elect_leaders.API, request)
                codes.append(response.replica_election_results[0].partitions[0].error_code)
            assert codes == [ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED]
            await nodes.until(lambda: partition_at(nodes, 2).leader == NodeId(1))

    in_a_cluster(story)
