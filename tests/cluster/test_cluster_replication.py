"""Partitions with copies: what is acknowledged is on all that are in sync, and stays whoever goes."""

import asyncio
from functools import partial

import pytest

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import Offset, TopicPartition
from ropewalk.base.limits import DAMAGE_CHECK_MS
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.replica import Replica
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import RemoteError
from ropewalk.client.producer import Producer
from ropewalk.log.log import Log
from ropewalk.metadata.image import Partition
from ropewalk.metadata.settings.replication import RACK_AWARE_SELECTOR
from ropewalk.records.batch import iterate
from ropewalk.records.record import Record, build
from ropewalk.replication.follower import Truncate
from ropewalk.sim.machines.storage import StoredFile
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics, fetch, produce
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import ask as ask_client

TOPIC = "orders"


async def create(client: Client, *, replicas: int = 3, **settings: str) -> None:
    pairs = tuple((name.replace("_", "."), value) for name, value in settings.items())
    outcomes = await Admin(client).create_topics([NewTopic(TOPIC, 1, replicas, pairs)])
    assert outcomes == {TOPIC: None}


async def create_on(client: Client, *replicas: int) -> None:
    """The first of them leads."""
    assigned = create_topics.CreatableReplicaAssignment(0, replicas)
    asked = create_topics.CreatableTopic(TOPIC, -1, -1, (assigned,))
    answer = await ask_client(client, create_topics.API, create_topics.CreateTopicsRequest((asked,)))
    (made,) = answer.topics
    assert made.error_code == ErrorCode.NONE


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


def test_a_leader_that_is_alone_tells_producers_in_their_own_time_and_then_to_look_elsewhere() -> None:
    """However long it waits for a controller that cannot be reached. Who is sent away looks for the leader anew;
    who only hears that time is up asks the same node again, for ever."""

    async def story(nodes: Nodes) -> list[tuple[int, bool]]:
        async with nodes.client() as client:
            assert await Admin(client).create_topics([NewTopic(TOPIC, 3, 3)]) == {TOPIC: None}
        leader, index = next(
            (each.leader, each.index)
            for each in nodes[0].image.topics[TOPIC].partitions
            if each.leader  # not 0, which keeps the metadata
        )
        for other in range(3):
            if other != leader:
                nodes.world.network.partition(f"node{leader}", f"node{other}")
        connection = await Connection.open(
            nodes.world.network.host("client"),
            nodes.members[0].machine.clock,
            Address(f"node{leader}", KAFKA_PORT),
            client_id="test",
            deadline_ms=nodes.world.now_s * 1000 + 5000,
        )
        batch = bytes(build([Record(timestamp=EPOCH_MS, value=b"x")]))
        data = produce.TopicProduceData(TOPIC, partitions=(produce.PartitionProduceData(index, batch),))
        answers = []
        for _ in range(30):  # until its followers are behind for so long that others lead
            sent_s = nodes.world.now_s
            answer = await connection.call(
                produce.API,
                produce.ProduceRequest(None, -1, 1000, (data,)),
                deadline_ms=sent_s * 1000 + 60_000,
                version_max=12,
            )
            answers.append((answer.topics[0].partitions[0].error_code, nodes.world.now_s - sent_s < 1.5))
        assert nodes[0].image.topics[TOPIC].partitions[index].leader != leader
        connection.close()
        return answers

    answers = in_a_cluster(story)
    assert all(is_in_time for _, is_in_time in answers)
    codes = [code for code, _ in answers]
    sent_away_at = codes.index(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert 0 < sent_away_at < 12
    assert set(codes[:sent_away_at]) == {ErrorCode.REQUEST_TIMED_OUT}
    assert set(codes[sent_away_at:]) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_served_there() -> None:
    async def story(nodes: Nodes) -> None:
        for node_id in range(3):
            nodes.add(node_id, f"broker.rack=rack{node_id}", f"replica.selector.class={RACK_AWARE_SELECTOR}")
        await asyncio.gather(*(member.start() for member in nodes.members.values()))
        async with nodes.client() as client:
            await create(client)
            await send(Producer(client, TOPIC), "a", "b")
            leader = facts(nodes, 0).leader
            assert leader is not None
            near = next(node_id for node_id in range(3) if node_id != leader)
            await nodes.until(lambda: hosted(nodes, near).high_watermark == 2)

            async def ask(node_id: int, rack: str, offset: int = 0) -> fetch.PartitionData:
                connection = await Connection.open(
                    nodes.world.network.host("client"),
                    nodes.members[0].machine.clock,
                    Address(f"node{node_id}", KAFKA_PORT),
                    client_id="test",
                    deadline_ms=nodes.world.now_s * 1000 + 5000,
                )
                asked = fetch.FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
                request = fetch.FetchRequest(
                    max_bytes=1 << 20, topics=(fetch.FetchTopic(TOPIC, partitions=(asked,)),), rack_id=rack
                )
                deadline_ms = nodes.world.now_s * 1000 + 5000
                answer = await connection.send(fetch.API, 12, request, deadline_ms=deadline_ms)
                connection.close()
                return answer.topics[0].partitions[0]

            sent = await ask(leader, f"rack{near}")
            assert (sent.preferred_read_replica, len(sent.records or b"")) == (near, 0)
            served = await ask(near, f"rack{near}")
            assert (served.error_code, served.high_watermark, len(list(iterate(served.records or b"")))) == (
                0,
                2,
                2,
            )
            at_home = await ask(leader, f"rack{leader}")
            assert (at_home.preferred_read_replica, len(list(iterate(at_home.records or b"")))) == (-1, 2)
            beyond = [(await ask(node_id, f"rack{node_id}", 9)).error_code for node_id in (near, leader)]
            assert beyond == [ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.OFFSET_OUT_OF_RANGE]
            without_rack = await ask(near, "")
            assert without_rack.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_a_cluster(story, nodes=0)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.98])  # of the file: headers, which recovery looks at
