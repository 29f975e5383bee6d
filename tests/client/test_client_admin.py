"""Admin calls against the fake cluster, refusals included."""

import pytest

from ropewalk.client.administration.admin import Admin, NewTopic, ResourceKind, SettingSource
from ropewalk.client.errors import ConnectionLost, RemoteError
from ropewalk.records.record import Record, build
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics, delete_topics
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import Stage, on_stage


def test_topics_are_created_each_with_its_own_outcome() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("old", 0)
        async with stage.client() as client:
            admin = Admin(client)
            outcomes = await admin.create_topics(
                [NewTopic("new", partition_count=3, settings=(("retention.ms", "1"),)), NewTopic("old")]
            )
        assert outcomes["new"] is None
        assert str(outcomes["old"]) == "old: topic old exists (TOPIC_ALREADY_EXISTS)"
        assert len(stage.cluster.topics["new"].partitions) == 3
        assert stage.cluster.topics["new"].configs == {"retention.ms": "1"}

    on_stage(story)


def test_a_creation_that_may_have_happened_is_not_repeated() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        broker.fail(create_topics.API, Fault(1, hang_up=True, handled_first=True))
        async with stage.client() as client:
            with pytest.raises(ConnectionLost):
                await Admin(client).create_topics([NewTopic("new")])
        assert broker.asked(create_topics.CreateTopicsRequest) == 1

    on_stage(story)


def test_a_moved_controller_is_asked_again() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        broker.fail(create_topics.API, Fault(2, ErrorCode.NOT_CONTROLLER))
        async with stage.client() as client:
            assert await Admin(client).create_topics([NewTopic("new")]) == {"new": None}

    on_stage(story)


@pytest.mark.parametrize("version_max", [delete_topics.API.version_max, 5])
def test_topics_are_deleted_by_name_in_every_version(version_max: int) -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(version_max={delete_topics.API.key: version_max})
        stage.cluster.add_topic("old", 0)
        async with stage.client() as client:
            outcomes = await Admin(client).delete_topics(["old", "missing"])
        assert outcomes["old"] is None
        missing = outcomes["missing"]
        assert missing is not None
        assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert stage.cluster.topics == {}

    on_stage(story)


def test_partitions_are_added_and_seen_at_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            assert len((await client.topic("orders")).partitions) == 1
            assert await Admin(client).create_partitions({"orders": 4}) == {"orders": None}
            assert len((await client.topic("orders")).partitions) == 4
            refusal = (await Admin(client).create_partitions({"orders": 2}))["orders"]
        assert refusal is not None
        assert refusal.code is ErrorCode.INVALID_PARTITIONS

    on_stage(story)


def test_settings_are_shown_with_their_source_and_altered_one_by_one() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, configs={"flush": "os"})
        async with stage.client() as client:
            admin = Admin(client)
            await admin.alter_settings(ResourceKind.TOPIC, "orders", {"retention.ms": "5", "flush": None})
            assert topic.configs == {"retention.ms": "5"}
            settings = await admin.describe_settings(ResourceKind.TOPIC, "orders", with_documentation=True)
            by_name = {setting.name: setting for setting in settings}
            await admin.alter_settings(ResourceKind.TOPIC, "orders", {"flush": "os"}, validate_only=True)
            assert topic.configs == {"retention.ms": "5"}
        assert by_name["retention.ms"].source is SettingSource.TOPIC
        assert by_name["max.message.bytes"].is_default
        assert by_name["retention.ms"].documentation == "What retention.ms is."

    on_stage(story)


def test_settings_of_what_is_not_there_are_refused() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        async with stage.client() as client:
            admin = Admin(client)
            with pytest.raises(RemoteError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await admin.describe_settings(ResourceKind.TOPIC, "missing")
            with pytest.raises(RemoteError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await admin.alter_settings(ResourceKind.TOPIC, "missing", {"flush": "os"})
            assert await admin.describe_settings(ResourceKind.BROKER, "0")
            with pytest.raises(RemoteError, match="broker 9 is not in the cluster"):
                await admin.describe_settings(ResourceKind.BROKER, "9")

    on_stage(story)


def test_records_are_deleted_at_each_leader() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 1)
        for partition in topic.partitions:
            partition.append(bytes(build([Record(value=b"1"), Record(value=b"2")])))
        async with stage.client() as client:
            assert await Admin(client).delete_records("orders", {0: 1, 1: -1}) == {0: 1, 1: 2}
            with pytest.raises(RemoteError, match=r"orders-1: .*OFFSET_OUT_OF_RANGE"):
                await Admin(client).delete_records("orders", {1: 9})

    on_stage(story)


def test_the_cluster_is_described() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            await stage.add_broker()
        async with stage.client() as client:
            described = await Admin(client).describe_cluster()
        assert described.cluster_id == "fake"
        assert described.controller == 0
        assert [(node, str(address)) for node, address, _ in described.brokers] == [
            (0, "b0:9092"),
            (1, "b1:9092"),
        ]

    on_stage(story)
