"""DeleteRecords on partitions with copies: what was told to be deleted stays deleted, whoever leads next."""

import asyncio
from collections.abc import Mapping

import pytest

from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicPartition
from ropewalk.broker.partitions.replica import Replica
from ropewalk.broker.upkeep.housekeeping import Housekeeping
from ropewalk.client.administration.admin import Admin
from ropewalk.client.calls.client import Client
from ropewalk.client.consumer import Consumer
from ropewalk.metadata.image import Partition
from ropewalk.records.record import Record, build
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics, delete_records
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import ask
from tests.cluster.test_cluster_replication import TOPIC, facts, hosted

SOON = ("node.session.timeout.ms=1500", "replica.lag.time.max.ms=2000")


async def create(nodes: Nodes, client: Client, *replicas: int, **settings: str) -> None:
    """With ten records, which all replicas hold."""
    topic = create_topics.CreatableTopic(
        TOPIC,
        -1,
        -1,
        (create_topics.CreatableReplicaAssignment(0, replicas),),
        tuple(
            create_topics.CreatableTopicConfig(name.replace("_", "."), value)
            for name, value in settings.items()
        ),
    )
    (made,) = (await ask(client, create_topics.API, create_topics.CreateTopicsRequest((topic,)))).topics
    assert made.error_code == ErrorCode.NONE
    await produce(client, 10)
    await nodes.until(lambda: all(hosted(nodes, each).high_watermark == 10 for each in replicas))


async def produce(client: Client, count: int) -> None:
    for number in range(count):
        await client.produce(TOPIC, 0, build([Record(timestamp=0, value=b"%d" % number)]))


async def delete(
    nodes: Nodes, client: Client, offset: int, *, timeout_ms: int
) -> delete_records.DeleteRecordsPartitionResult:
    """Ask the leader once, and answer what it says."""
    asked = delete_records.DeleteRecordsTopic(TOPIC, (delete_records.DeleteRecordsPartition(0, offset),))
    request = delete_records.DeleteRecordsRequest((asked,), timeout_ms)
    leader = facts(nodes, 0).leader
    assert leader is not None
    deadline_ms = client.session.deadline_ms()
    connection = await client.session.cluster.connection(leader, deadline_ms=deadline_ms)
    answer = await connection.call(delete_records.API, request, deadline_ms=deadline_ms)
    return answer.topics[0].partitions[0]


def starts(nodes: Nodes, *node_ids: int) -> Mapping[int, int]:
    return {each: hosted(nodes, each).log.start_offset for each in node_ids}


async def led_by(nodes: Nodes, *node_ids: int) -> int:
    """Who of them comes to lead, and does."""

    def leading() -> int | None:
        leader = facts(nodes, 0).leader
        if leader not in node_ids or not nodes.members[leader].machine.has_started:
            return None
        if not any(each.name.topic == TOPIC for each in nodes[leader].partitions):
            return None  # it has heard of it, and opens it now
        return None if isinstance(hosted(nodes, leader), Replica) else leader

    await nodes.until(lambda: leading() is not None, within_s=60)
    leader = leading()
    assert leader is not None
    return leader


def partition(nodes: Nodes) -> Partition:
    return facts(nodes, 0)


def test_records_that_were_told_to_be_deleted_stay_so_when_another_leads() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2, 3)
            assert await Admin(client).delete_records(TOPIC, {0: 10}) == {0: 10}
            assert starts(nodes, 1, 2, 3) == {1: 10, 2: 10, 3: 10}
            nodes.members[1].kill()
            leader = await led_by(nodes, 2, 3)
            assert hosted(nodes, leader).log.start_offset == 10
            assert partition(nodes).start_offset == 0  # nobody had to be spoken for

    in_a_cluster(story, *SOON, nodes=4)


def test_a_deletion_is_told_soon_though_nothing_is_written() -> None:
    async def story(nodes: Nodes) -> float:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2, 3)
            began_s = nodes.world.now_s
            await Admin(client).delete_records(TOPIC, {0: 4})
            return nodes.world.now_s - began_s

    assert in_a_cluster(story, "replica.fetch.wait.max.ms=20000", nodes=4) < 1


