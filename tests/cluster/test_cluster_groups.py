"""Groups over several nodes: whoever leads a shard's partition looks after its groups, and knows what the last one knew."""

import asyncio
from functools import partial

from ropewalk.base.ids import Offset, TopicPartition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.watching.group_lag import PartitionLag, partition_lags
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.administration.groups import Groups
from ropewalk.records.record import Record, build
from ropewalk.sim.clients.link import Link, open_link
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    find_coordinator,
    heartbeat,
    join_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster

T0 = TopicPartition("t", 0)
NAMED = 9
"""The last version in which topics have names."""


async def a_group_not_on_the_controller(nodes: Nodes) -> tuple[str, int]:
    """A group, and the node that looks after it: one that can be lost without the controller."""
    async with nodes.client() as client:
        await Admin(client).create_topics([NewTopic("t", partition_count=2, replication_factor=3)])
    link = await link_to(nodes, 0)
    for number in range(100):
        coordinator = await coordinator_of(link, f"g{number}")
        if coordinator > 0:
            return f"g{number}", coordinator
    raise AssertionError("node 0 looks after everything")


async def link_to(nodes: Nodes, node_id: int) -> Link:
    return await open_link(nodes.world.network.host("client"), "client", (f"node{node_id}", KAFKA_PORT))


async def coordinator_of(link: Link, group: str) -> int:
    request = find_coordinator.FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    while True:
        answer = await link.send(find_coordinator.API, 4, request)
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            return answer.coordinators[0].node_id
        await asyncio.sleep(0.01)


def a_commit(
    group: str, offset: int, *, member_id: str = "", generation: int = -1
) -> offset_commit.OffsetCommitRequest:
    partition = offset_commit.OffsetCommitRequestPartition(0, offset)
    return offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(offset_commit.OffsetCommitRequestTopic("t", partitions=(partition,)),),
    )


