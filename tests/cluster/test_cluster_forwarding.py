"""Changes that clients ask of any node, and that the controller makes."""

import asyncio
from typing import TypeVar

import pytest

from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_client_quotas,
    create_partitions,
    create_topics,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    elect_leaders,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    metadata,
)
from ropewalk.wire.types import Message
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

MINUTE_MS = 60_000
NODES = (0, 1, 2)
"""The first decides."""


class Door:
    """A connection to one node."""

    def __init__(self, nodes: Nodes, connection: Connection) -> None:
        self._nodes = nodes
        self.connection = connection

    @classmethod
    async def open(
        cls, nodes: Nodes, node_id: int, *, client_id: str = "test", port: int = KAFKA_PORT
    ) -> "Door":
        connection = await Connection.open(
            nodes.world.network.host("client"),
            nodes.members[node_id].machine.clock,
            Address(f"node{node_id}", port),
            client_id=client_id,
            deadline_ms=nodes.world.now_s * 1000 + MINUTE_MS,
        )
        return cls(nodes, connection)

    async def call(self, api: Api[Q, R], request: Q) -> R:
        deadline_ms = self._nodes.world.now_s * 1000 + MINUTE_MS
        return await self.connection.call(api, request, deadline_ms=deadline_ms)

    async def create(self, name: str, *, partitions: int = 1, validate_only: bool = False) -> int:
        topic = create_topics.CreatableTopic(name, partitions, 1)
        request = create_topics.CreateTopicsRequest((topic,), validate_only=validate_only)
        (result,) = (await self.call(create_topics.API, request)).topics
        return result.error_code

    async def describe(self, name: str, *, may_create: bool = False) -> metadata.MetadataResponseTopic:
        asked = metadata.MetadataRequest((metadata.MetadataRequestTopic(name=name),), may_create)
        (topic,) = (await self.call(metadata.API, asked)).topics
        return topic


