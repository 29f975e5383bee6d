"""Topics made, grown, described, emptied and deleted by the admin clients, and what they are told when they ask for
something that cannot be."""

# confluent-kafka is annotated, but without re-exports for its admin classes and with some calls left out.
# mypy: disable-error-code="attr-defined, no-untyped-call"

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import aiokafka.admin
import kafka.admin
import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.clients import Confluent, Message, Refused, with_aiokafka_admin

pytestmark = pytest.mark.compat

MakeTopic = Callable[..., str]
PATIENCE_S = 10


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def _create(admin: AdminClient, topic: str, partitions: int = 1, replicas: int = 1, **options: bool) -> str:
    """Asks for the topic and answers with the name of the error, NO_ERROR if there is none."""
    futures = admin.create_topics(
        [NewTopic(topic, partitions, replicas)], request_timeout=PATIENCE_S, **options
    )
    return _outcome(futures[topic].result)


def _outcome(result: Callable[[float], object]) -> str:
    try:
        result(PATIENCE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return "NO_ERROR"


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "expected"),
    [
        pytest.param("", 1, 1, "NO_ERROR", id="one of each"),
        pytest.param("", 100, 1, "NO_ERROR", id="a hundred partitions"),
        pytest.param("", -1, -1, "NO_ERROR", id="as many as the node thinks best"),
        pytest.param("", 0, 1, "INVALID_PARTITIONS", id="no partition"),
        pytest.param("", 1, 3, "INVALID_REPLICATION_FACTOR", id="more replicas than nodes"),
        pytest.param("two words", 1, 1, "TOPIC_EXCEPTION", id="a blank in the name"),
        pytest.param("über", 1, 1, "TOPIC_EXCEPTION", id="a letter outside the alphabet"),
        pytest.param("..", 1, 1, "TOPIC_EXCEPTION", id="the parent directory"),
        pytest.param("a/b", 1, 1, "TOPIC_EXCEPTION", id="a path"),
        pytest.param("x" * 249, 1, 1, "NO_ERROR", id="the longest name"),
        pytest.param("x" * 250, 1, 1, "TOPIC_EXCEPTION", id="a name too long"),
    ],
)
def test_creating_a_topic_answers(
    admin: AdminClient, topic: str, name: str, partitions: int, replicas: int, expected: str
) -> None:
    assert _create(admin, name or topic, partitions, replicas) == expected
    if name and expected == "NO_ERROR":
        admin.delete_topics([name])[name].result(PATIENCE_S)


def test_a_topic_cannot_be_made_twice(admin: AdminClient, topic: str) -> None:
    assert _create(admin, topic) == "NO_ERROR"
    assert _create(admin, topic) == "TOPIC_ALREADY_EXISTS"


def test_a_trial_creation_checks_everything_and_makes_nothing(admin: AdminClient, topic: str) -> None:
    assert _create(admin, topic, replicas=9, validate_only=True) == "INVALID_REPLICATION_FACTOR"
    assert _create(admin, topic, validate_only=True) == "NO_ERROR"
    assert topic not in admin.list_topics(timeout=PATIENCE_S).topics


def test_a_setting_that_does_not_exist_is_refused(admin: AdminClient, topic: str) -> None:
    new_topic = NewTopic(topic, 1, 1, config={"retention.fortnights": "2"})
    assert _outcome(admin.create_topics([new_topic])[topic].result) == "INVALID_CONFIG"