async def commit(link: Link, request: offset_commit.OffsetCommitRequest) -> ErrorCode:
    answer = await link.send(offset_commit.API, NAMED, request)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def fetch(link: Link, group: str) -> tuple[ErrorCode, int | None]:
    topics = (offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
    request = offset_fetch.OffsetFetchRequest(
        groups=(offset_fetch.OffsetFetchRequestGroup(group, topics=topics),), require_stable=True
    )
    answer = (await link.send(offset_fetch.API, NAMED, request)).groups[0]
    return ErrorCode(answer.error_code), answer.topics[0].partitions[
        0
    ].committed_offset if answer.topics else None


def test_the_next_coordinator_knows_what_was_committed() -> None:
    async def story(nodes: Nodes) -> None:
        group, coordinator = await a_group_not_on_the_controller(nodes)
        async with nodes.client() as client:
            groups = Groups(client)
            for offset in range(20):
                assert await groups.commit(group, {T0: offset}) == {T0: None}
            nodes.members[coordinator].kill()
            assert (await groups.committed(group))[T0].offset == 19
            assert await groups.commit(group, {T0: 20}) == {T0: None}
            assert await coordinator_of(await link_to(nodes, 0), group) != coordinator

    in_a_cluster(story)


def test_a_coordinator_that_stops_in_order_hands_its_groups_over() -> None:
    async def story(nodes: Nodes) -> None:
        group, coordinator = await a_group_not_on_the_controller(nodes)
        async with nodes.client() as client:
            groups = Groups(client)
            assert await groups.commit(group, {T0: 7}) == {T0: None}
            await nodes.members[coordinator].stop()
            assert (await groups.committed(group))[T0].offset == 7
            await nodes.members[coordinator].start()
            assert await groups.commit(group, {T0: 8}) == {T0: None}
            assert (await groups.committed(group))[T0].offset == 8

    in_a_cluster(story)


def test_members_and_their_generation_outlive_their_coordinator() -> None:
    async def story(nodes: Nodes) -> None:
        group, coordinator = await a_group_not_on_the_controller(nodes)
        link = await link_to(nodes, coordinator)
        join = join_group.JoinGroupRequest(
            group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            protocol_type="consumer",
            protocols=(join_group.JoinGroupRequestProtocol("range", b"what it reads"),),
        )
        joined = await link.send(join_group.API, 3, join)
        assert joined.error_code == ErrorCode.NONE
        share = sync_group.SyncGroupRequestAssignment(joined.member_id, b"its share")
        sync = sync_group.SyncGroupRequest(
            group, joined.generation_id, joined.member_id, assignments=(share,)
        )
        assert (await link.send(sync_group.API, 3, sync)).error_code == ErrorCode.NONE

        nodes.members[coordinator].kill()
        survivor = await link_to(nodes, 0)
        while await coordinator_of(survivor, group) == coordinator:
            await asyncio.sleep(0.01)
        link = await link_to(nodes, await coordinator_of(survivor, group))
        beat = heartbeat.HeartbeatRequest(group, joined.generation_id, joined.member_id)
        while (code := (await link.send(heartbeat.API, 3, beat)).error_code) != ErrorCode.NONE:
            assert code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
            await asyncio.sleep(0.01)
        synced = await link.send(sync_group.API, 3, sync)
        assert (synced.error_code, bytes(synced.assignment)) == (ErrorCode.NONE, b"its share")
        member = {"member_id": joined.member_id}
        assert (
            await commit(link, a_commit(group, 5, generation=joined.generation_id, **member))
            == ErrorCode.NONE
        )
        assert (
            await commit(link, a_commit(group, 9, generation=joined.generation_id - 1, **member))
            == ErrorCode.ILLEGAL_GENERATION
        )

    in_a_cluster(story, "group.initial.rebalance.delay.ms=0")


def test_a_coordinator_that_is_cut_off_acknowledges_nothing_that_could_be_lost() -> None:
    """It does not know that another leads. What it is told stays with it, and its clients do not hear that it counts."""

    async def story(nodes: Nodes) -> None:
        group, coordinator = await a_group_not_on_the_controller(nodes)
        cut_off = await link_to(nodes, coordinator)
        assert await commit(cut_off, a_commit(group, 1)) == ErrorCode.NONE
        others = [node_id for node_id in range(3) if node_id != coordinator]
        for other in others:
            nodes.world.network.partition(f"node{coordinator}", f"node{other}")
        doubtful = asyncio.ensure_future(commit(cut_off, a_commit(group, 2)))

        survivor = await link_to(nodes, others[0])
        while await coordinator_of(survivor, group) == coordinator:
            await asyncio.sleep(0.01)
        async with nodes.client() as client:
            groups = Groups(client)
            assert (await groups.committed(group))[T0].offset == 1
            assert await groups.commit(group, {T0: 3}) == {T0: None}
            assert await doubtful in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
            code, offset = await fetch(cut_off, group)
            assert code != ErrorCode.NONE or offset in (1, 3), "2 was never committed, whoever asks"
            nodes.world.network.mend_all()
            await nodes.until(lambda: nodes.is_serving(coordinator, seen_by=others[0]))
            while (await fetch(cut_off, group))[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                await asyncio.sleep(0.01)
            code, offset = await fetch(cut_off, group)
            assert code == ErrorCode.NOT_COORDINATOR or offset == 3
            assert (await groups.committed(group))[T0].offset == 3

    in_a_cluster(story, "offsets.commit.timeout.ms=1000")


def test_the_lag_is_known_wherever_there_is_a_copy() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("t", partition_count=2, replication_factor=3)])
            batch = build([Record(value=b"one"), Record(value=b"two"), Record(value=b"three")])
            await client.produce("t", 0, batch)
        offsets = [("t", 0, Offset(1)), ("gone", 0, Offset(1))]
        expected = [PartitionLag("t", 0, Offset(1), 2), PartitionLag("gone", 0, Offset(1), None)]

        def is_told(partitions: Partitions) -> bool:
            return list(partition_lags(offsets, partitions)) == expected

        for node_id in range(3):
            await nodes.until(partial(is_told, nodes[node_id].partitions))

    in_a_cluster(story)
