"""What clients and tools made for Kafka take for granted: settings that go back as they came, words, features, odd APIs."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kio.schema.index import api_key_map

from ropewalk.client.calls.client import Client
from ropewalk.kafka.apis import SERVED_APIS
from ropewalk.wire.api import OWN_KEY_FIRST
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    describe_configs,
    describe_quorum,
    find_coordinator,
    incremental_alter_configs,
    list_config_resources,
)
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import ask
from tests.kafka.door import Door, at_the_door

TOPIC, BROKER, GROUP = 2, 4, 32
STATIC, DEFAULT = 4, 5
NOT_YET = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
APIS_PAGE = Path(__file__).parent.parent.parent / "docs/reference/apis.md"

Described = Mapping[str, describe_configs.DescribeConfigsResourceResult]


async def describe(door: Door, kind: int, name: str) -> Described:
    resource = describe_configs.DescribeConfigsResource(kind, name, None)
    request = describe_configs.DescribeConfigsRequest((resource,))
    (result,) = (await door.call(describe_configs.API, 4, request)).results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config for config in result.configs}


async def send_back(
    door: Door, kind: int, name: str, values: Mapping[str, str | None], *, at_once: bool
) -> Any:
    if at_once:
        whole = alter_configs.AlterConfigsResource(
            kind, name, tuple(alter_configs.AlterableConfig(*each) for each in values.items())
        )
        answer: Any = await door.call(
            alter_configs.API, 2, alter_configs.AlterConfigsRequest((whole,), False)
        )
    else:
        single = incremental_alter_configs.AlterConfigsResource(
            kind,
            name,
            tuple(
                incremental_alter_configs.AlterableConfig(each, 0, value) for each, value in values.items()
            ),
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest((single,), False)
        answer = await door.call(incremental_alter_configs.API, 1, request)
    return answer.responses[0]


@pytest.mark.parametrize("at_once", [True, False], ids=["AlterConfigs", "IncrementalAlterConfigs"])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        pytest.param(TOPIC, {}, id="a topic of defaults"),
        pytest.param(
            TOPIC,
            {"retention_ms": "1000", "storage": "memory", "partitions_auto_max": "4"},
            id="a topic of its own",
        ),
        pytest.param(TOPIC, {"cleanup_policy": "compact"}, id="a compacted topic"),
        pytest.param(BROKER, {}, id="a broker"),
    ],
)
@pytest.mark.parametrize("unset", [None, ""], ids=["null", "empty"])
def test_settings_can_be_sent_back_as_they_were_described(
    kind: int, settings: dict[str, str], at_once: bool, unset: str | None
) -> None:
    async def story(door: Door) -> None:
        await door.create("t", 1, **settings)
        name = "t" if kind == TOPIC else str(door.node.node_id)
        before = await describe(door, kind, name)
        values = {each: unset if config.value is None else config.value for each, config in before.items()}
        result = await send_back(door, kind, name, values, at_once=at_once)
        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        after = await describe(door, kind, name)
        assert {each: config.value for each, config in after.items()} == {
            each: config.value for each, config in before.items()
        }

    at_the_door(story, "broker.rack=here")


def test_a_broker_s_settings_go_back_through_a_node_that_does_not_decide() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            deadline_ms = client.session.deadline_ms()
            connection = await client.session.cluster.connection(nodes[2].node_id, deadline_ms=deadline_ms)
            resource = describe_configs.DescribeConfigsResource(BROKER, "2", None)
            described = await connection.call(
                describe_configs.API,
                describe_configs.DescribeConfigsRequest((resource,)),
                deadline_ms=deadline_ms,
            )
            configs = tuple(
                incremental_alter_configs.AlterableConfig(config.name, 0, config.value)
                for config in described.results[0].configs
            )
            changed = incremental_alter_configs.AlterConfigsResource(BROKER, "2", configs)
            answer = await connection.call(
                incremental_alter_configs.API,
                incremental_alter_configs.IncrementalAlterConfigsRequest((changed,), False),
                deadline_ms=deadline_ms,
            )
            assert answer.responses[0].error_message is None

    in_a_cluster(story)


def test_what_cannot_be_changed_is_refused_when_it_is_to_change() -> None:
    async def story(door: Door) -> Any:
        return await send_back(door, BROKER, "0", {"listeners": "PLAINTEXT://elsewhere:1"}, at_once=False)

    assert at_the_door(story).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        pytest.param("listeners", "PLAINTEXT://node:9092", STATIC, id="listeners"),
        pytest.param("advertised.listeners", "PLAINTEXT://node:9092", STATIC, id="advertised listeners"),
        pytest.param("node.id", "0", STATIC, id="the node's id"),
        pytest.param("broker.id", "0", STATIC, id="the broker's id"),
        pytest.param("log.dirs", "/data", STATIC, id="directories"),
        pytest.param("process.roles", "broker,controller", STATIC, id="roles"),
        pytest.param("broker.rack", "here", STATIC, id="configured"),
        pytest.param("message.max.bytes", "1048588", DEFAULT, id="a default"),
    ],
)
def test_the_source_of_a_broker_s_setting(name: str, value: str, source: int) -> None:
    async def story(door: Door) -> tuple[str | None, int]:
        config = (await describe(door, BROKER, "0"))[name]
        return config.value, config.config_source

    assert at_the_door(story, "broker.rack=here") == (value, source)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a group", (ErrorCode.NONE, ()), id="any group"),
        pytest.param("", (ErrorCode.INVALID_REQUEST, ()), id="no name"),
    ],
)
def test_a_group_has_no_settings_and_that_is_no_error(name: str, expected: object) -> None:
    async def story(door: Door) -> object:
        resource = describe_configs.DescribeConfigsResource(GROUP, name, None)
        request = describe_configs.DescribeConfigsRequest((resource,))
        (result,) = (await door.call(describe_configs.API, 4, request)).results
        return result.error_code, result.configs

    assert at_the_door(story) == expected


@pytest.mark.parametrize("at_once", [True, False], ids=["AlterConfigs", "IncrementalAlterConfigs"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, ErrorCode.NONE, id="nothing"),
        pytest.param({"consumer.session.timeout.ms": "1"}, ErrorCode.INVALID_CONFIG, id="something"),
    ],
)
def test_a_group_takes_no_settings_yet(values: dict[str, str], expected: ErrorCode, at_once: bool) -> None:
    async def story(door: Door) -> Any:
        return await send_back(door, GROUP, "g", values, at_once=at_once)

    assert at_the_door(story).error_code == expected


def _creatable(
    name: str, partitions: int = 1, replicas: int = 1, **settings: str
) -> create_topics.CreatableTopic:
    configs = tuple(
        create_topics.CreatableTopicConfig(key.replace("_", "."), value) for key, value in settings.items()
    )
    return create_topics.CreatableTopic(name, partitions, replicas, (), configs)


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        pytest.param(_creatable("there"), "Topic 'there' already exists.", id="exists"),
        pytest.param(
            _creatable("t.t"), "Topic 't.t' collides with existing topic: t_t", id="differs in a dot"
        ),
        pytest.param(_creatable(""), "Topic name is invalid: the empty string is not allowed", id="no name"),
        pytest.param(_creatable(".."), "Topic name is invalid: '..' is not allowed", id="dots"),
        pytest.param(
            _creatable("a/b"),
            "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
            id="a slash",
        ),
        pytest.param(_creatable("a" * 250), "is longer than the max allowed length 249", id="too long"),
        pytest.param(
            _creatable("t", 0),
            "Number of partitions was set to an invalid non-positive value",
            id="no partitions",
        ),
        pytest.param(
            _creatable("t", 1, 0),
            "Replication factor must be larger than 0, or -1 to use the default value",
            id="no replicas",
        ),
        pytest.param(
            _creatable("t", 1, 3),
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
            "because only 1 broker(s) are registered.",
            id="too few brokers",
        ),
        pytest.param(
            _creatable("t", no_such="1"), "Unknown topic config name: no.such", id="no such setting"
        ),
        pytest.param(
            _creatable("t", retention_ms="soon"),
            "Invalid value soon for configuration retention.ms",
            id="no number",
        ),
    ],
)
def test_scripts_find_kafka_s_words(topic: create_topics.CreatableTopic, text: str) -> None:
    async def story(door: Door) -> str | None:
        await door.create("there")
        await door.create("t_t")
        (result,) = (
            await door.call(create_topics.API, 7, create_topics.CreateTopicsRequest((topic,)))
        ).topics
        return result.error_message

    assert text in (at_the_door(story) or "")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        pytest.param(3, "Topic already has 3 partition(s).", id="as many"),
        pytest.param(2, "The topic t currently has 3 partition(s); 2 would not be an increase.", id="fewer"),
    ],
)
def test_scripts_find_kafka_s_words_of_topics_that_do_not_grow(count: int, text: str) -> None:
    async def story(door: Door) -> str | None:
        await door.create("t", 3)
        asked = create_partitions.CreatePartitionsTopic("t", count, None)
        request = create_partitions.CreatePartitionsRequest((asked,), 1000, False)
        return (await door.call(create_partitions.API, 3, request)).results[0].error_message

    assert at_the_door(story) == text


@pytest.mark.parametrize(
    ("version", "types", "expected"),
    [
        pytest.param(1, (), {(TOPIC, "t"), (BROKER, "0")}, id="all"),
        pytest.param(1, (TOPIC,), {(TOPIC, "t")}, id="topics"),
        pytest.param(1, (BROKER,), {(BROKER, "0")}, id="brokers"),
        pytest.param(1, (16, GROUP), set[tuple[int, str]](), id="client metrics and groups: none"),
        pytest.param(0, (), set[tuple[int, str]](), id="v0: client metrics"),
        pytest.param(1, (64,), None, id="a type that nobody knows"),
    ],
)
def test_resources_with_settings_are_listed(
    version: int, types: tuple[int, ...], expected: set[tuple[int, str]] | None
) -> None:
    async def story(door: Door) -> list_config_resources.ListConfigResourcesResponse:
        await door.create("t")
        request = list_config_resources.ListConfigResourcesRequest(types)
        return await door.call(list_config_resources.API, version, request)

    answer = at_the_door(story)
    if expected is None:
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        found = {(each.resource_type, each.resource_name) for each in answer.config_resources}
        assert (answer.error_code, found) == (ErrorCode.NONE, expected)


@pytest.mark.parametrize(
    ("path", "topic", "expected"),
    [
        pytest.param("/data", "t", ErrorCode.NONE, id="where it is"),
        pytest.param("/elsewhere", "t", ErrorCode.LOG_DIR_NOT_FOUND, id="no directory of this node"),
        pytest.param("/data", "u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param("/data", "quick", ErrorCode.KAFKA_STORAGE_ERROR, id="a topic in memory"),
    ],
)
def test_replicas_stay_in_the_one_directory(path: str, topic: str, expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        await door.create("quick", storage="memory")
        moved = alter_replica_log_dirs.AlterReplicaLogDirTopic(topic, (0,))
        directory = alter_replica_log_dirs.AlterReplicaLogDir(path, (moved,))
        request = alter_replica_log_dirs.AlterReplicaLogDirsRequest((directory,))
        return (await door.call(alter_replica_log_dirs.API, 2, request)).results[0].partitions[0].error_code

    assert at_the_door(story) == expected


def _quorum(topic: str = "__cluster_metadata", index: int = 0) -> describe_quorum.DescribeQuorumRequest:
    partition = describe_quorum.QuorumPartition(index)
    return describe_quorum.DescribeQuorumRequest((describe_quorum.QuorumTopic(topic, (partition,)),))


async def _ask_quorum(client: Client) -> describe_quorum.DescribeQuorumResponse:
    return await ask(client, describe_quorum.API, _quorum())


def test_the_quorum_is_the_controllers_and_everybody_s_lag_is_told() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await nodes.until(lambda: len(nodes[0]._parts.registry.followings.heard) == 3)
            answer = await _ask_quorum(client)
            (partition,) = answer.topics[0].partitions
            assert (partition.leader_id, partition.leader_epoch) == (0, nodes[0].image.controller_epoch)
            assert [voter.replica_id for voter in partition.current_voters] == [0]
            assert sorted(observer.replica_id for observer in partition.observers) == [1, 2]
            assert partition.high_watermark == nodes[0].image.end_offset
            for replica in (*partition.current_voters, *partition.observers):
                assert 0 < replica.log_end_offset <= partition.high_watermark
                assert replica.last_fetch_timestamp > 0
            assert [node.node_id for node in answer.nodes] == [0]

    in_a_cluster(story)


@pytest.mark.parametrize(
    ("topic", "index"),
    [
        pytest.param("orders", 0, id="another topic"),
        pytest.param("__cluster_metadata", 1, id="another partition"),
    ],
)
def test_of_anything_else_there_is_no_quorum(topic: str, index: int) -> None:
    async def story(door: Door) -> int:
        answer = await door.call(describe_quorum.API, 2, _quorum(topic, index))
        return answer.topics[0].partitions[0].error_code

    assert at_the_door(story) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_version_of_the_metadata_is_among_the_features() -> None:
    async def story(door: Door) -> api_versions.ApiVersionsResponse:
        return await door.call(api_versions.API, 4, api_versions.ApiVersionsRequest("test", "1"))

    answer = at_the_door(story)
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    supported = {
        feature.name: (feature.min_version, feature.max_version) for feature in answer.supported_features
    }
    assert set(finalized) == {"metadata.version", "transaction.version", "group.version", "ropewalk.level"}
    assert all(least <= finalized[name] <= most for name, (least, most) in supported.items())


def test_patterns_of_groups_match_internal_topics_too() -> None:
    async def story(door: Door) -> None:
        await door.create("orders")
        coordinator = find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",))
        await door.call(find_coordinator.API, 6, coordinator)
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_regex="__consumer.*|orders",
            topic_partitions=(),
        )
        answer = await door.call(consumer_group_heartbeat.API, 1, request)
        while answer.error_code in NOT_YET:
            await asyncio.sleep(0.1)
            answer = await door.call(consumer_group_heartbeat.API, 1, request)
        assert answer.assignment is not None, answer.error_message
        topics = door.node.image.topics
        assert {bytes(each.topic_id) for each in answer.assignment.topic_partitions} == {
            topics[name].topic_id for name in ("orders", "__consumer_offsets")
        }

    at_the_door(story)


def test_the_page_says_of_every_api_of_kafka_whether_it_is_served_and_if_not_why() -> None:
    """kio knows Kafka 4.3; what came with 4.4 is named here."""
    kafka = {key: name.replace("_", "") for key, name in api_key_map.items()}
    kafka |= {93: "streamsgrouptopologydescriptionupdate", 94: "unregistercontroller"}
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (.+) \|$", APIS_PAGE.read_text(), re.MULTILINE)
    served, refused = APIS_PAGE.read_text().split("## What Kafka serves and Ropewalk does not")
    documented = {int(key): name.lower() for key, name, _ in rows if int(key) < OWN_KEY_FIRST}
    assert documented == kafka
    told = {int(key) for key in re.findall(r"^\| (\d+) \|", refused, re.MULTILINE)}
    assert told == set(kafka) - {api.key for api in SERVED_APIS}
    assert {int(key) for key in re.findall(r"^\| (\d+) \|", served, re.MULTILINE)} == {
        api.key for api in SERVED_APIS
    }
