"""Groups with server-side assignment at the Kafka door: what members and administrators hear (KIP-848)."""

from typing import Any

import pytest
from msgspec.structs import replace

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    delete_groups,
    describe_groups,
    join_group,
    list_groups,
    offset_fetch,
)
from tests.kafka.door import Door, at_the_door
from tests.kafka.test_group_apis import SETTINGS, commit, committing, find, joining, member

Response = consumer_group_heartbeat.ConsumerGroupHeartbeatResponse

JOINING = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="a",
    member_epoch=0,
    rebalance_timeout_ms=60_000,
    subscribed_topic_names=("t",),
    topic_partitions=(),
)


async def beat(door: Door, version: int = 1, **changes: object) -> Response:
    return await _sent(door, replace(JOINING, **changes), version)


async def beat_on(door: Door, member_id: str, epoch: int, **changes: object) -> Response:
    """A heartbeat that says as little as it may."""
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest("g", member_id, epoch)
    return await _sent(door, replace(request, **changes), 1)


async def _sent(
    door: Door, request: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, version: int
) -> Response:
    response = await door.call(consumer_group_heartbeat.API, version, request)
    while response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # after a restart
        response = await door.call(consumer_group_heartbeat.API, version, request)
    return response


def owned(topic_id: bytes, *partitions: int) -> tuple[consumer_group_heartbeat.TopicPartitions, ...]:
    return (consumer_group_heartbeat.TopicPartitions(topic_id, partitions),)


async def described(door: Door, version: int = 1) -> consumer_group_describe.DescribedGroup:
    request = consumer_group_describe.ConsumerGroupDescribeRequest(("g",), True)
    (group,) = (await door.call(consumer_group_describe.API, version, request)).groups
    return group


def test_members_join_share_and_leave() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t", 3)
        await find(door)
        first = await beat(door)
        assert (first.error_code, first.member_id, first.member_epoch) == (0, "a", 1)
        assert first.heartbeat_interval_ms == 5000
        assert first.assignment is not None
        assert first.assignment.topic_partitions == owned(topic_id, 0, 1, 2)

        second = await beat(door, member_id="b")
        assert second.member_epoch == 2
        assert second.assignment == consumer_group_heartbeat.Assignment(())
        told = await beat_on(door, "a", 1)
        assert told.member_epoch == 1
        assert told.assignment is not None
        assert told.assignment.topic_partitions == owned(topic_id, 0, 1)
        released = await beat_on(door, "a", 1, topic_partitions=owned(topic_id, 0, 1))
        assert (released.member_epoch, released.assignment) == (2, None)
        given = await beat_on(door, "b", 2)
        assert given.assignment is not None
        assert given.assignment.topic_partitions == owned(topic_id, 2)

        assert await commit(door, committing(5, generation=2, member_id="b", partition=2)) == 0
        stale = committing(6, generation=1, member_id="b", partition=2)
        assert await commit(door, stale) == ErrorCode.STALE_MEMBER_EPOCH
        assert await commit(door, stale, version=8) == ErrorCode.UNSUPPORTED_VERSION

        group = await described(door)
        assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
        assert (group.group_epoch, group.assignment_epoch) == (2, 2)
        shares = {each.member_id: each.assignment.topic_partitions for each in group.members}
        assert shares == {
            "a": (consumer_group_describe.TopicPartitions(topic_id, "t", (0, 1)),),
            "b": (consumer_group_describe.TopicPartitions(topic_id, "t", (2,)),),
        }
        assert [each.member_type for each in group.members] == [1, 1]

        for member_id in "ab":
            left = await beat_on(door, member_id, -1)
            assert (left.error_code, left.member_epoch) == (0, -1)
        assert (await described(door)).group_state == "Empty"
        deleted = await door.call(delete_groups.API, 2, delete_groups.DeleteGroupsRequest(("g",)))
        assert deleted.results[0].error_code == 0

    at_the_door(story, *SETTINGS)


def test_a_coordinator_that_starts_again_goes_on_where_it_was() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t", 2)
        await find(door)
        await beat(door)
        await beat(door, member_id="b")
        await beat_on(door, "a", 1)
        await door.restart()
        released = await beat_on(door, "a", 1, topic_partitions=owned(topic_id, 0))
        assert (released.error_code, released.member_epoch) == (0, 2)
        given = await beat_on(door, "b", 2)
        assert given.assignment is not None
        assert given.assignment.topic_partitions == owned(topic_id, 1)

    at_the_door(story, *SETTINGS)


def test_partitions_that_are_added_are_assigned_with_the_next_heartbeat() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t", 1)
        await find(door)
        await beat(door)
        grown = create_partitions.CreatePartitionsRequest(
            (create_partitions.CreatePartitionsTopic("t", 2, None),), 10_000, False
        )
        assert (await door.call(create_partitions.API, 3, grown)).results[0].error_code == 0
        given = await beat_on(door, "a", 1)
        assert given.assignment is not None
        assert given.assignment.topic_partitions == owned(topic_id, 0, 1)

    at_the_door(story, *SETTINGS)


def test_a_pattern_reads_what_matches_and_nothing_else() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t", 1)
        await find(door)
        joined = await beat(door, subscribed_topic_names=None, subscribed_topic_regex="[a-z]*")
        assert joined.assignment is not None
        assert joined.assignment.topic_partitions == owned(topic_id, 0)

    at_the_door(story, *SETTINGS)


