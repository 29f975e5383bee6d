"""Topics, settings, offsets and the cluster, as administrators and their tools ask for them."""

import pytest

from ropewalk.client.errors import ConnectionLost
from ropewalk.kafka.apis import SERVED_APIS, advertised
from ropewalk.kafka.errors import CODES
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.api import NEVER_FLEXIBLE, Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from tests.kafka.door import Door, at_the_door, batch_of, produce_request

TOPIC, BROKER = 2, 4


def creatable(
    name: str, partitions: int = 1, replicas: int = 1, configs: dict[str, str | None] | None = None
) -> create_topics.CreatableTopic:
    entries = tuple(create_topics.CreatableTopicConfig(*entry) for entry in (configs or {}).items())
    return create_topics.CreatableTopic(name, partitions, replicas, (), entries)


@pytest.mark.parametrize("version", create_topics.API.versions)
def test_a_topic_created_in_any_version_is_listed(version: int) -> None:
    async def story(door: Door) -> int:
        request = create_topics.CreateTopicsRequest((creatable("t", 3),))
        (result,) = (await door.call(create_topics.API, version, request)).topics
        assert result.error_code == ErrorCode.NONE
        return len((await door.topics())["t"].partitions)

    assert at_the_door(story) == 3


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        pytest.param(creatable("a" * 249), ErrorCode.NONE, id="the longest name"),
        pytest.param(creatable("a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a longer name"),
        pytest.param(creatable("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a slash"),
        pytest.param(creatable(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, id="two dots"),
        pytest.param(creatable(""), ErrorCode.INVALID_TOPIC_EXCEPTION, id="no name"),
        pytest.param(creatable("there"), ErrorCode.TOPIC_ALREADY_EXISTS, id="exists"),
        pytest.param(creatable("with.dots"), ErrorCode.INVALID_TOPIC_EXCEPTION, id="collides"),
        pytest.param(creatable("t", -1, -1), ErrorCode.NONE, id="defaults"),
        pytest.param(creatable("t", 0), ErrorCode.INVALID_PARTITIONS, id="no partitions"),
        pytest.param(
            creatable("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR, id="more replicas than brokers"
        ),
        pytest.param(
            creatable("t", configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG, id="unknown setting"
        ),
        pytest.param(
            creatable("t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG, id="bad value"
        ),
        pytest.param(creatable("t", configs={"retention.ms": "1000"}), ErrorCode.NONE, id="with a setting"),
        pytest.param(creatable("t", configs={"ropewalk.owner": "team"}), ErrorCode.NONE, id="with an owner"),
        pytest.param(
            creatable("t", configs={"ropewalk.owner": ""}),
            ErrorCode.INVALID_REQUEST,
            id="with a nameless owner",
        ),
        pytest.param(
            creatable("t", configs={"ropewalk.observers": "0"}), ErrorCode.NONE, id="with no observers"
        ),
        pytest.param(
            creatable("t", configs={"ropewalk.observers": "1"}),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            id="with more observers than brokers",
        ),
        pytest.param(
            creatable("t", configs={"ropewalk.observers": "few"}),
            ErrorCode.INVALID_REQUEST,
            id="with some observers",
        ),
    ],
)
def test_create_topics_answers(topic: create_topics.CreatableTopic, expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        await door.create("there")
        await door.create("with_dots")
        validated = create_topics.CreateTopicsRequest((topic,), validate_only=True)
        created = create_topics.CreateTopicsRequest((topic,))
        (first,) = (await door.call(create_topics.API, 7, validated)).topics
        assert topic.name not in await door.topics() or topic.name == "there"
        (second,) = (await door.call(create_topics.API, 7, created)).topics
        assert first.error_code == second.error_code, "validating says what creating does"
        return second.error_code

    assert at_the_door(story) == expected


def test_a_name_given_twice_is_refused_once() -> None:
    async def story(door: Door) -> list[tuple[str, int]]:
        request = create_topics.CreateTopicsRequest((creatable("t"), creatable("t"), creatable("u")))
        created = (await door.call(create_topics.API, 7, request)).topics
        more = tuple(
            create_partitions.CreatePartitionsTopic(name, count, None)
            for name, count in (("u", 2), ("u", 3), ("t", 2))
        )
        grown = (
            await door.call(
                create_partitions.API, 3, create_partitions.CreatePartitionsRequest(more, 1000, False)
            )
        ).results
        twice = (delete_topics.DeleteTopicState("u"), delete_topics.DeleteTopicState("u"))
        request_to_delete = delete_topics.DeleteTopicsRequest(topics=twice)
        deleted = (await door.call(delete_topics.API, 6, request_to_delete)).topics
        assert "u" in await door.topics()
        return [
            *((result.name, result.error_code) for result in created),
            *((result.name, result.error_code) for result in grown),
            *((result.name or "", result.error_code) for result in deleted),
        ]

    assert at_the_door(story) == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
        ("u", ErrorCode.INVALID_REQUEST),
        ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", ErrorCode.INVALID_REQUEST),
    ]


def test_validating_tells_what_the_topic_would_be() -> None:
    async def story(door: Door) -> tuple[bytes, int, int, str | None]:
        request = create_topics.CreateTopicsRequest(
            (creatable("t", 3, configs={"retention.ms": "7"}),), validate_only=True
        )
        (result,) = (await door.call(create_topics.API, 7, request)).topics
        configs = {config.name: config.value for config in result.configs or ()}
        return result.topic_id, result.num_partitions, result.replication_factor, configs["retention.ms"]

    assert at_the_door(story) == (bytes(16), 3, 1, "7")


@pytest.mark.parametrize("version", delete_topics.API.versions)
def test_a_deleted_topic_is_gone_and_its_name_is_free(version: int) -> None:
    async def story(door: Door) -> tuple[bool, int]:
        before = await door.create("t")
        await door.produce("t", batch_of("old"))
        request = delete_topics.DeleteTopicsRequest(
            topics=(delete_topics.DeleteTopicState("t"),), topic_names=("t",)
        )
        (result,) = (await door.call(delete_topics.API, version, request)).topics
        assert result.error_code == ErrorCode.NONE
        assert "t" not in await door.topics()
        after = await door.create("t")
        return before != after, (await door.fetch("t", 0)).high_watermark

    assert at_the_door(story) == (True, 0)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param((None, b"x" * 16), ErrorCode.UNKNOWN_TOPIC_ID, id="an id that nobody has"),
        pytest.param(("no", bytes(16)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a name that nobody has"),
        pytest.param((None, bytes(16)), ErrorCode.INVALID_REQUEST, id="neither"),
        pytest.param(("no", b"x" * 16), ErrorCode.INVALID_REQUEST, id="both"),
    ],
)
def test_deleting_what_is_not_there(asked: tuple[str | None, bytes], expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        request = delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicState(*asked),))
        return (await door.call(delete_topics.API, 6, request)).topics[0].error_code

    assert at_the_door(story) == expected


def test_deletion_can_be_switched_off() -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        request = delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicState("t"),))
        return (await door.call(delete_topics.API, 6, request)).topics[0].error_code

    assert at_the_door(story, "delete.topic.enable=false") == ErrorCode.TOPIC_DELETION_DISABLED


@pytest.mark.parametrize("version", metadata.API.versions)
def test_metadata_of_an_unknown_topic_makes_it(version: int) -> None:
    async def story(door: Door) -> tuple[int, int]:
        request = metadata.MetadataRequest((metadata.MetadataRequestTopic(name="new"),))
        (topic,) = (await door.call(metadata.API, version, request)).topics
        return topic.error_code, len(topic.partitions)

    assert at_the_door(story, "num.partitions=4") == (ErrorCode.NONE, 4)


@pytest.mark.parametrize(
    ("name", "settings", "allowed", "expected"),
    [
        pytest.param(
            "new", (), False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="the client does not want it"
        ),
        pytest.param(
            "new",
            ("auto.create.topics.enable=false",),
            True,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            id="the node does not want it",
        ),
        pytest.param("bad name", (), True, ErrorCode.INVALID_TOPIC_EXCEPTION, id="the name cannot be"),
        pytest.param(
            "__x", (), True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="internal topics are ours to make"
        ),
    ],
)
def test_metadata_does_not_make_every_topic(
    name: str, settings: tuple[str, ...], allowed: bool, expected: ErrorCode
) -> None:
    async def story(door: Door) -> int:
        request = metadata.MetadataRequest((metadata.MetadataRequestTopic(name=name),), allowed)
        return (await door.call(metadata.API, 9, request)).topics[0].error_code

    assert at_the_door(story, *settings) == expected


def test_metadata_by_topic_id() -> None:
    async def story(door: Door) -> tuple[str | None, int]:
        topic_id = await door.create("t")
        request = metadata.MetadataRequest(
            (metadata.MetadataRequestTopic(topic_id), metadata.MetadataRequestTopic(b"x" * 16))
        )
        known, unknown = (await door.call(metadata.API, 12, request)).topics
        return known.name, unknown.error_code

    assert at_the_door(story) == ("t", ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", create_partitions.API.versions)
def test_partitions_are_added(version: int) -> None:
    async def story(door: Door) -> tuple[list[int], int]:
        await door.create("t", 2)
        await door.create("u", 2)
        topics = tuple(
            create_partitions.CreatePartitionsTopic(name, count, None)
            for name, count in (("t", 5), ("u", 1), ("no", 3))
        )
        request = create_partitions.CreatePartitionsRequest(topics, 1000, False)
        results = (await door.call(create_partitions.API, version, request)).results
        assert (await door.produce("t", batch_of("x"), partition=4)).error_code == ErrorCode.NONE
        return [result.error_code for result in results], len((await door.topics())["t"].partitions)

    assert at_the_door(story) == (
        [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        5,
    )


@pytest.mark.parametrize(
    ("offset", "expected", "start"),
    [
        pytest.param(2, ErrorCode.NONE, 2, id="some"),
        pytest.param(-1, ErrorCode.NONE, 3, id="all"),
        pytest.param(4, ErrorCode.OFFSET_OUT_OF_RANGE, 0, id="more than there are"),
        pytest.param(-2, ErrorCode.OFFSET_OUT_OF_RANGE, 0, id="nonsense"),
    ],
)
def test_deleted_records_are_gone(offset: int, expected: ErrorCode, start: int) -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        await door.produce("t", batch_of("a", "b", "c"))
        asked = delete_records.DeleteRecordsTopic("t", (delete_records.DeleteRecordsPartition(0, offset),))
        request = delete_records.DeleteRecordsRequest((asked,), 1000)
        result = (await door.call(delete_records.API, 2, request)).topics[0].partitions[0]
        return result.error_code, (await door.fetch("t", 3)).log_start_offset

    assert at_the_door(story) == (expected, start)


def test_a_compacted_topic_keeps_its_records() -> None:
    async def story(door: Door) -> int:
        await door.create("t", cleanup_policy="compact")
        asked = delete_records.DeleteRecordsTopic("t", (delete_records.DeleteRecordsPartition(0, 0),))
        request = delete_records.DeleteRecordsRequest((asked,), 1000)
        return (await door.call(delete_records.API, 2, request)).topics[0].partitions[0].error_code

    assert at_the_door(story) == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("version", "timestamp", "expected"),
    [
        pytest.param(1, list_offsets.LATEST, (ErrorCode.NONE, 3), id="latest"),
        pytest.param(1, list_offsets.EARLIEST, (ErrorCode.NONE, 1), id="earliest"),
        pytest.param(1, EPOCH_MS + 10, (ErrorCode.NONE, 1), id="at a record's time"),
        pytest.param(1, EPOCH_MS + 11, (ErrorCode.NONE, 2), id="after it"),
        pytest.param(1, EPOCH_MS + 99, (ErrorCode.NONE, -1), id="after all of them"),
        pytest.param(7, list_offsets.MAX_TIMESTAMP, (ErrorCode.NONE, 2), id="largest timestamp"),
        pytest.param(6, list_offsets.MAX_TIMESTAMP, (ErrorCode.UNSUPPORTED_VERSION, -1), id="too old for it"),
        pytest.param(8, list_offsets.EARLIEST_LOCAL, (ErrorCode.NONE, 1), id="earliest local"),
        pytest.param(9, list_offsets.LATEST_TIERED, (ErrorCode.NONE, -1), id="nothing is tiered"),
        pytest.param(11, list_offsets.EARLIEST_PENDING_UPLOAD, (ErrorCode.NONE, -1), id="nothing is pending"),
        pytest.param(11, -7, (ErrorCode.UNSUPPORTED_VERSION, -1), id="a sentinel of the future"),
    ],
)
def test_list_offsets_answers(version: int, timestamp: int, expected: tuple[int, int]) -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        for delay_ms in (0, 10, 20):
            await door.produce("t", batch_of("x", timestamp=EPOCH_MS + delay_ms))
        asked = delete_records.DeleteRecordsTopic("t", (delete_records.DeleteRecordsPartition(0, 1),))
        await door.call(delete_records.API, 2, delete_records.DeleteRecordsRequest((asked,), 1000))
        partition = list_offsets.ListOffsetsPartition(0, timestamp=timestamp)
        request = list_offsets.ListOffsetsRequest(
            -1, topics=(list_offsets.ListOffsetsTopic("t", (partition,)),)
        )
        answer = (await door.call(list_offsets.API, version, request)).topics[0].partitions[0]
        return answer.error_code, answer.offset

    assert at_the_door(story) == expected


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [pytest.param(0, (0, 2), id="the current one"), pytest.param(-5, (-1, -1), id="before the first")],
)
def test_the_end_of_an_epoch(epoch: int, expected: tuple[int, int]) -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        await door.produce("t", batch_of("a", "b"))
        partition = offset_for_leader_epoch.OffsetForLeaderPartition(0, -1, epoch)
        topic = offset_for_leader_epoch.OffsetForLeaderTopic("t", (partition,))
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=(topic,))
        answer = (await door.call(offset_for_leader_epoch.API, 2, request)).topics[0].partitions[0]
        return answer.leader_epoch, answer.end_offset

    assert at_the_door(story) == expected


