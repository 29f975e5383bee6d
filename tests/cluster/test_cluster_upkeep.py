"""What the controller does unasked: its own topics, preferred leaders, topics that grow; and what it knows of the load."""

import asyncio

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import GROWTH_PARTITION_BYTES
from ropewalk.client.admin import Admin, NewTopic
from ropewalk.client.client import Client
from ropewalk.client.producer import Producer
from ropewalk.metadata.image import Topic
from ropewalk.metadata.internal_topics import TELEMETRY_TOPIC
from ropewalk.records.record import Record
from ropewalk.sim.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import ask, reassign
from tests.kafka.door import batch_of


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


def test_a_topic_that_may_grow_does_under_load() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(client, "orders", 1, partitions_auto_max="3", storage="memory", retention_bytes="1")
            batch = batch_of("v" * 900_000)
            began_s = nodes.world.now_s
            while len(nodes[0].image.topic("orders").partitions) < 2:
                assert nodes.world.now_s - began_s < 120, "it did not grow"
                await client.produce("orders", 0, bytearray(batch))
                await asyncio.sleep(len(batch) / (1.5 * GROWTH_PARTITION_BYTES))
            assert nodes.world.now_s - began_s > 30, "a burst is no reason"

    in_a_cluster(story)
