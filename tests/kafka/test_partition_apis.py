"""Partitions as tools look at them: page by page, by what they take on disk, who writes to them, and where they are."""

import pytest

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_partition_reassignments,
    create_acls,
    delete_acls,
    describe_acls,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    list_partition_reassignments,
)
from ropewalk.wire.messages.describe_topic_partitions import Cursor
from tests.kafka.door import Door, at_the_door, batch_of

ALL: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "pages", "next_cursor"),
    [
        pytest.param(("c", "a"), 2000, None, {"a": [0], "c": [0, 1, 2]}, None, id="in the order of names"),
        pytest.param(ALL, 2000, None, {"a": [0], "b": [0, 1], "c": [0, 1, 2]}, None, id="all"),
        pytest.param(("c", "c"), 2000, None, {"c": [0, 1, 2]}, None, id="named twice"),
        pytest.param(ALL, 2, None, {"a": [0], "b": [0]}, ("b", 1), id="cut within a topic"),
        pytest.param(ALL, 3, None, {"a": [0], "b": [0, 1]}, ("c", 0), id="cut between topics"),
        pytest.param(ALL, 6, None, {"a": [0], "b": [0, 1], "c": [0, 1, 2]}, None, id="just enough"),
        pytest.param(ALL, 2, ("b", 1), {"b": [1], "c": [0]}, ("c", 1), id="going on"),
        pytest.param(ALL, 9, ("bb", 1), {"c": [0, 1, 2]}, None, id="going on behind a deleted topic"),
        pytest.param(("a", "b"), 9, ("b", 9), {"b": []}, None, id="going on behind the end"),
        pytest.param(("c",), 0, None, {"c": [0]}, ("c", 1), id="no room is room for one"),
    ],
)
def test_topics_are_described_page_by_page(
    names: tuple[str, ...],
    limit: int,
    cursor: tuple[str, int] | None,
    pages: dict[str, list[int]],
    next_cursor: tuple[str, int] | None,
) -> None:
    async def story(door: Door) -> describe_topic_partitions.DescribeTopicPartitionsResponse:
        for name, count in (("b", 2), ("a", 1), ("c", 3)):
            await door.create(name, count)
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            tuple(map(describe_topic_partitions.TopicRequest, names)),
            limit,
            None if cursor is None else Cursor(*cursor),
        )
        return await door.call(describe_topic_partitions.API, 0, request)

    response = at_the_door(story)
    found = {topic.name: [partition.index for partition in topic.partitions] for topic in response.topics}
    assert list(found.items()) == list(pages.items())
    assert response.next_cursor == (None if next_cursor is None else Cursor(*next_cursor))


def test_the_node_has_a_limit_of_its_own_to_a_page() -> None:
    async def story(door: Door) -> Cursor | None:
        await door.create("t", 3)
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(())
        return (await door.call(describe_topic_partitions.API, 0, request)).next_cursor

    assert at_the_door(story, "max.request.partition.size.limit=2") == Cursor("t", 2)


@pytest.mark.parametrize(
    ("name", "cursor", "expected"),
    [
        pytest.param("no", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param("bad name", None, ErrorCode.INVALID_TOPIC_EXCEPTION, id="no such name"),
        pytest.param("t", Cursor("t", -1), ErrorCode.INVALID_REQUEST, id="a partition below zero"),
        pytest.param("t", Cursor("u", 0), ErrorCode.INVALID_REQUEST, id="a cursor elsewhere"),
    ],
)
def test_topics_that_cannot_be_described(name: str, cursor: Cursor | None, expected: ErrorCode) -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        topics = (describe_topic_partitions.TopicRequest(name),)
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(topics, 10, cursor)
        (topic,) = (await door.call(describe_topic_partitions.API, 0, request)).topics
        return topic.error_code, len(topic.partitions)

    assert at_the_door(story) == (expected, 0)


Asked = tuple[describe_log_dirs.DescribableLogDirTopic, ...] | None


@pytest.mark.parametrize("version", describe_log_dirs.API.versions)
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(None, {("t", 0): True, ("t", 1): False}, id="all"),
        pytest.param(
            (
                describe_log_dirs.DescribableLogDirTopic("t", (0, 9)),
                describe_log_dirs.DescribableLogDirTopic("no", (0,)),
            ),
            {("t", 0): True},
            id="some, and some that are not there",
        ),
        pytest.param((), {}, id="none"),
    ],
)
def test_what_partitions_take_on_disk(
    version: int, asked: Asked, expected: dict[tuple[str, int], bool]
) -> None:
    async def story(door: Door) -> describe_log_dirs.DescribeLogDirsResponse:
        await door.create("t", 2)
        await door.produce("t", batch_of("x" * 100))
        return await door.call(
            describe_log_dirs.API, version, describe_log_dirs.DescribeLogDirsRequest(asked)
        )

    (directory,) = at_the_door(story).results
    assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, "/data")
    assert {
        (topic.name, partition.index): partition.partition_size > 100
        for topic in directory.topics
        for partition in topic.partitions
    } == expected
    if version >= 4:
        assert directory.total_bytes > directory.usable_bytes > 0


