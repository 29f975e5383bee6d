"""A front end without partitions: clients see one broker, and reach all of the cluster through it."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import TypeVar

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.consumer import Consumer
from ropewalk.client.consuming.consumer import Consumer as GroupConsumer
from ropewalk.client.producer import Producer
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    create_topics,
    describe_cluster,
    fetch,
    find_coordinator,
    metadata,
    offset_commit,
    offset_fetch,
)
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_forwarding import Door

T = TypeVar("T")

FRONT = 7


def behind_a_front_end(story: Callable[[Nodes], Awaitable[T]], *, seed: int = 0) -> T:
    async def main(nodes: Nodes) -> T:
        await nodes.add(FRONT, "kafka.route=proxy", roles=("frontend",)).start()
        return await story(nodes)

    return in_a_cluster(main, "offsets.topic.replication.factor=1", seed=seed)


def client(nodes: Nodes) -> Client:
    return Client(
        nodes.world.network.host("client"),
        nodes.members[FRONT].machine.clock,
        nodes.world.rng_for("client"),
        (Address(f"node{FRONT}", KAFKA_PORT),),
    )


def record(value: str) -> Record:
    return Record(timestamp=EPOCH_MS, value=value.encode())


async def spread(nodes: Nodes) -> None:
    """A topic whose six partitions are led by the three brokers in turn."""
    door = await Door.open(nodes, FRONT)
    assigned = tuple(create_topics.CreatableReplicaAssignment(index, (index % 3,)) for index in range(6))
    topic = create_topics.CreatableTopic("t", -1, -1, assigned)
    (made,) = (await door.call(create_topics.API, create_topics.CreateTopicsRequest((topic,)))).topics
    assert made.error_code == ErrorCode.NONE
    assert [partition.leader for partition in nodes[FRONT].image.topic("t").partitions] == [0, 1, 2, 0, 1, 2]


def test_it_names_itself_for_everything() -> None:
    async def story(nodes: Nodes) -> None:
        await spread(nodes)
        door = await Door.open(nodes, FRONT)
        told = await door.call(metadata.API, metadata.MetadataRequest(None))
        assert [(broker.node_id, broker.host) for broker in told.brokers] == [(FRONT, "node7")]
        assert told.controller_id == FRONT
        (topic,) = [topic for topic in told.topics if topic.name == "t"]
        assert {partition.leader_id for partition in topic.partitions} == {FRONT}
        asking = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        (found,) = (await door.call(find_coordinator.API, asking)).coordinators
        assert (found.error_code, found.node_id, found.host) == (0, FRONT, "node7")
        described = await door.call(
            describe_cluster.API,
            describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False),
        )
        assert [broker.broker_id for broker in described.brokers] == [FRONT]

    behind_a_front_end(story)


def test_front_ends_behind_one_address_tell_of_one_broker() -> None:
    """The first of them, whichever is asked, also while it is away."""

    async def story(nodes: Nodes) -> None:
        shared = ("kafka.route=proxy", "kafka.advertise=balancer:9092")
        for node_id in (FRONT, FRONT + 1):
            await nodes.add(node_id, *shared, roles=("frontend",)).start()
        await nodes.until(lambda: nodes.is_serving(FRONT + 1, seen_by=FRONT))

        async def named(node_id: int) -> list[tuple[int, str]]:
            door = await Door.open(nodes, node_id)
            told = await door.call(metadata.API, metadata.MetadataRequest(None))
            return [(broker.node_id, broker.host) for broker in told.brokers]

        assert await named(FRONT) == await named(FRONT + 1) == [(FRONT, "balancer")]
        nodes.members[FRONT].kill()
        await nodes.until(lambda: not nodes.is_serving(FRONT, seen_by=FRONT + 1))
        assert await named(FRONT + 1) == [(FRONT, "balancer")]

    in_a_cluster(story)


@pytest.mark.parametrize("seed", range(3))
def test_records_go_to_their_leaders_and_come_back_in_order(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        async with client(nodes) as through:
            await spread(nodes)
            producer = Producer(through, "t")
            await asyncio.gather(
                *(
                    producer.send([record(f"{index}-{number}")], partition=index)
                    for number in range(5)
                    for index in range(6)
                )
            )
            consumer = Consumer(through, {TopicPartition("t", index): 0 for index in range(6)})
            found: dict[int, list[int]] = {index: [] for index in range(6)}
            while sum(map(len, found.values())) < 30:
                for batch in await consumer.poll():
                    found[batch.partition.partition] += [each.offset for each in batch.records]
            assert all(offsets == list(range(5)) for offsets in found.values())

    behind_a_front_end(story, seed=seed)


def test_a_fetch_is_answered_by_the_first_leader_that_has_something() -> None:
    """The other leaders have nothing for as long as the client would wait."""

    async def story(nodes: Nodes) -> float:
        async with client(nodes) as reading, client(nodes) as writing:
            await spread(nodes)
            consumer = Consumer(reading, {TopicPartition("t", index): 0 for index in range(6)})
            polling = asyncio.ensure_future(consumer.poll())
            await asyncio.sleep(0.2)
            began_s = nodes.world.now_s
            await Producer(writing, "t").send([record("x")], partition=3)
            await polling
            return nodes.world.now_s - began_s

    assert behind_a_front_end(story) < 0.2


def test_a_fetch_that_is_asked_again_in_another_version_is_asked_anew() -> None:
    """What a leader was asked before is answered in the version of then. Found by a simulated cluster, seed 41."""

    async def story(nodes: Nodes) -> None:
        await spread(nodes)
        door = await Door.open(nodes, FRONT)
        partitions = tuple(
            fetch.FetchPartition(index=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(6)
        )
        request = fetch.FetchRequest(
            max_wait_ms=5000, min_bytes=1, topics=(fetch.FetchTopic(name="t", partitions=partitions),)
        )

        async def fetched(version: int) -> dict[int, int]:
            deadline_ms = nodes.world.now_s * 1000 + 60_000
            answer = await door.connection.send(fetch.API, version, request, deadline_ms=deadline_ms)
            return {each.index: each.error_code for topic in answer.topics for each in topic.partitions}

        async with client(nodes) as writing:
            producer = Producer(writing, "t")
            await producer.send([record("x")], partition=3)
            assert await fetched(6) == dict.fromkeys(range(6), ErrorCode.NONE)
            for index in range(6):  # the other leaders answer what they were asked
                await producer.send([record("x")], partition=index)
            assert await fetched(11) == dict.fromkeys(range(6), ErrorCode.NONE)

    behind_a_front_end(story)


def test_offsets_of_a_group_are_kept_by_its_coordinator() -> None:
    async def story(nodes: Nodes) -> None:
        await spread(nodes)
        door = await Door.open(nodes, FRONT)
        for group in ("g", "h", "i"):
            asking = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
            await door.call(find_coordinator.API, asking)
            topic_id = nodes[FRONT].image.topic("t").topic_id
            partition = offset_commit.OffsetCommitRequestPartition(0, 42)
            topic = offset_commit.OffsetCommitRequestTopic("t", topic_id, (partition,))

            async def commit(
                group: str = group, topic: offset_commit.OffsetCommitRequestTopic = topic
            ) -> int:
                request = offset_commit.OffsetCommitRequest(group, topics=(topic,))
                answer = await door.call(offset_commit.API, request)
                return answer.topics[0].partitions[0].error_code

            while (code := await commit()) != ErrorCode.NONE:
                assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                await asyncio.sleep(0.01)
        groups = tuple(offset_fetch.OffsetFetchRequestGroup(group, topics=None) for group in ("g", "h", "i"))
        fetched = await door.call(offset_fetch.API, offset_fetch.OffsetFetchRequest(groups=groups))
        assert {group.group_id for group in fetched.groups} == {"g", "h", "i"}
        assert {
            partition.committed_offset
            for group in fetched.groups
            for topic in group.topics
            for partition in topic.partitions
        } == {42}

    behind_a_front_end(story)


def test_a_leader_that_is_gone_costs_its_partitions_and_no_others() -> None:
    async def story(nodes: Nodes) -> None:
        async with client(nodes) as through:
            await spread(nodes)
            leaders = {
                partition.index: partition.leader for partition in nodes[0].image.topic("t").partitions
            }
            nodes.members[2].kill()
            await nodes.until(lambda: not nodes.is_serving(2, seen_by=FRONT))
            alive = next(index for index, leader in leaders.items() if leader == 1)
            written = await Producer(through, "t").send([record("x")], partition=alive)
            assert written is not None
            door = await Door.open(nodes, FRONT)
            told = await door.describe("t")
            lost = [each.index for each in told.partitions if each.error_code]
            assert lost == [index for index, leader in leaders.items() if leader == 2]

    behind_a_front_end(story)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gone", [1, 2])
def test_what_was_acknowledged_through_it_outlives_a_broker(gone: int, seed: int) -> None:
    """A client of a front end needs no more than patience when a leader is lost."""

    async def story(nodes: Nodes) -> None:
        async with client(nodes) as through:
            (refused,) = (await Admin(through).create_topics([NewTopic("t", 3, 3)])).values()
            assert refused is None
            producer = Producer(through, "t")
            acknowledged: dict[int, list[str]] = {index: [] for index in range(3)}

            async def write(index: int) -> None:
                for number in range(30):
                    value = f"{index}-{number}"
                    await producer.send([record(value)], partition=index)
                    acknowledged[index].append(value)
                    await asyncio.sleep(0.1)

            async with asyncio.TaskGroup() as group:
                for index in range(3):
                    group.create_task(write(index))
                await asyncio.sleep(1)
                nodes.members[gone].kill()
            consumer = Consumer(through, {TopicPartition("t", index): 0 for index in range(3)})
            found: dict[int, list[str]] = {index: [] for index in range(3)}
            while any(len(set(values)) < 30 for values in found.values()):
                for batch in await consumer.poll():
                    found[batch.partition.partition] += [
                        (each.value or b"").decode() for each in batch.records
                    ]
            assert {index: list(dict.fromkeys(values)) for index, values in found.items()} == acknowledged

    behind_a_front_end(story, seed=seed)


def test_connections_behind_a_client_end_with_it() -> None:
    async def story(nodes: Nodes) -> None:
        await spread(nodes)

        async def write_everywhere(through: Client) -> None:
            producer = Producer(through, "t")
            for index in range(6):
                await producer.send([record("x")], partition=index)

        def count() -> int:
            """All connections there are."""
            return len(nodes.world.network.connections())

        await nodes.until(lambda: nodes.is_serving(FRONT, seen_by=0))
        await asyncio.sleep(5)
        before = count()
        async with client(nodes) as through:
            await write_everywhere(through)
            assert count() >= before + 4, "the client's own, and one to each broker"
        await nodes.until(lambda: count() == before)

    behind_a_front_end(story)


def test_a_broker_cannot_be_such_a_front_end() -> None:
    options = NodeOptions(
        node_id=1,
        roles=("broker", "frontend"),
        seeds=("node0:9192",),
        settings=("cluster.secret=a secret of this cluster", "kafka.route=proxy"),
    )
    with pytest.raises(InvalidSetting, match="without the role broker"):
        load(options, {})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_either_protocol_read_behind_a_front_end(protocol: str) -> None:
    async def story(nodes: Nodes) -> list[bytes | None]:
        async with client(nodes) as plain:
            await Admin(plain).create_topics([NewTopic("orders", 1, 1)])
            await plain.produce("orders", 0, build([record("one")]))
        host = nodes.world.network.host("client")
        ports = SimpleNamespace(
            network=host, clock=nodes.members[FRONT].machine.clock, rng=nodes.world.rng_for("consumer")
        )
        consumer = GroupConsumer(
            f"node{FRONT}:{KAFKA_PORT}",
            group="readers",
            ports=ports,
            group_protocol=protocol,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        consumer.subscribe("orders")
        values: list[bytes | None] = []
        began_s = nodes.world.now_s
        while not values:
            assert nodes.world.now_s - began_s < 30, "the member has got no partition"
            values += [each.value for each in await consumer.poll(timeout_ms=1000)]
        await consumer.close()
        return values

    assert behind_a_front_end(story) == [b"one"]