def test_a_dead_replica_holds_nobody_up_and_brings_nothing_back_as_the_leader() -> None:
    """It stays eligible: it has all that was committed, and more than there should be."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2, min_insync_replicas="2")
            nodes.members[2].kill()
            await nodes.until(lambda: partition(nodes).isr == (1,) and partition(nodes).eligible == (2,))
            answer = await delete(nodes, client, 10, timeout_ms=5000)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 10)
            nodes.members[1].kill()
            await nodes.until(lambda: partition(nodes).leader is None)
            await nodes.members[2].start()
            assert await led_by(nodes, 2) == 2
            assert hosted(nodes, 2).log.start_offset == 10
            await nodes.members[1].start()
            await nodes.until(lambda: set(partition(nodes).isr) == {1, 2})
            await produce(client, 1)
            consumer = Consumer(client, {TopicPartition(TOPIC, 0): 10})
            (consumed,) = await consumer.poll()
            assert consumed.records[0].offset == 10

    in_a_cluster(story, *SOON, nodes=3)


def test_a_leader_that_does_not_reach_what_was_deleted_begins_there() -> None:
    """Elected by force, out of sync: nothing that it has counts, and what it is given is not deleted by the next start."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2, unclean_leader_election_enable="true")
            nodes.members[2].kill()
            await nodes.until(lambda: partition(nodes).isr == (1,))
            await produce(client, 10)
            assert (await delete(nodes, client, 15, timeout_ms=5000)).low_watermark == 15
            nodes.members[1].kill()
            await nodes.until(lambda: partition(nodes).leader is None)
            await nodes.members[2].start()
            await led_by(nodes, 2)
            log = hosted(nodes, 2).log
            assert (log.start_offset, log.end_offset) == (15, 15)
            await produce(client, 3)
            await nodes.members[2].stop()
            await nodes.members[2].start()
            await led_by(nodes, 2)
            log = hosted(nodes, 2).log
            assert (log.start_offset, log.end_offset) == (15, 18)

    in_a_cluster(story, *SOON, nodes=3)


def test_a_replica_in_service_that_does_not_follow_holds_a_deletion_up() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2)
            nodes.world.network.partition("node1", "node2")
            answer = await delete(nodes, client, 10, timeout_ms=8000)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
            assert nodes.is_serving(2, seen_by=0)
            nodes.world.network.mend_all()
            answer = await delete(nodes, client, 10, timeout_ms=30_000)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 10)
            assert starts(nodes, 1, 2) == {1: 10, 2: 10}

    in_a_cluster(story, *SOON, nodes=3)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "in order"])
def test_who_comes_back_leaves_behind_what_was_deleted_meanwhile(is_killed: bool) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2, 3)
            if is_killed:
                nodes.members[3].kill()
            else:
                await nodes.members[3].stop()
            await nodes.until(lambda: set(partition(nodes).isr) == {1, 2})
            answer = await delete(nodes, client, 7, timeout_ms=5000)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 7)
            assert partition(nodes).start_offset == 7
            await nodes.members[3].start()
            await nodes.until(lambda: set(partition(nodes).isr) == {1, 2, 3})
            assert starts(nodes, 1, 2, 3) == {1: 7, 2: 7, 3: 7}

    in_a_cluster(story, *SOON, nodes=4)


def test_an_empty_copy_is_filled_though_the_log_begins_in_the_middle_of_a_batch() -> None:
    """There is nothing to ask for at the beginning of that batch, and nothing else that could be appended first."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, 1, 2, 3)
            await client.produce(TOPIC, 0, build([Record(timestamp=0, value=b"x") for _ in range(10)]))
            assert await Admin(client).delete_records(TOPIC, {0: 15}) == {0: 15}
            nodes.members[3].kill()
            nodes.members[3].machine.replace_disk()
            await nodes.members[3].start()
            await nodes.until(lambda: set(partition(nodes).isr) == {1, 2, 3}, within_s=60)
            await nodes.until(lambda: hosted(nodes, 3).log.start_offset == 15)
            assert hosted(nodes, 3).log.end_offset == 20

    in_a_cluster(story, *SOON, nodes=4)


def test_a_batch_that_was_deleted_is_not_appended_again_when_it_comes_again_after_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def none_yet(_: Housekeeping) -> None:
        """The snapshot that a new segment asks for is in no hurry."""

    monkeypatch.setattr(Housekeeping, "_write_snapshots", none_yet)

    async def story(nodes: Nodes) -> tuple[int, int, int]:
        batch = build(
            [Record(timestamp=0, value=b"once")],
            producer_id=ProducerId(77),
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
        )
        async with nodes.client() as client:
            await create(nodes, client, 1, segment_ms="500", retention_ms="-1")
            first = await client.produce(TOPIC, 0, bytearray(batch))
            await asyncio.sleep(1)
            await produce(client, 1)  # in the next segment
            answer = await delete(nodes, client, 11, timeout_ms=10_000)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 11)
            assert hosted(nodes, 1).log.segment_count == 1
            nodes.members[1].kill()
            await nodes.members[1].start()
            await nodes.until(lambda: nodes.is_serving(1, seen_by=0))
            again = await client.produce(TOPIC, 0, bytearray(batch))
            return first.base_offset, again.base_offset, hosted(nodes, 1).log.end_offset

    assert in_a_cluster(story, *SOON) == (10, 10, 12)
