"""What the controller does unasked: its own topics, preferred leaders, topics that grow; and what it knows of the load."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from ropewalk.base.ids import NodeId
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.producer import Producer
from ropewalk.metadata.image import Topic
from ropewalk.metadata.internal_topics import TELEMETRY_TOPIC
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import ask, reassign
from tests.kafka.door import batch_of

BYTE_RATE = 1 << 22
"""The default of `partitions.auto.byte.rate`."""


def topic_at(nodes: Nodes, node_id: int, name: str) -> Topic | None:
    return nodes[node_id].image.topics.get(name)


async def make(client: Client, name: str, *replicas: int, **settings: str) -> None:
    assignment = create_topics.CreatableReplicaAssignment(0, replicas)
    configs = tuple(
        create_topics.CreatableTopicConfig(key.replace("_", "."), value) for key, value in settings.items()
    )
    asked = create_topics.CreatableTopic(name, -1, -1, (assignment,), configs)
    await ask(client, create_topics.API, create_topics.CreateTopicsRequest((asked,)))


def test_the_clusters_own_topics_gain_copies_as_nodes_join() -> None:
    async def story(nodes: Nodes) -> None:
        def isr_counts() -> list[int]:
            topic = topic_at(nodes, 0, TELEMETRY_TOPIC)
            assert topic is not None
            return [len(partition.isr) for partition in topic.partitions]

        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic(TELEMETRY_TOPIC, 2, 1)])
            assert isr_counts() == [1, 1]
            for number in (1, 2):
                nodes.add(number)
            await asyncio.gather(*(nodes.members[number].start() for number in (1, 2)))
            await nodes.until(lambda: isr_counts() == [3, 3])

    in_a_cluster(story, nodes=1)


def test_the_preferred_leader_leads_when_it_is_time() -> None:
    async def story(nodes: Nodes) -> None:
        def leader() -> NodeId | None:
            topic = topic_at(nodes, 0, "orders")
            return None if topic is None else topic.partitions[0].leader

        async with nodes.client() as client:
            await make(client, "orders", 1, 2)
            assert await reassign(client, (2, 1)) == ErrorCode.NONE
            assert leader() == 1
            await nodes.until(lambda: leader() == 2, within_s=10)

    in_a_cluster(story, "leader.imbalance.check.interval.seconds=5")


def test_a_preferred_leader_that_is_back_leads_again() -> None:
    async def story(nodes: Nodes) -> None:
        def leader() -> NodeId | None:
            topic = topic_at(nodes, 0, "orders")
            return None if topic is None else topic.partitions[0].leader

        async with nodes.client() as client:
            await make(client, "orders", 1, 2)
            await client.produce("orders", 0, batch_of("a"))
            nodes.members[1].kill()
            await nodes.until(lambda: leader() == 2)
            await client.produce("orders", 0, batch_of("b"))
            await nodes.members[1].start()
            await nodes.until(lambda: leader() == 1)
            # Numbered: who asks the former leader in its last moment does not hear whether it was written, and asks again.
            record = Record(timestamp=EPOCH_MS, key=None, value=b"c")
            await Producer(client, "orders").send([record], partition=0)

    in_a_cluster(story, "leader.imbalance.check.interval.seconds=5")


@pytest.mark.parametrize("node_count", [1, 3])
def test_a_topic_that_may_grow_does_under_load(node_count: int) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(
                client,
                "orders",
                node_count - 1,
                partitions_auto_max="3",
                storage="memory",
                retention_bytes="1",
            )
            batch = batch_of("v" * 900_000)
            began_s = nodes.world.now_s
            while len(nodes[0].image.topic("orders").partitions) < 2:
                assert nodes.world.now_s - began_s < 120, "it did not grow"
                await client.produce("orders", 0, bytearray(batch))
                await asyncio.sleep(len(batch) / (1.5 * BYTE_RATE))
            assert nodes.world.now_s - began_s > 30, "a burst is no reason"

    in_a_cluster(story, nodes=node_count)


class Hook(asyncio.Protocol):
    """Whoever starts nodes: keeps what it is told, and answers with the next status it was given, or 200."""

    def __init__(self, told: "list[dict[str, Any]]", statuses: list[int]) -> None:
        self._told = told
        self._statuses = statuses
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        if not body.endswith(b"}"):
            return
        assert head.startswith(b"POST /scale?token=7 HTTP/1.1\r\nHost: hook:80\r\n")
        status = self._statuses.pop(0) if self._statuses else 200
        if status == 200:
            self._told.append(msgspec.json.decode(body))
        self._transport.write(f"HTTP/1.1 {status} so\r\nContent-Length: 0\r\n\r\n".encode())


def test_whoever_starts_nodes_is_told_that_another_is_wanted_and_when_no_longer() -> None:
    async def story(nodes: Nodes) -> None:
        told: list[dict[str, Any]] = []
        statuses = [503, 404]
        nodes.world.machine("hook")
        await nodes.world.network.host("hook").listen(lambda: Hook(told, statuses), "hook", 80)
        cluster_id = nodes[0].image.cluster_id
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 1, 3)])
        await nodes.until(lambda: len(told) == 1)
        assert told[0] == {"cluster": cluster_id, "wants": False, "why": [], "nodes": 3}
        assert not statuses, "whoever could not be told is told again"
        nodes.members[2].kill()
        waited_s = await nodes.until(lambda: len(told) == 2, within_s=120)
        assert waited_s > 50, "once a minute is enough"
        why = ["2 brokers are in service, partitions have up to 3 replicas"]
        assert told[1] == {"cluster": cluster_id, "wants": True, "why": why, "nodes": 2}
        await nodes.members[2].start()
        await nodes.until(lambda: len(told) == 3, within_s=120)
        assert not told[2]["wants"]
        await asyncio.sleep(120)
        assert len(told) == 3, "only news is told"

    in_a_cluster(
        story, "cluster.scale.webhook=http://hook:80/scale?token=7", "cluster.scale.sustained.ms=3000"
    )