@pytest.mark.parametrize("node_id", NODES)
def test_a_client_sees_at_once_what_it_has_changed_through_any_node(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        door = await Door.open(nodes, node_id)
        assert await door.create("t") == ErrorCode.NONE
        assert len((await door.describe("t")).partitions) == 1
        assert await door.create("t") == ErrorCode.TOPIC_ALREADY_EXISTS

        grown = create_partitions.CreatePartitionsTopic("t", 3, None)
        growing = create_partitions.CreatePartitionsRequest((grown,), 1000, validate_only=False)
        (result,) = (await door.call(create_partitions.API, growing)).results
        assert result.error_code == ErrorCode.NONE
        assert len((await door.describe("t")).partitions) == 3

        setting = incremental_alter_configs.AlterableConfig("retention.ms", 0, "77000")
        resource = incremental_alter_configs.AlterConfigsResource(2, "t", (setting,))
        altering = incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), validate_only=False)
        (altered,) = (await door.call(incremental_alter_configs.API, altering)).responses
        assert altered.error_code == ErrorCode.NONE
        assert nodes[node_id].image.topic("t").settings == {"retention.ms": "77000"}

        electing = elect_leaders.ElectLeadersRequest(0, (elect_leaders.TopicPartitions("t", (0,)),))
        elected = (await door.call(elect_leaders.API, electing)).replica_election_results
        assert elected[0].partitions[0].error_code == ErrorCode.ELECTION_NOT_NEEDED

        deleting = delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState("t"),))
        (deleted,) = (await door.call(delete_topics.API, deleting)).topics
        assert deleted.error_code == ErrorCode.NONE
        assert (await door.describe("t")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    in_a_cluster(story)


def test_what_is_only_validated_changes_nothing() -> None:
    async def story(nodes: Nodes) -> None:
        door = await Door.open(nodes, 1)
        assert await door.create("t", validate_only=True) == ErrorCode.NONE
        assert await door.create("bad name", validate_only=True) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert "t" not in nodes[0].image.topics

    in_a_cluster(story)


@pytest.mark.parametrize("node_id", NODES)
def test_topics_are_made_on_first_use_through_any_node(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        door = await Door.open(nodes, node_id)
        made = await door.describe("fresh", may_create=True)
        assert (made.error_code, len(made.partitions)) == (ErrorCode.NONE, 1)
        assert (await door.describe("no name", may_create=True)).error_code == (
            ErrorCode.INVALID_TOPIC_EXCEPTION
        )
        asking = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        (found,) = (await door.call(find_coordinator.API, asking)).coordinators
        assert found.error_code == ErrorCode.NONE
        assert found.host == f"node{found.node_id}"

    in_a_cluster(story)


def test_two_nodes_asked_for_the_same_topic_at_once_make_it_once() -> None:
    async def story(nodes: Nodes) -> None:
        doors = [await Door.open(nodes, node_id) for node_id in NODES]
        made = await asyncio.gather(*(door.describe("fresh", may_create=True) for door in doors))
        assert {topic.error_code for topic in made} == {ErrorCode.NONE}
        assert len({topic.topic_id for topic in made}) == 1

    in_a_cluster(story)


def test_producer_ids_of_all_nodes_differ() -> None:
    async def story(nodes: Nodes) -> None:
        given: list[int] = []
        for node_id in NODES:
            door = await Door.open(nodes, node_id)
            for _ in range(3):
                asking = init_producer_id.InitProducerIdRequest(None, 1000)
                answer = await door.call(init_producer_id.API, asking)
                assert answer.error_code == ErrorCode.NONE
                given.append(answer.producer_id)
        assert len(set(given)) == 9

    in_a_cluster(story)


def test_without_a_controller_every_item_is_refused_and_nothing_is_changed() -> None:
    async def story(nodes: Nodes) -> None:
        door = await Door.open(nodes, 1)
        nodes.members[0].kill()
        began_s = nodes.world.now_s
        code = await door.create("t")
        assert code in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
        assert nodes.world.now_s - began_s < 30, "a client waits thirty seconds"
        again = await door.create("t")
        assert again == ErrorCode.NOT_CONTROLLER, "it is known by now that it has gone"
        assert (await door.describe("t", may_create=True)).error_code == ErrorCode.NOT_CONTROLLER

        await nodes.members[0].start()
        assert await door.create("t") == ErrorCode.NONE

    in_a_cluster(story)


def test_a_change_waits_for_a_controller_that_comes_back() -> None:
    async def story(nodes: Nodes) -> int:
        door = await Door.open(nodes, 2)
        nodes.members[0].kill()
        await asyncio.sleep(0.1)
        creating = asyncio.ensure_future(door.create("t"))
        await asyncio.sleep(3)
        await nodes.members[0].start()
        return await creating

    assert in_a_cluster(story) == ErrorCode.NONE


def test_the_next_request_of_a_connection_waits_for_the_forwarded_one() -> None:
    """As it would at the controller itself: requests of one connection take effect in their order."""

    async def story(nodes: Nodes) -> None:
        door = await Door.open(nodes, 1)
        deadline_ms = nodes.world.now_s * 1000 + MINUTE_MS
        creating = create_topics.CreateTopicsRequest((create_topics.CreatableTopic("t", 1, 1),))
        asking = metadata.MetadataRequest((metadata.MetadataRequestTopic(name="t"),), False)
        made = door.connection.send(create_topics.API, 7, creating, deadline_ms=deadline_ms)
        described = door.connection.send(metadata.API, 12, asking, deadline_ms=deadline_ms)
        assert (await made).topics[0].error_code == ErrorCode.NONE
        assert (await described).topics[0].error_code == ErrorCode.NONE

    in_a_cluster(story)


def test_changes_are_charged_where_the_client_is_connected() -> None:
    async def story(nodes: Nodes) -> None:
        entity = (alter_client_quotas.EntityData("client-id", "busy"),)
        quota = alter_client_quotas.OpData("controller_mutation_rate", 1.0, remove=False)
        altering = alter_client_quotas.AlterClientQuotasRequest(
            (alter_client_quotas.EntryData(entity, (quota,)),), validate_only=False
        )
        door = await Door.open(nodes, 2)
        (answer,) = (await door.call(alter_client_quotas.API, altering)).entries
        assert answer.error_code == ErrorCode.NONE
        component = describe_client_quotas.ComponentData("client-id", 0, "busy")
        describing = describe_client_quotas.DescribeClientQuotasRequest((component,), strict=False)
        described = await door.call(describe_client_quotas.API, describing)
        assert described.entries is not None
        assert described.entries[0].values[0].value == 1.0

        await nodes.until(lambda: len(nodes[1].image.client_quotas) == 1)
        busy = await Door.open(nodes, 1, client_id="busy")
        assert await busy.create("large", partitions=40) == ErrorCode.NONE
        busy = await Door.open(nodes, 1, client_id="busy")  # the first connection is kept waiting
        assert await busy.create("another") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert "another" not in nodes[0].image.topics
        other = await Door.open(nodes, 1, client_id="other")
        assert await other.create("another") == ErrorCode.NONE

    in_a_cluster(story)


@pytest.mark.parametrize("node_id", NODES)
def test_every_node_names_all_brokers_and_the_controller(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        await nodes.until(lambda: all(nodes.is_serving(other, seen_by=node_id) for other in NODES))
        door = await Door.open(nodes, node_id)
        told = await door.call(metadata.API, metadata.MetadataRequest(()))
        assert sorted((broker.node_id, broker.host) for broker in told.brokers) == [
            (0, "node0"),
            (1, "node1"),
            (2, "node2"),
        ]
        assert told.controller_id == 0
        described = await door.call(
            describe_cluster.API,
            describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False),
        )
        assert described.controller_id == 0
        assert len(described.brokers) == 3

    in_a_cluster(story)