def test_topics_in_memory_are_in_a_directory_of_that_name() -> None:
    async def story(door: Door) -> dict[str, list[str]]:
        await door.create("kept")
        await door.create("forgotten", storage="memory")
        request = describe_log_dirs.DescribeLogDirsRequest(None)
        results = (await door.call(describe_log_dirs.API, 5, request)).results
        return {result.log_dir: [topic.name for topic in result.topics] for result in results}

    assert at_the_door(story) == {"/data": ["kept"], "memory": ["forgotten"]}


def test_idempotent_producers_are_described() -> None:
    async def story(door: Door) -> list[tuple[int, list[tuple[int, int, int]]]]:
        await door.create("t")
        await door.produce("t", batch_of("a", "b", producer=(7, 2, 0)))
        topics = (
            describe_producers.TopicRequest("t", (0, 9)),
            describe_producers.TopicRequest("no", (0,)),
        )
        request = describe_producers.DescribeProducersRequest(topics)
        response = await door.call(describe_producers.API, 0, request)
        return [
            (
                partition.error_code,
                [
                    (producer.producer_id, producer.producer_epoch, producer.last_sequence)
                    for producer in partition.active_producers
                ],
            )
            for topic in response.topics
            for partition in topic.partitions
        ]

    assert at_the_door(story) == [
        (ErrorCode.NONE, [(7, 2, 1)]),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
    ]


@pytest.mark.parametrize(
    ("version", "election", "named", "expected"),
    [
        pytest.param(2, 0, True, (ErrorCode.NONE, [84, 3]), id="preferred"),
        pytest.param(2, 1, True, (ErrorCode.NONE, [84, 3]), id="any"),
        pytest.param(0, 0, True, (ErrorCode.NONE, [84, 3]), id="the first version"),
        pytest.param(2, 5, True, (ErrorCode.INVALID_REQUEST, [42, 42]), id="no such election"),
        pytest.param(2, 0, False, (ErrorCode.NONE, []), id="all"),
    ],
)
def test_leaders_are_already_those_that_should_lead(
    version: int, election: int, named: bool, expected: tuple[int, list[int]]
) -> None:
    async def story(door: Door) -> tuple[int, list[int]]:
        await door.create("t")
        asked = (elect_leaders.TopicPartitions("t", (0, 9)),) if named else None
        request = elect_leaders.ElectLeadersRequest(election, asked)
        response = await door.call(elect_leaders.API, version, request)
        (topic,) = response.replica_election_results
        return response.error_code, [partition.error_code for partition in topic.partitions]

    assert at_the_door(story) == expected


@pytest.mark.parametrize(
    ("topic", "replicas", "expected"),
    [
        pytest.param("t", (0,), ErrorCode.NONE, id="where it is"),
        pytest.param("t", None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, id="nothing to give up"),
        pytest.param("t", (7,), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="no such broker"),
        pytest.param("t", (0, 0), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="the same broker twice"),
        pytest.param("t", (), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="nowhere"),
        pytest.param("no", (0,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param("no", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="nothing to give up nowhere"),
    ],
)
def test_reassignment_on_one_node(topic: str, replicas: tuple[int, ...] | None, expected: ErrorCode) -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        partition = alter_partition_reassignments.ReassignablePartition(0, replicas)
        request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=(alter_partition_reassignments.ReassignableTopic(topic, (partition,)),)
        )
        altered = await door.call(alter_partition_reassignments.API, 1, request)
        listed = await door.call(
            list_partition_reassignments.API,
            0,
            list_partition_reassignments.ListPartitionReassignmentsRequest(),
        )
        return altered.topics[0].partitions[0].error_code, len(listed.topics)

    assert at_the_door(story) == (expected, 0)


@pytest.mark.parametrize("version", describe_acls.API.versions)
def test_there_is_no_authorizer(version: int) -> None:
    async def story(door: Door) -> int:
        request = describe_acls.DescribeAclsRequest(1, None, 1, None, None, 1, 1)
        return (await door.call(describe_acls.API, version, request)).error_code

    assert at_the_door(story) == ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", create_acls.API.versions)
def test_rules_can_neither_be_added_nor_removed_where_nothing_is_checked(version: int) -> None:
    async def story(door: Door) -> tuple[int, int]:
        creation = create_acls.AclCreation(2, "t", 3, "User:alice", "*", 3, 3)
        added = await door.call(create_acls.API, version, create_acls.CreateAclsRequest((creation,)))
        every = delete_acls.DeleteAclsFilter(1, None, 1, None, None, 1, 1)
        removed = await door.call(delete_acls.API, version, delete_acls.DeleteAclsRequest((every,)))
        return added.results[0].error_code, removed.filter_results[0].error_code

    assert at_the_door(story) == (ErrorCode.SECURITY_DISABLED, ErrorCode.SECURITY_DISABLED)
