"""Partitions with copies: what is acknowledged is on all that are in sync, and stays whoever goes."""

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Pool
from ropewalk.broker.hosted import Hosted
from ropewalk.client.admin import Admin, NewTopic
from ropewalk.client.client import Client
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import RemoteError
from ropewalk.client.producer import Producer
from ropewalk.log.log import Log
from ropewalk.metadata.image import Partition
from ropewalk.records.batch import iterate
from ropewalk.records.record import Record
from ropewalk.wire.error_code import ErrorCode
from tests.cluster.nodes import Nodes, in_a_cluster

TOPIC = "orders"


async def create(client: Client, *, replicas: int = 3, **settings: str) -> None:
    pairs = tuple((name.replace("_", "."), value) for name, value in settings.items())
    outcomes = await Admin(client).create_topics([NewTopic(TOPIC, 1, replicas, pairs)])
    assert outcomes == {TOPIC: None}


async def send(producer: Producer, *values: str) -> None:
    for value in values:
        await producer.send([Record(timestamp=0, value=value.encode())])


async def read(client: Client, count: int) -> list[str]:
    consumer = Consumer(client, {TopicPartition(TOPIC, 0): 0})
    values: list[str] = []
    while len(values) < count:
        for consumed in await consumer.poll():
            values += [(record.value or b"").decode() for record in consumed.records]
    return values


def facts(nodes: Nodes, seen_by: int) -> Partition:
    return nodes[seen_by].image.topics[TOPIC].partitions[0]


def hosted(nodes: Nodes, node_id: int) -> Hosted:
    (partition,) = (each for each in nodes[node_id].partitions if each.name.topic == TOPIC)
    return partition


async def copies(nodes: Nodes, *node_ids: int) -> list[bytes]:
    """The whole log on each of these nodes."""
    return [
        await whole_log(hosted(nodes, node_id).log, nodes[node_id]._parts.ports.pool) for node_id in node_ids
    ]


async def whole_log(log: Log, pool: Pool) -> bytes:
    offset, stretches = log.start_offset, list[bytes]()
    while span := log.locate(offset, limit_offset=log.end_offset, bytes_max=1 << 20):
        stretches.append(bytes(await pool.run(span.read)))
        offset = [header.end_offset for _, header in iterate(stretches[-1])][-1]
    return b"".join(stretches)


def test_what_is_acknowledged_is_on_every_replica_in_sync() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            producer = Producer(client, TOPIC)
            await send(producer, "a", "b", "c")
            assert [hosted(nodes, node_id).log.durable_offset for node_id in range(3)] == [3, 3, 3]
            assert set(facts(nodes, 0).isr) == {0, 1, 2}
            assert await read(client, 3) == ["a", "b", "c"]
            one, two, three = await copies(nodes, 0, 1, 2)
            assert one == two == three

    in_a_cluster(story)


@pytest.mark.parametrize("seed", range(3))
def test_another_replica_leads_when_the_leader_is_killed_and_nothing_is_lost(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            producer = Producer(client, TOPIC)
            await send(producer, *(str(number) for number in range(10)))
            # Node 0 decides, and stays. Where it leads, one that follows is killed.
            victim = next(node_id for node_id in (facts(nodes, 0).leader, 1) if node_id)
            nodes.members[victim].kill()
            nodes.members[victim].machine.cut_power()
            await send(producer, *(str(number) for number in range(10, 20)))
            assert victim not in facts(nodes, 0).isr
            await nodes.members[victim].start()
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1, 2})
            await send(producer, "last")
            assert await read(client, 21) == [*(str(number) for number in range(20)), "last"]
            one, two, three = await copies(nodes, 0, 1, 2)
            assert one == two == three

    in_a_cluster(story, seed=seed)


def test_with_too_few_in_sync_a_write_for_all_is_refused() -> None:
    async def story(nodes: Nodes) -> ErrorCode:
        async with nodes.client() as client:
            await create(client, min_insync_replicas="3")
            producer = Producer(client, TOPIC)
            await send(producer, "a")
            victim = next(node_id for node_id in (1, 2) if node_id != facts(nodes, 0).leader)
            nodes.members[victim].kill()
            await nodes.until(lambda: victim not in facts(nodes, 0).isr)
            with pytest.raises(RemoteError) as refused:
                await send(producer, "b")
            return refused.value.code

    assert in_a_cluster(story) in (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    )