REFUSALS: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("no group id", {"group_id": ""}, ErrorCode.INVALID_REQUEST),
    ("no member id", {"member_id": ""}, ErrorCode.INVALID_REQUEST),
    ("an empty instance id", {"instance_id": ""}, ErrorCode.INVALID_REQUEST),
    ("an empty rack", {"rack_id": ""}, ErrorCode.INVALID_REQUEST),
    ("no rebalance timeout", {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
    ("no topics", {"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
    ("nothing about what is owned", {"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
    ("something owned already", {"topic_partitions": owned(b"t" * 16, 0)}, ErrorCode.INVALID_REQUEST),
    ("an epoch that is none", {"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
    ("away without an instance id", {"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
    ("an unknown assignor", {"server_assignor": "chance"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    ("a bad pattern", {"subscribed_topic_regex": "(t"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    (
        "a pattern that cannot be matched in linear time",
        {"subscribed_topic_regex": r"(a)\1"},
        ErrorCode.INVALID_REGULAR_EXPRESSION,
    ),
    ("an epoch of no group", {"group_id": "h", "member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ("leaving no group", {"group_id": "h", "member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ("an epoch of no member", {"member_id": "z", "member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("an epoch of later", {"member_epoch": 9}, ErrorCode.FENCED_MEMBER_EPOCH),
    ("the name of another", {"member_id": "z", "instance_id": "x"}, ErrorCode.UNRELEASED_INSTANCE_ID),
    (
        "the name of another, later",
        {"member_id": "z", "instance_id": "x", "member_epoch": 1},
        ErrorCode.FENCED_INSTANCE_ID,
    ),
    ("a name that nobody has", {"instance_id": "y", "member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("one member too many", {"member_id": "z"}, ErrorCode.GROUP_MAX_SIZE_REACHED),
    ("a group of another kind", {"group_id": "classic"}, ErrorCode.GROUP_ID_NOT_FOUND),
]


@pytest.mark.parametrize(
    ("changes", "code"), [pytest.param(changes, code, id=name) for name, changes, code in REFUSALS]
)
def test_a_heartbeat_is_refused_with_the_code_that_kafka_gives(
    changes: dict[str, Any], code: ErrorCode
) -> None:
    async def story(door: Door) -> int:
        await door.create("t", 1)
        await find(door)
        await member(door, "classic")  # its members say nothing that a consumer would
        assert (await beat(door, instance_id="x")).error_code == 0
        refused = await beat(door, **changes)
        assert refused.error_message
        return refused.error_code

    assert at_the_door(story, *SETTINGS, "group.consumer.max.size=1") == code


def test_clients_are_told_that_the_broker_makes_assignments() -> None:
    async def story(door: Door) -> dict[str, int]:
        request = api_versions.ApiVersionsRequest("test", "1.0")
        answer = await door.call(api_versions.API, 4, request)
        return {each.name: each.max_version_level for each in answer.finalized_features}

    assert at_the_door(story)["group.version"] == 1


def test_an_old_client_is_given_a_member_id() -> None:
    async def story(door: Door) -> str | None:
        await door.create("t", 1)
        await find(door)
        return (await beat(door, version=0, member_id="")).member_id

    made = at_the_door(story, *SETTINGS)
    assert made is not None
    assert len(made) == 36


def test_each_kind_of_group_is_described_in_its_own_way_and_listed_with_its_type() -> None:
    async def story(door: Door) -> None:
        await door.create("t", 1)
        await find(door)
        await member(door, "classic")
        assert (await described(door)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        await beat(door)
        request = describe_groups.DescribeGroupsRequest(("g",))
        for version, code in ((5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
            (group,) = (await door.call(describe_groups.API, version, request)).groups
            assert (group.error_code, group.group_state) == (code, "Dead")

        async def listed(**filters: tuple[str, ...]) -> set[tuple[str, str, str, str]]:
            answer = await door.call(list_groups.API, 5, list_groups.ListGroupsRequest(**filters))
            return {
                (each.group_id, each.protocol_type, each.group_state, each.group_type)
                for each in answer.groups
            }

        here = ("g", "consumer", "Stable", "consumer")
        classic = ("classic", "consumer", "Stable", "classic")
        assert await listed() == {here, classic}
        assert await listed(types_filter=("Consumer",)) == {here}
        assert await listed(types_filter=("classic",), states_filter=("stable",)) == {classic}
        assert await listed(states_filter=("Reconciling",)) == set()

    at_the_door(story, *SETTINGS)


def test_a_member_that_fetches_offsets_must_be_in_its_epoch() -> None:
    async def story(door: Door) -> list[int]:
        await door.create("t", 1)
        await find(door)
        await beat(door)
        codes = []
        for member_id, epoch in (("a", 1), ("a", 0), ("z", 1), (None, -1)):
            topics = (offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
            group = offset_fetch.OffsetFetchRequestGroup("g", member_id, epoch, topics)
            request = offset_fetch.OffsetFetchRequest(groups=(group,))
            codes.append((await door.call(offset_fetch.API, 9, request)).groups[0].error_code)
        return codes

    expected = [0, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert at_the_door(story, *SETTINGS) == expected


def test_a_classic_join_that_is_no_consumers_is_refused_by_the_group() -> None:
    async def story(door: Door) -> int:
        await door.create("t", 1)
        await find(door)
        await beat(door)
        return (await door.call(join_group.API, 9, joining())).error_code

    assert at_the_door(story, *SETTINGS) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