def test_a_deleted_topic_is_gone_and_its_name_starts_afresh(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    client = Confluent(bootstrap)
    client.produce(topic, [Message(b"old"), Message(b"old")])
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    assert topic not in admin.list_topics(timeout=PATIENCE_S).topics
    assert _outcome(admin.delete_topics([topic])[topic].result) == "UNKNOWN_TOPIC_OR_PART"
    make_topic()
    client.produce(topic, [Message(b"fresh")])
    (received,) = client.consume(topic, offset=0, count=1)
    assert received.value == b"fresh"


def test_partitions_can_be_added_but_not_taken_away(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    grow = admin.create_partitions([NewPartitions(topic, 5)])[topic]
    assert _outcome(grow.result) == "NO_ERROR"
    assert len(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions) == 5
    shrink = admin.create_partitions([NewPartitions(topic, 3)])[topic]
    assert _outcome(shrink.result) == "INVALID_PARTITIONS"


def test_deleted_records_cannot_be_read_and_the_rest_can(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    client = Confluent(bootstrap)
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    partition = TopicPartition(topic, 0, 4)
    assert admin.delete_records([partition])[partition].result(PATIENCE_S).low_watermark == 4
    assert _offset(admin, topic, OffsetSpec.earliest()) == 4
    (received,) = client.consume(topic, offset=4, count=1)
    assert (received.offset, received.value) == (4, b"4")
    beyond = TopicPartition(topic, 0, 11)
    assert _outcome(admin.delete_records([beyond])[beyond].result) == "OFFSET_OUT_OF_RANGE"


def test_offsets_are_listed_at_both_ends_and_at_the_latest_time(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert _offset(admin, topic, OffsetSpec.earliest()) == 0
    assert _offset(admin, topic, OffsetSpec.latest()) == 0
    now_ms = int(time.time() * 1000)
    stamps = [now_ms - 3000, now_ms, now_ms - 2000]
    Confluent(bootstrap).produce(topic, [Message(b"", timestamp_ms=stamp) for stamp in stamps])
    assert _offset(admin, topic, OffsetSpec.latest()) == 3
    assert _offset(admin, topic, OffsetSpec.max_timestamp()) == 1
    assert _offset(admin, topic, OffsetSpec.for_timestamp(now_ms - 2500)) == 1


def _offset(admin: AdminClient, topic: str, at: OffsetSpec) -> int:
    partition = TopicPartition(topic, 0)
    return int(admin.list_offsets({partition: at})[partition].result(PATIENCE_S).offset)


def test_a_topic_is_described_with_its_own_settings_and_the_defaults(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(retention_ms="86400000")
    settings = _settings(admin, ResourceType.TOPIC, topic)
    assert (settings["retention.ms"].value, settings["retention.ms"].is_default) == ("86400000", False)
    assert (settings["cleanup.policy"].value, settings["cleanup.policy"].is_default) == ("delete", True)
    assert settings["max.message.bytes"].value == "1048588"
    assert {
        "segment.bytes",
        "min.insync.replicas",
        "compression.type",
        "message.timestamp.type",
    } <= settings.keys()


def test_a_node_is_described_with_its_settings(admin: AdminClient) -> None:
    (node_id,) = admin.list_topics(timeout=PATIENCE_S).brokers
    settings = _settings(admin, ResourceType.BROKER, str(node_id))
    assert {
        "num.partitions",
        "log.retention.ms",
        "message.max.bytes",
        "auto.create.topics.enable",
    } <= settings.keys()


def test_an_unknown_topic_has_no_settings(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert _outcome(admin.describe_configs([resource])[resource].result) == "UNKNOWN_TOPIC_OR_PART"


def _settings(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    settings: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    return settings


def test_the_cluster_is_described_by_its_one_node(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster().result(PATIENCE_S)
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == bootstrap
    assert cluster.controller.id == node.id
    assert cluster.cluster_id


def test_a_compacted_topic_refuses_a_message_without_a_key(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="compact")
    client = Confluent(bootstrap)
    client.produce(topic, [Message(b"value", b"key")])
    with pytest.raises(Refused, match="INVALID_RECORD"):
        client.produce(topic, [Message(b"value")])


def test_a_topic_may_use_the_time_of_the_append(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    client = Confluent(bootstrap)
    client.produce(topic, [Message(b"value", timestamp_ms=1)])
    (received,) = client.consume(topic, offset=0, count=1)
    assert before_ms <= received.timestamp_ms <= int(time.time() * 1000)


def test_aiokafka_administers_a_topic_from_beginning_to_end(bootstrap: str, topic: str) -> None:
    async def administer(admin: aiokafka.admin.AIOKafkaAdminClient) -> None:
        created = await admin.create_topics([aiokafka.admin.NewTopic(topic, 2, 1)])
        assert [error[1] for error in created.topic_errors] == [0]
        assert topic in await admin.list_topics()
        await admin.create_partitions({topic: aiokafka.admin.NewPartitions(4)})
        (described,) = await admin.describe_topics([topic])
        assert len(described["partitions"]) == 4
        resource = aiokafka.admin.config_resource.ConfigResource(
            aiokafka.admin.config_resource.ConfigResourceType.TOPIC, topic
        )
        (settings,) = await admin.describe_configs([resource])
        assert "retention.ms" in {entry[0] for entry in settings.resources[0][4]}
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()

    with_aiokafka_admin(bootstrap, administer)


def test_kafka_python_administers_a_topic_from_beginning_to_end(bootstrap: str, topic: str) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics({topic: {"num_partitions": 2, "configs": {"retention.ms": "1000"}}})
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics({topic: {}})
        assert topic in admin.list_topics()
        admin.create_partitions({topic: 4})
        (described,) = admin.describe_topics([topic])
        assert len(described["partitions"]) == 4
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
        settings = admin.describe_configs([resource])["topic"][topic]
        assert settings["retention.ms"]["value"] == "1000"
        assert admin.describe_cluster()["cluster_id"]
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
    finally:
        admin.close()


def test_a_client_under_a_quota_is_told_to_wait(bootstrap: str, make_topic: MakeTopic) -> None:
    """No clock is looked at: whoever sends a quota's worth again and again must be told in the end."""
    topic = make_topic()
    told: list[float] = []
    quota = (Path(sys.executable).with_name("ropewalk"), "-b", bootstrap, "quota")
    entity = ("--client-id", topic)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": topic,
            "throttle_cb": lambda event: told.append(event.throttle_time),
        }
    )
    subprocess.run([*quota, "set", *entity, "producer_byte_rate=100000"], check=True)
    try:
        for _ in range(30):
            producer.produce(topic, bytes(100_000))
            assert producer.flush(60) == 0
            producer.poll(0)
            if any(told):
                break
    finally:
        subprocess.run([*quota, "unset", *entity], check=True)
    assert any(told)
