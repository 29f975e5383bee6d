"""Transactions over several nodes: coordinator, partitions and group each on another, and nodes that go at the worst moment."""

import asyncio

import pytest

from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.wire.messages import fetch, find_coordinator, offset_fetch
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.reach import Reach
from tests.kafka.test_transaction_apis import KINDS, TIMED_OUT, values
from tests.kafka.transactional import Transactional, read_committed

SETTINGS = ("transaction.state.log.num.partitions=3",)
TOPIC = "t"


async def create(nodes: Nodes, partitions: int = 3) -> None:
    async with nodes.client() as client:
        assert await Admin(client).create_topics([NewTopic(TOPIC, partitions, 3)]) == {TOPIC: None}


async def seen(reach: Reach, *, partition: int, count: int) -> list[str]:
    while len(found := values(await read_committed(reach, TOPIC, partition=partition))) < count:
        await asyncio.sleep(0.01)
    return found


async def settled(reach: Reach, partition: int) -> fetch.PartitionData:
    while True:
        found = await read_committed(reach, TOPIC, partition=partition)
        if found.last_stable_offset == found.high_watermark:
            return found
        await asyncio.sleep(0.01)


async def looked_after_by(reach: Reach, nodes: Nodes, *, tv2: bool, other_than: int = 0) -> Transactional:
    """A producer whose coordinator is not the controller, nor another node that is to stay."""
    first = Transactional(reach, "name 0", tv2=tv2)
    await first.find()
    for number in range(100):
        producer = Transactional(reach, f"name {number}", tv2=tv2)
        if reach.coordinator(producer.transactional_id) not in (0, other_than, None):
            return await producer.init()
    raise AssertionError("all shards are led by one node")


async def write(producer: Transactional, value: str, *partitions: int) -> None:
    if not producer.tv2:
        assert await producer.add(TOPIC, *partitions) == [0] * len(partitions)
    for partition in partitions:
        answer = await producer.send(TOPIC, value, partition=partition)
        assert answer.error_code == 0, answer.error_message


@KINDS
@pytest.mark.parametrize("seed", range(2))
def test_transactions_over_partitions_of_all_nodes(tv2: bool, seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes)
        reach = Reach(nodes)
        assert {reach.leader(TOPIC, index) for index in range(3)} == {0, 1, 2}
        producer = await Transactional(reach, tv2=tv2).init()
        for number in range(9):
            await write(producer, str(number), 0, 1, 2)
            assert await producer.end(committed=number % 3 != 1) == 0
        expected = [str(number) for number in range(9) if number % 3 != 1]
        for partition in range(3):
            assert await seen(reach, partition=partition, count=len(expected)) == expected

    in_a_cluster(story, *SETTINGS, seed=seed)


@KINDS
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("seed", range(2))
def test_the_next_coordinator_carries_out_what_the_last_one_decided(
    tv2: bool, committed: bool, seed: int
) -> None:
    """It dies as soon as it has answered; how many markers it has sent is for the seed to say."""

    async def story(nodes: Nodes) -> None:
        await create(nodes)
        reach = Reach(nodes)
        producer = await looked_after_by(reach, nodes, tv2=tv2)
        await write(producer, "before", 0, 1, 2)
        victim = reach.coordinator(producer.transactional_id)
        assert victim is not None
        assert await producer.end(committed=committed) == 0
        nodes.members[victim].kill()
        await write(producer, "after", 0, 1, 2)
        assert await producer.end(committed=True) == 0
        expected = ["before", "after"] if committed else ["after"]
        for partition in range(3):
            assert await seen(reach, partition=partition, count=len(expected)) == expected
        assert reach.coordinator(producer.transactional_id) != victim

    in_a_cluster(story, *SETTINGS, seed=seed)


@KINDS
def test_a_leader_that_dies_before_its_marker_does_not_keep_a_transaction_open(tv2: bool) -> None:
    """The coordinator's own state has one copy, so that it decides before anybody misses the leader."""

    async def story(nodes: Nodes) -> None:
        await create(nodes)
        reach = Reach(nodes)
        producer = await looked_after_by(reach, nodes, tv2=tv2, other_than=2)
        partition = next(index for index in range(3) if reach.leader(TOPIC, index) == 2)
        await write(producer, "one", 0, 1, 2)
        nodes.members[2].kill()
        assert await producer.end(committed=True) == 0
        for each in range(3):
            assert await seen(reach, partition=each, count=1) == ["one"]
        assert reach.leader(TOPIC, partition) != 2
        finishers = [nodes[node_id]._parts.finisher for node_id in (0, 1)]
        await nodes.until(lambda: not any(each.unfinished_count for each in finishers))
        assert sum(each.retry_count for each in finishers) > 0, (
            "the marker was tried while nobody led the partition"
        )

    in_a_cluster(story, *SETTINGS, "transaction.state.log.replication.factor=1")