def test_a_damaged_copy_is_made_whole_before_it_counts_again(share: float) -> None:
    """It would be in sync by its end, and lack what rotted in the middle."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            producer = Producer(client, TOPIC)
            await send(producer, *(str(number) for number in range(10)))
            victim = next(node_id for node_id in (1, 2) if node_id != facts(nodes, 0).leader)
            machine = nodes.members[victim].machine
            await asyncio.sleep(3)  # simulated: until the recovery point has passed all of it
            machine.kill()
            (segment,) = (
                file
                for path, file in machine.platters.files()
                if f"/{TOPIC}-0/" in path and path.endswith(".log")
            )
            machine.platters.evict()
            segment.rot(int(len(segment.data) * share), 1)
            await nodes.members[victim].start()
            assert hosted(nodes, victim).log.end_offset <= 10
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1, 2})
            await send(producer, "last")
            assert hosted(nodes, victim).log.damaged == ()
            one, two, three = await copies(nodes, 0, 1, 2)
            assert one == two == three

    in_a_cluster(story)


def test_a_copy_that_found_no_room_is_made_when_there_is() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            platters = nodes.members[2].machine.platters
            platters.capacity_bytes = platters.used_bytes
            await create_on(client, 0, 1, 2)  # the one without room follows
            producer = Producer(client, TOPIC)
            sending = asyncio.ensure_future(send(producer, "a"))
            await nodes.until(lambda: nodes[2].partitions.unopened_count == 1)
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1})
            await sending
            platters.make_room()
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1, 2})
            one, two = await copies(nodes, 0, 2)
            assert one == two

    in_a_cluster(story, "replica.lag.time.max.ms=1000")


@pytest.mark.parametrize("seed", range(3))
def test_a_follower_begins_to_copy_at_once_although_its_leader_holds_a_fetch(seed: int) -> None:
    """Fetches are held for half a second, and there is one at a time."""

    async def story(nodes: Nodes) -> float:
        async with nodes.client() as client:
            first = [NewTopic(f"first-{number}", 1, 3, ()) for number in range(3)]
            await Admin(client).create_topics(first)  # each node follows both others
            await asyncio.sleep(2.1)  # fetches are under way, at any stage
            began_s = nodes.world.now_s
            await create(client)
            await send(Producer(client, TOPIC), "a")
            return nodes.world.now_s - began_s

    assert in_a_cluster(story, seed=seed) < 0.15


@pytest.mark.parametrize("seed", range(4))
def test_a_node_stops_in_order_while_it_cuts_a_log(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            await send(Producer(client, TOPIC), "a", "b", "c")
            follower = next(node for node in (1, 2) if facts(nodes, 0).leader != node)
            fetchers = nodes[follower]._parts.fetchers
            replica = hosted(nodes, follower)
            assert fetchers is not None
            assert isinstance(replica, Replica)
            fetchers.begin(
                partial(fetchers.cut, replica, Truncate(Offset(1)), leader_epoch=replica.leader_epoch)
            )
            nodes.members[follower].machine.platters.stalled_until_s = nodes.world.now_s + 1
            await nodes.members[follower].stop()
            await nodes.members[follower].start()
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1, 2})
            one, two, three = await copies(nodes, 0, 1, 2)
            assert one == two == three

    in_a_cluster(story, seed=seed, limit_s=60)


def segment_of(nodes: Nodes, node_id: int) -> StoredFile:
    (segment,) = (
        file
        for path, file in nodes.members[node_id].machine.platters.files()
        if f"/{TOPIC}-0/" in path and path.endswith(".log")
    )
    return segment


async def find_damage(nodes: Nodes, node_id: int) -> None:
    """Bytes rot on disk, and a read comes upon them."""
    nodes.members[node_id].machine.platters.evict()
    segment = segment_of(nodes, node_id)
    segment.rot(len(segment.data) // 2, 1)
    log = hosted(nodes, node_id).log
    span = log.locate(log.start_offset, limit_offset=log.end_offset, bytes_max=1 << 20)
    assert span is not None
    assert span.read_cached() is None, "it has left the cache"
    with pytest.raises(StorageFailed):
        await whole_log(log, nodes[node_id]._parts.ports.pool)
    assert log.damaged


@pytest.mark.parametrize("is_leader", [True, False], ids=["leader", "follower"])
def test_a_copy_found_damaged_while_it_counts_is_made_whole_from_another(is_leader: bool) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            producer = Producer(client, TOPIC)
            await send(producer, *(str(number) for number in range(10)))
            leader = facts(nodes, 0).leader
            victim = next(node_id for node_id in range(3) if (node_id == leader) is is_leader)
            await find_damage(nodes, victim)
            await nodes.until(lambda: victim not in facts(nodes, 0).isr)
            assert facts(nodes, 0).leader not in (victim, None)
            await nodes.until(lambda: set(facts(nodes, 0).isr) == {0, 1, 2})
            await send(producer, "last")
            assert hosted(nodes, victim).log.damaged == ()
            one, two, three = await copies(nodes, 0, 1, 2)
            assert one == two == three

    in_a_cluster(story)


def test_the_last_copy_in_sync_is_not_given_up_for_its_damage() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(client)
            await send(Producer(client, TOPIC), *(str(number) for number in range(10)))
            for other in (1, 2):
                nodes.members[other].kill()
            await nodes.until(lambda: facts(nodes, 0).isr == (0,))
            epoch = nodes[0]._parts.membership.broker_epoch
            await find_damage(nodes, 0)
            await asyncio.sleep(3 * DAMAGE_CHECK_MS / 1000)
            assert nodes[0]._parts.membership.broker_epoch == epoch
            assert facts(nodes, 0).leader == 0

    in_a_cluster(story)


def test_a_leader_sends_only_so_much_to_replicas_out_of_sync_and_holds_back_nobody_else() -> None:
    """Some 400 KB at 50 KB a second, with writes that two replicas in sync acknowledge meanwhile."""

    async def story(nodes: Nodes) -> tuple[float, float]:
        async with nodes.client() as client:
            await create(client)
            victim = next(node for node in (1, 2) if node != facts(nodes, 0).leader)
            nodes.members[victim].kill()
            await nodes.until(lambda: len(facts(nodes, 0).isr) == 2)
            producer = Producer(client, TOPIC)
            await send(producer, *("x" * 20_000 for _ in range(20)))
            await nodes.members[victim].start()
            began_s, slowest_s = nodes.world.now_s, 0.0
            while len(facts(nodes, 0).isr) < 3:
                sent_s = nodes.world.now_s
                await send(producer, "y")
                slowest_s = max(slowest_s, nodes.world.now_s - sent_s)
                await asyncio.sleep(0.1)
            return nodes.world.now_s - began_s, slowest_s

    took_s, slowest_s = in_a_cluster(
        story,
        "leader.replication.throttled.rate=50000",
        "replica.fetch.max.bytes=20000",
        "replica.fetch.response.max.bytes=20000",
    )
    assert 6 < took_s < 12
    assert slowest_s < 0.3
