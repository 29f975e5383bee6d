"""Groups at the Kafka door: what members and administrators hear, over restarts and full disks too."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ropewalk.broker.partitions.partition import topic_deleted
from ropewalk.client.errors import ConnectionLost
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sync_group,
)
from tests.kafka.door import Door, at_the_door, batch_of

SETTINGS = ("group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=3")


async def find(door: Door, group: str = "g", version: int = 4) -> None:
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=(group,))
    (found,) = (await door.call(find_coordinator.API, version, request)).coordinators
    assert (found.error_code, found.node_id, found.port) == (0, 0, 9092)


def joining(member_id: str = "", *, group: str = "g", **fields: object) -> join_group.JoinGroupRequest:
    return join_group.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(join_group.JoinGroupRequestProtocol("range", b"metadata"),),
        **fields,  # type: ignore[arg-type]
    )


async def join(door: Door, group: str = "g") -> join_group.JoinGroupResponse:
    """As clients do: ask, be given an id, ask again."""
    first = await door.call(join_group.API, 9, joining(group=group))
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return await door.call(join_group.API, 9, joining(first.member_id, group=group))


async def member(door: Door, group: str = "g") -> join_group.JoinGroupResponse:
    """The only member of a group, with its assignment."""
    joined = await join(door, group)
    assert joined.error_code == 0
    assert joined.leader == joined.member_id
    synced = await door.call(
        sync_group.API,
        5,
        sync_group.SyncGroupRequest(
            group,
            joined.generation_id,
            joined.member_id,
            assignments=(sync_group.SyncGroupRequestAssignment(joined.member_id, b"share"),),
        ),
    )
    assert (synced.error_code, synced.assignment) == (0, b"share")
    return joined


def committing(
    offset: int,
    *,
    group: str = "g",
    generation: int = -1,
    member_id: str = "",
    topic: str = "t",
    partition: int = 0,
    metadata: str | None = "m",
) -> offset_commit.OffsetCommitRequest:
    place = offset_commit.OffsetCommitRequestPartition(partition, offset, 7, metadata)
    topics = (offset_commit.OffsetCommitRequestTopic(topic, partitions=(place,)),)
    return offset_commit.OffsetCommitRequest(group, generation, member_id, topics=topics)


async def commit(door: Door, request: offset_commit.OffsetCommitRequest, version: int = 9) -> int:
    response = await door.call(offset_commit.API, version, request)
    return response.topics[0].partitions[0].error_code


async def committed(
    door: Door, group: str = "g", topic: str = "t", partition: int = 0
) -> tuple[int, str | None]:
    topics = (offset_fetch.OffsetFetchRequestTopics(topic, partition_indexes=(partition,)),)
    request = offset_fetch.OffsetFetchRequest(
        groups=(offset_fetch.OffsetFetchRequestGroup(group, topics=topics),)
    )
    (answer,) = (await door.call(offset_fetch.API, 8, request)).groups
    while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # after a restart
        (answer,) = (await door.call(offset_fetch.API, 8, request)).groups
    assert answer.error_code == 0
    (found,) = answer.topics[0].partitions
    return found.committed_offset, found.metadata


def test_a_member_joins_syncs_beats_commits_and_leaves() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find(door)
        joined = await member(door)
        beat = heartbeat.HeartbeatRequest("g", joined.generation_id, joined.member_id)
        assert (await door.call(heartbeat.API, 4, beat)).error_code == 0
        request = committing(5, generation=joined.generation_id, member_id=joined.member_id)
        assert await commit(door, request) == 0
        assert await committed(door) == (5, "m")
        leave = leave_group.LeaveGroupRequest("g", members=(leave_group.MemberIdentity(joined.member_id),))
        (left,) = (await door.call(leave_group.API, 5, leave)).members
        assert left.error_code == 0
        assert (await door.call(heartbeat.API, 4, beat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    at_the_door(story, *SETTINGS)


def test_before_anyone_looks_for_a_coordinator_there_is_none() -> None:
    async def story(door: Door) -> None:
        beat = heartbeat.HeartbeatRequest("g", 1, "m")
        assert (await door.call(heartbeat.API, 4, beat)).error_code == ErrorCode.NOT_COORDINATOR
        assert (await door.call(list_groups.API, 5, list_groups.ListGroupsRequest())).groups == ()

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize("version", range(find_coordinator.API.version_max + 1))
def test_a_coordinator_is_found_in_every_version(version: int) -> None:
    async def story(door: Door) -> tuple[int, int, int]:
        request = find_coordinator.FindCoordinatorRequest(key="g", coordinator_keys=("g",))
        response = await door.call(find_coordinator.API, version, request)
        if version >= 4:
            (found,) = response.coordinators
            return found.error_code, found.node_id, found.port
        return response.error_code, response.node_id, response.port

    assert at_the_door(story, *SETTINGS) == (0, 0, 9092)


@pytest.mark.parametrize(
    ("key", "key_type", "code"),
    [
        pytest.param("", 0, ErrorCode.INVALID_GROUP_ID, id="a group without a name"),
        pytest.param("s:1:0", 2, ErrorCode.INVALID_REQUEST, id="a share group"),
        pytest.param("x", 9, ErrorCode.INVALID_REQUEST, id="something unheard of"),
    ],
)
def test_other_coordinators_are_refused_for_good(key: str, key_type: int, code: ErrorCode) -> None:
    async def story(door: Door) -> None:
        request = find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
        (found,) = (await door.call(find_coordinator.API, 6, request)).coordinators
        assert (found.error_code, found.node_id) == (code, -1)

    at_the_door(story, *SETTINGS)


def test_what_was_committed_is_there_after_a_restart_and_the_unknown_is_not_zero() -> None:
    async def story(door: Door) -> None:
        await door.create("t", partitions=2)
        await find(door)
        joined = await member(door)
        request = committing(5, generation=joined.generation_id, member_id=joined.member_id)
        assert await commit(door, request) == 0
        await door.restart()
        assert await committed(door) == (5, "m")
        assert await committed(door, partition=1) == (-1, "")
        # The member has a session to show up again, in the same generation.
        beat = heartbeat.HeartbeatRequest("g", joined.generation_id, joined.member_id)
        assert (await door.call(heartbeat.API, 4, beat)).error_code == 0
        stale = committing(9, generation=joined.generation_id - 1, member_id=joined.member_id)
        assert await commit(door, stale) == ErrorCode.ILLEGAL_GENERATION
        assert await committed(door) == (5, "m")

    at_the_door(story, *SETTINGS)


def test_offsets_of_a_deleted_topic_go_though_another_has_its_name_before_the_node_has_followed() -> None:
    """To follow a deletion takes as long as the files do. Whoever reads the next topic must not begin where the former ended."""

    async def story(door: Door) -> tuple[int, str | None]:
        await door.create("t")
        await find(door)
        assert await commit(door, committing(5)) == 0
        other = await door.another()
        deleting = asyncio.ensure_future(other.delete("t"))
        while "t" in door.node.image.topics:
            await asyncio.sleep(0.000_01)
        await door.create("t")
        await deleting
        return await committed(door)

    assert at_the_door(story, *SETTINGS) == (-1, "")


def test_offsets_of_a_deleted_topic_go_with_it() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await door.create("u")
        await find(door)
        assert await commit(door, committing(5)) == 0
        assert await commit(door, committing(6, topic="u")) == 0
        await door.delete("t")
        await door.create("t")
        assert await committed(door) == (-1, "")
        assert await committed(door, topic="u") == (6, "m")
        await door.restart()
        assert await committed(door) == (-1, "")

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param(
            committing(1, topic="nowhere"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"
        ),
        pytest.param(
            committing(1, partition=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such partition"
        ),
        pytest.param(
            committing(1, generation=3, member_id="x"), ErrorCode.GROUP_ID_NOT_FOUND, id="no such group"
        ),
        pytest.param(
            committing(1, metadata="x" * 5000), ErrorCode.OFFSET_METADATA_TOO_LARGE, id="a long note"
        ),
        pytest.param(committing(1, metadata=None), ErrorCode.NONE, id="no note"),
        pytest.param(committing(1, group=""), ErrorCode.NONE, id="the group without a name"),
    ],
)
def test_a_commit_is_refused_by_partition(
    request_: offset_commit.OffsetCommitRequest, code: ErrorCode
) -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        await find(door)
        return await commit(door, request_)

    assert at_the_door(story, *SETTINGS) == code


@pytest.mark.parametrize("version", range(1, offset_fetch.API.version_max + 1))
def test_offsets_are_fetched_in_every_version(version: int) -> None:
    async def story(door: Door) -> tuple[int, int]:
        topic_id = await door.create("t")
        await find(door)
        assert await commit(door, committing(5)) == 0
        if version >= 8:
            places = (offset_fetch.OffsetFetchRequestTopics("t", topic_id, (0,)),)
            request = offset_fetch.OffsetFetchRequest(
                groups=(
                    offset_fetch.OffsetFetchRequestGroup("g", topics=places),
                    offset_fetch.OffsetFetchRequestGroup("g", topics=None),
                )
            )
            some, everything = (await door.call(offset_fetch.API, version, request)).groups
            assert some.topics == everything.topics
            found = some.topics[0].partitions[0]
            return found.committed_offset, found.error_code
        asked = (offset_fetch.OffsetFetchRequestTopic("t", (0,)),)
        single = offset_fetch.OffsetFetchRequest("g", asked)
        (topic,) = (await door.call(offset_fetch.API, version, single)).topics
        return topic.partitions[0].committed_offset, topic.partitions[0].error_code

    assert at_the_door(story, *SETTINGS) == (5, 0)


def test_a_topic_by_an_unknown_id_is_told_apart() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find(door)
        places = (offset_fetch.OffsetFetchRequestTopics("", b"\1" * 16, (0,)),)
        request = offset_fetch.OffsetFetchRequest(
            groups=(offset_fetch.OffsetFetchRequestGroup("g", topics=places),)
        )
        (answer,) = (await door.call(offset_fetch.API, 10, request)).groups
        assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        place = offset_commit.OffsetCommitRequestPartition(0, 1)
        topics = (offset_commit.OffsetCommitRequestTopic("", b"\1" * 16, (place,)),)
        code = await commit(door, offset_commit.OffsetCommitRequest("g", topics=topics), version=10)
        assert code == ErrorCode.UNKNOWN_TOPIC_ID

    at_the_door(story, *SETTINGS)


def test_groups_are_listed_described_and_deleted() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find(door)
        joined = await member(door)
        assert await commit(door, committing(5, group="idle")) == 0
        listed = (await door.call(list_groups.API, 5, list_groups.ListGroupsRequest())).groups
        assert sorted((group.group_id, group.group_state, group.group_type) for group in listed) == [
            ("g", "Stable", "classic"),
            ("idle", "Empty", "classic"),
        ]
        stable = list_groups.ListGroupsRequest(states_filter=("stable",))
        assert [group.group_id for group in (await door.call(list_groups.API, 5, stable)).groups] == ["g"]
        newer = list_groups.ListGroupsRequest(types_filter=("consumer",))
        assert (await door.call(list_groups.API, 5, newer)).groups == ()

        describe = describe_groups.DescribeGroupsRequest(("g", "none"), include_authorized_operations=True)
        group, unknown = (await door.call(describe_groups.API, 6, describe)).groups
        assert (group.group_state, group.protocol_data) == ("Stable", "range")
        (described,) = group.members
        assert (described.member_id, described.member_assignment) == (joined.member_id, b"share")
        assert described.client_host.startswith("/")
        assert (unknown.error_code, unknown.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
        _, unknown = (await door.call(describe_groups.API, 5, describe)).groups
        assert (unknown.error_code, unknown.group_state) == (ErrorCode.NONE, "Dead")

        delete = delete_groups.DeleteGroupsRequest(("g", "idle", "none"))
        results = (await door.call(delete_groups.API, 3, delete)).results
        assert [result.error_code for result in results] == [
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.NONE,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ]
        assert await committed(door, "idle") == (-1, "")

    at_the_door(story, *SETTINGS)


def test_single_offsets_are_deleted() -> None:
    async def story(door: Door) -> None:
        await door.create("t", partitions=2)
        await find(door)
        assert await commit(door, committing(5)) == 0
        assert await commit(door, committing(6, partition=1)) == 0
        partitions = tuple(offset_delete.OffsetDeleteRequestPartition(index) for index in (0, 9))
        request = offset_delete.OffsetDeleteRequest(
            "g", (offset_delete.OffsetDeleteRequestTopic("t", partitions),)
        )
        response = await door.call(offset_delete.API, 0, request)
        codes = [partition.error_code for partition in response.topics[0].partitions]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await committed(door) == (-1, "")
        assert await committed(door, partition=1) == (6, "m")
        other = offset_delete.OffsetDeleteRequest("none", request.topics)
        assert (await door.call(offset_delete.API, 0, other)).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    at_the_door(story, *SETTINGS)


def test_a_member_whose_connection_ends_while_it_waits_goes_after_its_session() -> None:
    async def story(door: Door) -> None:
        await find(door)
        joined = await member(door)
        # A second one waits for the first to join again, and its connection ends.
        other = await door.another()
        first = await other.call(join_group.API, 9, joining())
        waiting = other.send(join_group.API, 9, joining(first.member_id))
        beat = heartbeat.HeartbeatRequest("g", joined.generation_id, joined.member_id)
        while (await door.call(heartbeat.API, 4, beat)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        other.connection.close()
        with pytest.raises(ConnectionLost):
            await waiting
        again = await door.call(join_group.API, 9, joining(joined.member_id))
        assert again.error_code == 0
        # The round may have begun with the lost member in it; its session ends it, and the group is whole again.
        while len(again.members) != 1:
            again = await door.call(join_group.API, 9, joining(joined.member_id))

    at_the_door(story, *SETTINGS)


def test_clients_cannot_write_what_the_node_writes() -> None:
    async def story(door: Door) -> produce.PartitionProduceResponse:
        await find(door)
        return await door.produce("__consumer_offsets", batch_of("forged"))

    assert at_the_door(story, *SETTINGS).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_full_disk_makes_commits_uncertain_and_loses_none_that_was_answered() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find(door)
        assert await commit(door, committing(5)) == 0
        platters = door.machine.platters
        platters.capacity_bytes = platters.used_bytes
        assert await commit(door, committing(6)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        code = await commit(door, committing(7))
        assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        platters.make_room()
        while (code := await commit(door, committing(8))) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert code == 0
        assert await committed(door) == (8, "m")

    at_the_door(story, *SETTINGS)


def test_members_live_on_while_their_group_is_being_read() -> None:
    """As with Kafka: clients take any other answer to a heartbeat or a sync as the end."""

    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        await find(door)
        joined = await member(door)
        platters = door.machine.platters
        platters.capacity_bytes = platters.used_bytes
        mine = committing(6, generation=joined.generation_id, member_id=joined.member_id)
        assert await commit(door, mine) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await commit(door, mine) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        beat = heartbeat.HeartbeatRequest("g", joined.generation_id, joined.member_id)
        sync = sync_group.SyncGroupRequest("g", joined.generation_id, joined.member_id)
        beaten = await door.call(heartbeat.API, 4, beat)
        return beaten.error_code, (await door.call(sync_group.API, 5, sync)).error_code

    assert at_the_door(story, *SETTINGS) == (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_shard_that_is_deleted_while_it_is_read_is_no_complaint() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await find(door)
        assert await commit(door, committing(1)) == 0
        shards = door.node._parts.groups._host._shards
        shard = next(shard for shard in shards if shard.partition.log.end_offset)
        with capture_logs() as logs:
            loading = asyncio.ensure_future(shards._load(shard))
            await asyncio.sleep(0)
            shard.partition.end(topic_deleted(shard.partition.name))
            await loading
        assert shards.is_loaded
        return [str(entry["event"]) for entry in logs if entry["log_level"] == "error"]

    assert at_the_door(story, *SETTINGS) == []