def test_the_end_of_the_last_epoch_may_be_above_what_is_committed() -> None:
    """A leader that has just been elected knows of less than its consumers have read."""

    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        door.machine.platters.stall(door.world.now_s + 5)
        written = door.send(produce.API, 9, produce_request("t", batch_of("a", "b"), -1, 0))
        partition = offset_for_leader_epoch.OffsetForLeaderPartition(0, -1, 0)
        topic = offset_for_leader_epoch.OffsetForLeaderTopic("t", (partition,))
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=(topic,))
        another = await door.another()
        (answer,) = (await another.call(offset_for_leader_epoch.API, 2, request)).topics[0].partitions
        assert not written.done()
        await written
        return answer.leader_epoch, answer.end_offset

    assert at_the_door(story) == (0, 2)


def test_describe_cluster_names_the_brokers() -> None:
    async def story(door: Door) -> tuple[str, list[tuple[int, str, int]], int]:
        brokers = await door.call(describe_cluster.API, 2, describe_cluster.DescribeClusterRequest(False))
        controllers = await door.call(
            describe_cluster.API, 2, describe_cluster.DescribeClusterRequest(False, endpoint_type=2)
        )
        return (
            brokers.cluster_id,
            [(broker.broker_id, broker.host, broker.port) for broker in brokers.brokers],
            controllers.error_code,
        )

    cluster_id, brokers, refusal = at_the_door(story)
    assert len(cluster_id) == 22
    assert (brokers, refusal) == ([(0, "node", 9092)], ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)


