"""The calls that kcat, AKHQ and Kafbat UI make when they start and on their main pages, as a table; all succeed.

kcat's were recorded (1.7.1 on librdkafka 2.0.2). Those of AKHQ (Java client 3.6) and Kafbat UI (Java client 3.9) follow
from which calls of the Java admin client their sources make, and with which version that client makes them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import Struct

from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
)
from ropewalk.wire.types import Message
from tests.kafka.door import Door, at_the_door, batch_of, produce_request

TOPIC, BROKER = 2, 4
LATEST, EARLIEST, BEGINNING_OF_TIME = -1, -2, 0
DELETE, SET = 1, 0

Body = Callable[[bytes], Message]
"""Given the id of the topic `orders`."""


def call(
    tool: str, page: str, api: Api[Any, Any], version: int, body: Message | Body, *expected: ErrorCode
) -> Any:
    """`expected` are the codes that may be in the answer; nothing but NONE unless said otherwise."""
    return pytest.param(
        api, version, body, set(expected) or {ErrorCode.NONE}, id=f"{tool}: {page}: {api.name} v{version}"
    )


def software(name: str, version: str) -> Message:
    return api_versions.ApiVersionsRequest(name, version)


def all_topics(**options: bool) -> Message:
    return metadata.MetadataRequest(None, allow_auto_topic_creation=False, **options)


def one_topic(**options: bool) -> Message:
    return metadata.MetadataRequest((metadata.MetadataRequestTopic(name="orders"),), **options)


def offsets_at(timestamp: int) -> Message:
    partitions = tuple(list_offsets.ListOffsetsPartition(index, timestamp=timestamp) for index in (0, 1))
    return list_offsets.ListOffsetsRequest(
        -1, topics=(list_offsets.ListOffsetsTopic("orders", partitions),), timeout_ms=30_000
    )


def fetch_from_start(**options: Any) -> Body:
    def body(topic_id: bytes) -> Message:
        partition = fetch.FetchPartition(0, current_leader_epoch=0, partition_max_bytes=1 << 20)
        topic = fetch.FetchTopic("orders", topic_id, (partition,))
        return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, topics=(topic,), **options)

    return body


def settings_of(kind: int, name: str, **options: bool) -> Message:
    resource = describe_configs.DescribeConfigsResource(kind, name, None)
    return describe_configs.DescribeConfigsRequest((resource,), **options)


def coordinator_of_readers() -> Message:
    return find_coordinator.FindCoordinatorRequest(key="readers", coordinator_keys=("readers",))


def offsets_of_readers() -> Message:
    group = offset_fetch.OffsetFetchRequestGroup("readers", topics=None)
    return offset_fetch.OffsetFetchRequest("readers", None, groups=(group,))


def new_offsets_of_readers() -> Message:
    partition = offset_commit.OffsetCommitRequestPartition(0, 0)
    return offset_commit.OffsetCommitRequest(
        "readers", topics=(offset_commit.OffsetCommitRequestTopic("orders", partitions=(partition,)),)
    )


def forgotten_offsets_of_readers() -> Message:
    topic = offset_delete.OffsetDeleteRequestTopic("orders", (offset_delete.OffsetDeleteRequestPartition(1),))
    return offset_delete.OffsetDeleteRequest("readers", (topic,))


def new_quota() -> Message:
    entry = alter_client_quotas.EntryData(
        (alter_client_quotas.EntityData("client-id", "batch"),),
        (alter_client_quotas.OpData("producer_byte_rate", 1e6, False),),
    )
    return alter_client_quotas.AlterClientQuotasRequest((entry,), False)


def all_acls() -> Message:
    any_, all_ = 1, 1
    return describe_acls.DescribeAclsRequest(any_, None, any_, None, None, all_, any_)


KCAT = [
    call("kcat", "start", api_versions.API, 3, software("librdkafka", "2.0.2")),
    call("kcat", "-L", metadata.API, 4, all_topics()),
    call("kcat", "-P", metadata.API, 4, one_topic()),
    call("kcat", "-P", produce.API, 7, produce_request("orders", batch_of("x"))),
    call("kcat", "-C", list_offsets.API, 2, offsets_at(EARLIEST)),
    call("kcat", "-C", fetch.API, 11, fetch_from_start()),
    call("kcat", "-Q", list_offsets.API, 2, offsets_at(BEGINNING_OF_TIME)),
    call("kcat", "-G", find_coordinator.API, 2, coordinator_of_readers()),
    call(
        "kcat",
        "-G",
        offset_fetch.API,
        7,
        offset_fetch.OffsetFetchRequest("readers", (offset_fetch.OffsetFetchRequestTopic("orders", (0, 1)),)),
    ),
]

AKHQ = [
    call("AKHQ", "start", api_versions.API, 3, software("apache-kafka-java", "3.6.2")),
    call("AKHQ", "nodes", metadata.API, 12, metadata.MetadataRequest(())),
    call("AKHQ", "nodes", describe_cluster.API, 0, describe_cluster.DescribeClusterRequest(False)),
    call("AKHQ", "nodes", describe_log_dirs.API, 4, describe_log_dirs.DescribeLogDirsRequest(None)),
    call("AKHQ", "node", describe_configs.API, 4, settings_of(BROKER, "0", include_synonyms=True)),
    call("AKHQ", "topics", metadata.API, 12, all_topics()),
    call("AKHQ", "topics", metadata.API, 12, one_topic(include_topic_authorized_operations=False)),
    call("AKHQ", "topics", list_offsets.API, 8, offsets_at(BEGINNING_OF_TIME)),
    call("AKHQ", "topics", list_offsets.API, 8, offsets_at(LATEST)),
    call("AKHQ", "topics", describe_configs.API, 4, settings_of(TOPIC, "orders")),
    call("AKHQ", "topic", fetch.API, 15, fetch_from_start()),
    call("AKHQ", "groups", list_groups.API, 4, list_groups.ListGroupsRequest()),
    call("AKHQ", "groups", find_coordinator.API, 4, coordinator_of_readers()),
    call("AKHQ", "groups", describe_groups.API, 5, describe_groups.DescribeGroupsRequest(("readers",))),
    call("AKHQ", "groups", offset_fetch.API, 8, offsets_of_readers()),
    call("AKHQ", "groups", offset_commit.API, 8, new_offsets_of_readers()),
    call("AKHQ", "groups", offset_delete.API, 0, forgotten_offsets_of_readers()),
    call("AKHQ", "groups", delete_groups.API, 2, delete_groups.DeleteGroupsRequest(("readers",))),
    call("AKHQ", "ACLs", describe_acls.API, 3, all_acls(), ErrorCode.SECURITY_DISABLED),
    call(
        "AKHQ",
        "topic settings",
        alter_configs.API,
        2,
        alter_configs.AlterConfigsRequest(
            (
                alter_configs.AlterConfigsResource(
                    TOPIC, "orders", (alter_configs.AlterableConfig("retention.ms", "9000"),)
                ),
            ),
            False,
        ),
    ),
    call(
        "AKHQ",
        "empty a topic",
        delete_records.API,
        2,
        delete_records.DeleteRecordsRequest(
            (delete_records.DeleteRecordsTopic("orders", (delete_records.DeleteRecordsPartition(0, 1),)),),
            30_000,
        ),
    ),
    call(
        "AKHQ",
        "new topic",
        create_topics.API,
        7,
        create_topics.CreateTopicsRequest((create_topics.CreatableTopic("new", 3, 1),)),
    ),
    call(
        "AKHQ",
        "delete topic",
        delete_topics.API,
        6,
        delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState("orders"),)),
    ),
]

KAFBAT = [
    call("Kafbat", "start", api_versions.API, 4, software("apache-kafka-java", "7.9.5-ccs")),
    call("Kafbat", "start", describe_cluster.API, 1, describe_cluster.DescribeClusterRequest(False)),
    call("Kafbat", "start", describe_configs.API, 4, settings_of(BROKER, "0")),
    call("Kafbat", "start", describe_acls.API, 3, all_acls(), ErrorCode.SECURITY_DISABLED),
    call("Kafbat", "dashboard", describe_cluster.API, 1, describe_cluster.DescribeClusterRequest(True)),
    call("Kafbat", "brokers", describe_log_dirs.API, 4, describe_log_dirs.DescribeLogDirsRequest(None)),
    call("Kafbat", "topics", metadata.API, 12, all_topics()),
    call(
        "Kafbat",
        "topics",
        describe_topic_partitions.API,
        0,
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            (describe_topic_partitions.TopicRequest("orders"),)
        ),
    ),
    call(
        "Kafbat",
        "topics",
        describe_configs.API,
        4,
        settings_of(TOPIC, "orders", include_synonyms=True, include_documentation=True),
    ),
    call("Kafbat", "topics", list_offsets.API, 9, offsets_at(LATEST)),
    call("Kafbat", "topics", list_offsets.API, 9, offsets_at(EARLIEST)),
    call("Kafbat", "messages", fetch.API, 17, fetch_from_start(session_epoch=0)),
    call(
        "Kafbat",
        "topic statistics",
        describe_producers.API,
        0,
        describe_producers.DescribeProducersRequest((describe_producers.TopicRequest("orders", (0, 1)),)),
    ),
    call("Kafbat", "groups", list_groups.API, 5, list_groups.ListGroupsRequest()),
    call("Kafbat", "groups", find_coordinator.API, 6, coordinator_of_readers()),
    call("Kafbat", "groups", describe_groups.API, 5, describe_groups.DescribeGroupsRequest(("readers",))),
    call("Kafbat", "groups", offset_fetch.API, 9, offsets_of_readers()),
    call("Kafbat", "groups", offset_commit.API, 9, new_offsets_of_readers()),
    call(
        "Kafbat",
        "quotas",
        describe_client_quotas.API,
        1,
        describe_client_quotas.DescribeClientQuotasRequest((), False),
    ),
    call(
        "Kafbat",
        "quotas",
        alter_client_quotas.API,
        1,
        new_quota(),
    ),
    call(
        "Kafbat",
        "topic settings",
        incremental_alter_configs.API,
        1,
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            (
                incremental_alter_configs.AlterConfigsResource(
                    TOPIC,
                    "orders",
                    (
                        incremental_alter_configs.AlterableConfig("retention.ms", SET, "9000"),
                        incremental_alter_configs.AlterableConfig("segment.ms", DELETE, None),
                    ),
                ),
            ),
            False,
        ),
    ),
    call(
        "Kafbat",
        "more partitions",
        create_partitions.API,
        3,
        create_partitions.CreatePartitionsRequest(
            (create_partitions.CreatePartitionsTopic("orders", 4, None),), 30_000, False
        ),
    ),
    call(
        "Kafbat",
        "replicas",
        alter_partition_reassignments.API,
        0,
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=(
                alter_partition_reassignments.ReassignableTopic(
                    "orders", (alter_partition_reassignments.ReassignablePartition(0, (0,)),)
                ),
            )
        ),
    ),
]


@pytest.mark.parametrize(("api", "version", "body", "expected"), [*KCAT, *AKHQ, *KAFBAT])
def test_the_calls_of_tools_succeed(
    api: Api[Any, Any], version: int, body: Message | Body, expected: set[ErrorCode]
) -> None:
    async def story(door: Door) -> Message:
        topic_id = await door.create("orders", 2, segment_ms="90000")
        await door.produce("orders", batch_of("a", "b", producer=(1, 0, 0)))
        for prepared, prepared_version, request in (
            (find_coordinator.API, 6, coordinator_of_readers()),
            (offset_commit.API, 9, new_offsets_of_readers()),
            (alter_client_quotas.API, 1, new_quota()),
        ):
            any_api: Api[Any, Any] = prepared
            await door.call(any_api, prepared_version, request)
        response: Message = await door.call(
            api, version, body if isinstance(body, Message) else body(topic_id)
        )
        return response

    answer = at_the_door(story)
    assert {ErrorCode(code) for code in codes_in(answer)} <= expected
    is_flat = api is describe_acls.API or (api is find_coordinator.API and version < 4)
    assert is_flat or len(list(parts_of(answer))) > 1, "an answer about nothing proves nothing"


def codes_in(message: Struct) -> Iterator[int]:
    for part in parts_of(message):
        if "error_code" in part.__struct_fields__:
            yield part.error_code  # type: ignore[attr-defined]  # just looked


def parts_of(message: Struct) -> Iterator[Struct]:
    """The message and every structure within it."""
    yield message
    for name in message.__struct_fields__:
        value = getattr(message, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Struct):
                yield from parts_of(part)