@KINDS
def test_a_transaction_is_timed_out_by_whoever_comes_to_look_after_it(tv2: bool) -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes)
        reach = Reach(nodes)
        producer = await looked_after_by(reach, nodes, tv2=tv2)
        assert await producer.try_init(timeout_ms=5_000) == 0
        await write(producer, "one", 0, 1)
        victim = reach.coordinator(producer.transactional_id)
        assert victim is not None
        nodes.members[victim].kill()
        await asyncio.sleep(10)
        for partition in range(3):
            assert values(await settled(reach, partition)) == []
        assert await producer.end(committed=True) == TIMED_OUT[tv2]

    in_a_cluster(story, *SETTINGS)


@KINDS
def test_a_deposed_coordinator_that_does_not_know_it_yet_decides_nothing(tv2: bool) -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes)
        reach = Reach(nodes)
        producer = await looked_after_by(reach, nodes, tv2=tv2)
        victim = reach.coordinator(producer.transactional_id)
        assert victim is not None
        await write(producer, "one", *[index for index in range(3) if reach.leader(TOPIC, index) != victim])
        for other in {0, 1, 2} - {victim}:
            nodes.world.network.partition(f"node{victim}", f"node{other}")
        astray = Reach(nodes, through=victim, patience_s=1)
        lost = Transactional(astray, producer.transactional_id, tv2=tv2)
        lost.producer_id, lost.producer_epoch = producer.producer_id, producer.producer_epoch
        with pytest.raises(AssertionError, match="came to nothing"):
            await lost.end(committed=False)
        await nodes.until(lambda: reach.coordinator(producer.transactional_id) != victim)
        assert await producer.end(committed=True) == 0
        nodes.world.network.mend_all()
        await nodes.until(lambda: nodes.is_serving(victim, seen_by=0))
        for partition in range(3):
            await settled(reach, partition)
        found = [
            value
            for index in range(3)
            for value in values(await read_committed(reach, TOPIC, partition=index))
        ]
        assert set(found) == {"one"}

    in_a_cluster(story, *SETTINGS)


@KINDS
def test_offsets_of_a_group_on_another_node_count_with_the_transaction(tv2: bool) -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes)
        reach = Reach(nodes)
        await reach.call(
            find_coordinator.API, 4, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",))
        )
        producer = await looked_after_by(reach, nodes, tv2=tv2)

        async def committed_offset() -> int:
            topics = (offset_fetch.OffsetFetchRequestTopic(TOPIC, (0,)),)
            request = offset_fetch.OffsetFetchRequest("g", topics, require_stable=True)
            return (await reach.call(offset_fetch.API, 7, request)).topics[0].partitions[0].committed_offset

        for offset, committed, expected in ((3, True, 3), (5, False, 3), (7, True, 7)):
            await write(producer, str(offset), 0)
            if not tv2:
                assert await producer.add_offsets("g") == 0
            assert await producer.commit_offset("g", TOPIC, offset) == 0
            assert await producer.end(committed=committed) == 0
            assert await committed_offset() == expected
        victim = reach.coordinator(producer.transactional_id)
        assert victim is not None
        nodes.members[victim].kill()
        assert await committed_offset() == 7

    in_a_cluster(story, *SETTINGS)


@KINDS
def test_transactions_through_a_front_end(tv2: bool) -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes)
        await nodes.add(7, "kafka.route=proxy", roles=("frontend",)).start()
        reach = Reach(nodes, through=7)
        await reach.call(
            find_coordinator.API, 4, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",))
        )
        producer = await Transactional(reach, tv2=tv2).init()
        for number in range(3):
            await write(producer, str(number), 0, 1, 2)
            if not tv2:
                assert await producer.add_offsets("g") == 0
            assert await producer.commit_offset("g", TOPIC, number) == 0
            assert await producer.end(committed=number != 1) == 0
        for partition in range(3):
            assert await seen(reach, partition=partition, count=2) == ["0", "2"]

    in_a_cluster(story, *SETTINGS)