def test_settings_are_described_with_value_source_and_type() -> None:
    async def story(door: Door) -> dict[str, describe_configs.DescribeConfigsResourceResult]:
        await door.create("t", retention_ms="5000")
        resources = (
            describe_configs.DescribeConfigsResource(TOPIC, "t", None),
            describe_configs.DescribeConfigsResource(BROKER, "0", ("num.partitions", "no.such")),
        )
        request = describe_configs.DescribeConfigsRequest(resources, True, True)
        topic, broker = (await door.call(describe_configs.API, 4, request)).results
        assert [entry.name for entry in broker.configs] == ["num.partitions"]
        return {entry.name: entry for entry in (*topic.configs, *broker.configs)}

    entries = at_the_door(story, "num.partitions=7")
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("5000", 1)
    assert (entries["num.partitions"].value, entries["num.partitions"].config_source) == ("7", 4)
    assert (entries["cleanup.policy"].value, entries["cleanup.policy"].config_source) == ("delete", 5)
    assert all(entry.documentation and entry.config_type for entry in entries.values())


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        pytest.param(TOPIC, "no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param(TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, id="a topic without a name"),
        pytest.param(BROKER, "5", ErrorCode.INVALID_REQUEST, id="another broker"),
        pytest.param(BROKER, "x", ErrorCode.INVALID_REQUEST, id="not a broker"),
        pytest.param(8, "0", ErrorCode.INVALID_REQUEST, id="a logger"),
        pytest.param(16, "m", ErrorCode.INVALID_REQUEST, id="client metrics"),
        pytest.param(32, "", ErrorCode.INVALID_REQUEST, id="a group without a name"),
        pytest.param(77, "x", ErrorCode.INVALID_REQUEST, id="no such kind"),
    ],
)
def test_settings_of_what_is_not_there(kind: int, name: str, expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        resource = describe_configs.DescribeConfigsResource(kind, name, None)
        request = describe_configs.DescribeConfigsRequest((resource,))
        return (await door.call(describe_configs.API, 4, request)).results[0].error_code

    assert at_the_door(story) == expected


def test_a_transactional_id_is_refused() -> None:
    async def story(door: Door) -> int:
        request = init_producer_id.InitProducerIdRequest("tx", 1000)
        return (await door.call(init_producer_id.API, 5, request)).error_code

    assert at_the_door(story) != ErrorCode.NONE


@pytest.mark.parametrize("version", api_versions.API.versions)
def test_api_versions_lists_just_what_is_served(version: int) -> None:
    async def story(door: Door) -> dict[int, tuple[int, int]]:
        request = api_versions.ApiVersionsRequest("client", "1.0")
        response = await door.call(api_versions.API, version, request)
        assert response.error_code == ErrorCode.NONE
        return {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}

    listed = at_the_door(story)
    assert listed == {entry.api_key: (entry.min_version, entry.max_version) for entry in advertised()}
    assert set(listed) == {api.key for api in SERVED_APIS}


@pytest.mark.parametrize(("name", "software_version"), [("", "1"), ("a b", "1"), ("ok", "-1")])
def test_a_client_name_that_would_spoil_the_log_is_refused(name: str, software_version: str) -> None:
    async def story(door: Door) -> int:
        request = api_versions.ApiVersionsRequest(name, software_version)
        return (await door.call(api_versions.API, 3, request)).error_code

    assert at_the_door(story) == ErrorCode.INVALID_REQUEST


def test_an_api_that_is_not_served_ends_the_connection() -> None:
    known = api_versions.API
    api = Api(
        key=4711,
        name="Unheard",
        versions=range(1),
        flexible_since=NEVER_FLEXIBLE,
        request=known.request,
        response=known.response,
    )

    async def story(door: Door) -> str:
        try:
            await door.call(api, 0, api_versions.ApiVersionsRequest())
        except ConnectionLost:
            return "closed"
        return "answered"

    assert at_the_door(story) == "closed"


def test_every_operating_error_that_can_reach_the_door_has_a_code() -> None:
    from ropewalk.base import errors
    from ropewalk.groups import errors as group_errors
    from ropewalk.transactions import errors as transaction_errors

    never_reach_it = {
        errors.RopewalkError,
        group_errors.GroupError,
        transaction_errors.TransactionError,
        errors.ProtocolError,
        errors.DirectoryInUse,
        errors.DirectoryRefused,
    }
    known = {
        error
        for module in (errors, group_errors, transaction_errors)
        for error in vars(module).values()
        if isinstance(error, type) and issubclass(error, errors.RopewalkError)
    }
    assert known - never_reach_it == set(CODES)


SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@pytest.mark.parametrize(
    ("kind", "name", "change", "expected"),
    [
        pytest.param(TOPIC, "t", ("retention.ms", SET, "9"), (ErrorCode.NONE, "9"), id="set"),
        pytest.param(TOPIC, "t", ("retention.ms", DELETE, None), (ErrorCode.NONE, "604800000"), id="delete"),
        pytest.param(
            TOPIC, "t", ("cleanup.policy", APPEND, "compact"), (ErrorCode.NONE, "delete,compact"), id="append"
        ),
        pytest.param(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"), (ErrorCode.NONE, ""), id="subtract"),
        pytest.param(
            TOPIC,
            "t",
            ("cleanup.policy", SUBTRACT, "x"),
            (ErrorCode.NONE, "delete"),
            id="subtract what is not there",
        ),
        pytest.param(
            TOPIC,
            "t",
            ("cleanup.policy", APPEND, "x"),
            (ErrorCode.INVALID_CONFIG, "delete"),
            id="append nonsense",
        ),
        pytest.param(
            TOPIC, "t", ("retention.ms", APPEND, "1"), (ErrorCode.INVALID_CONFIG, "5000"), id="no list"
        ),
        pytest.param(
            TOPIC, "t", ("retention.ms", SET, None), (ErrorCode.INVALID_REQUEST, "5000"), id="no value"
        ),
        pytest.param(TOPIC, "t", ("no.such", SET, "1"), (ErrorCode.INVALID_CONFIG, None), id="no setting"),
        pytest.param(TOPIC, "t", ("no.such", DELETE, None), (ErrorCode.NONE, None), id="delete no setting"),
        pytest.param(
            BROKER,
            "0",
            ("process.roles", SET, "x"),
            (ErrorCode.INVALID_REQUEST, "broker,controller"),
            id="read at start",
        ),
        pytest.param(BROKER, "", ("num.partitions", SET, "9"), (ErrorCode.NONE, "9"), id="all brokers"),
        pytest.param(16, "m", ("interval.ms", SET, "9"), (ErrorCode.INVALID_REQUEST, None), id="metrics"),
        pytest.param(
            TOPIC, "t", ("retention.ms", SET, "x"), (ErrorCode.INVALID_CONFIG, "5000"), id="bad value"
        ),
        pytest.param(
            TOPIC, "t", ("retention.ms", 9, "1"), (ErrorCode.INVALID_REQUEST, "5000"), id="bad operation"
        ),
        pytest.param(
            TOPIC, "t", ("storage", SET, "memory"), (ErrorCode.INVALID_CONFIG, "disk"), id="read-only"
        ),
        pytest.param(
            TOPIC,
            "no",
            ("retention.ms", SET, "9"),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
            id="no topic",
        ),
        pytest.param(BROKER, "0", ("num.partitions", SET, "9"), (ErrorCode.NONE, "9"), id="a broker"),
        pytest.param(
            BROKER, "x", ("num.partitions", SET, "9"), (ErrorCode.INVALID_REQUEST, None), id="no such broker"
        ),
    ],
)
def test_settings_are_altered(
    kind: int, name: str, change: tuple[str, int, str | None], expected: tuple[int, str | None]
) -> None:
    async def story(door: Door) -> tuple[int, str | None]:
        await door.create("t", retention_ms="5000")
        config = incremental_alter_configs.AlterableConfig(*change)
        resource = incremental_alter_configs.AlterConfigsResource(kind, name, (config,))
        request = incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), False)
        (altered,) = (await door.call(incremental_alter_configs.API, 1, request)).responses
        asked = describe_configs.DescribeConfigsResource(kind, name, (change[0],))
        described = await door.call(
            describe_configs.API, 4, describe_configs.DescribeConfigsRequest((asked,))
        )
        configs = described.results[0].configs
        return altered.error_code, configs[0].value if configs else None

    assert at_the_door(story) == expected


def test_a_changed_setting_applies_to_the_next_batch() -> None:
    async def story(door: Door) -> list[int]:
        await door.create("t")
        codes = [(await door.produce("t", batch_of("x" * 500))).error_code]
        config = incremental_alter_configs.AlterableConfig("max.message.bytes", SET, "100")
        resource = incremental_alter_configs.AlterConfigsResource(TOPIC, "t", (config,))
        request = incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), False)
        await door.call(incremental_alter_configs.API, 1, request)
        codes.append((await door.produce("t", batch_of("x" * 500))).error_code)
        return codes

    assert at_the_door(story) == [ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE]
