"""`__audit` of a whole node on simulated ports: what is copied, when, and what becomes of failures and gaps."""

import asyncio
from typing import Any

import msgspec
import pytest

from ropewalk.base.errors import StorageFailed
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.watching import audit_copies
from ropewalk.metadata import audit
from ropewalk.metadata.internal_topics import AUDIT_TOPIC
from ropewalk.metadata.records import KAFKA_LISTENER
from ropewalk.records.batch import iterate
from ropewalk.records.record import decode_records
from ropewalk.security.audit_chain import verify
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics, delete_records, delete_topics, incremental_alter_configs
from tests.http.client import Line
from tests.kafka.door import Door, at_the_door, batch_of

ON = "audit.topic=true"
MADE_S = 15
"""By then the topic has been made, and what there was is in it."""


async def events(door: Door, offset: int = 0) -> list[bytes]:
    data = await door.fetch(AUDIT_TOPIC, offset)
    assert data.error_code == 0
    found: list[bytes] = []
    for position, header in iterate(data.records or b""):
        batch = (data.records or b"")[position : position + header.size_bytes]
        found += [record.value or b"" for record in decode_records(batch)]
    return found


def numbers(values: list[bytes]) -> list[int]:
    return [msgspec.json.decode(value)["metadata"]["sequence"] for value in values]


def faults(values: list[bytes]) -> list[str]:
    return [fault.text for fault in verify(enumerate(values))]


async def make(door: Door, *names: str) -> None:
    for name in names:
        await door.create(name)


def test_changes_are_copied_with_who_asked_for_them() -> None:
    async def story(door: Door) -> list[bytes]:
        await door.create("orders", retention_ms="1000")
        await door.delete("orders")
        await asyncio.sleep(MADE_S)
        assert (await door.topics())[AUDIT_TOPIC].is_internal
        return await events(door)

    values = at_the_door(story, ON)
    assert (numbers(values), faults(values)) == ([1, 2], [])
    made: dict[str, Any] = msgspec.json.decode(values[0])
    assert (made["class_uid"], made["activity_name"], made["type_uid"]) == (6003, "Create", 600301)
    assert made["api"] == {"operation": "CreateTopics"}
    assert made["actor"] == {"user": {"name": "ANONYMOUS", "type": "User", "groups": []}}
    assert made["src_endpoint"]["interface_name"] == KAFKA_LISTENER
    assert made["unmapped"]["client_id"] == "test"
    assert [each["type"] for each in made["resources"]] == [
        "topic.created",
        "topic.setting",
        "topic.partitions",
    ]
    assert made["resources"][1]["data"] == {"before": None, "after": "1000"}
    assert msgspec.json.decode(values[1])["activity_name"] == "Delete"


def test_many_changes_are_not_kept_waiting_for_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are kept, before the topic would be made for a few."""
    monkeypatch.setattr(audit, "AUDIT_CHANGES_KEPT_MAX", 40)

    async def story(door: Door) -> list[bytes]:
        for number in range(80):
            await door.create(f"topic-{number}")
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        return await events(door)

    values = at_the_door(story, ON)
    assert (numbers(values), faults(values)) == (list(range(1, 81)), [])


def test_a_node_that_nobody_asks_for_anything_has_no_audit_topic() -> None:
    async def story(door: Door) -> bool:
        await asyncio.sleep(60)
        return AUDIT_TOPIC in await door.topics()

    assert not at_the_door(story, ON)


def test_a_node_goes_on_behind_what_its_log_holds() -> None:
    async def story(door: Door) -> list[bytes]:
        await make(door, "a", "b")
        await asyncio.sleep(MADE_S)
        for name in ("c", "d", "e"):
            await door.restart()
            await make(door, name)
            await asyncio.sleep(2)
        return await events(door)

    values = at_the_door(story, ON)
    assert (numbers(values), faults(values)) == ([1, 2, 3, 4, 5], [])


def test_changes_that_were_not_kept_are_told_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "AUDIT_CHANGES_KEPT_MAX", 3)

    async def story(door: Door) -> tuple[list[bytes], str]:
        await make(door, "a", "b", "c", "d", "e")
        await asyncio.sleep(MADE_S)
        await make(door, "f")
        await asyncio.sleep(2)
        page = await (await Line.open(door.world.network.host("probe"))).get("/metrics")
        return await events(door), page.text

    values, page = at_the_door(story, ON, http="node:9644")
    assert (numbers(values), faults(values)) == ([2, 3, 4, 5, 6], [])
    gap = msgspec.json.decode(values[0])
    assert gap["unmapped"] == {"missing_from": 1, "missing_to": 2}
    assert "changes 1 to 2 are missing" in gap["message"]
    assert "ropewalk_audit_missing_total 2" in page
    assert "ropewalk_audit_copied_total 4" in page
    assert "ropewalk_audit_waiting 0" in page


def test_a_copy_that_fails_is_tried_again_and_nothing_else_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once before it is in the log, and once when it is, and nobody knows."""
    true_append, fate = Partition.append, list[str]()

    def append(partition: Partition, *args: Any) -> Any:
        is_audit = partition.name.topic == AUDIT_TOPIC
        if is_audit and fate and fate[0] == "refused":
            fate.pop(0)
            raise StorageFailed("no room")
        ticket = true_append(partition, *args)
        if is_audit and fate and fate.pop(0) == "unknown":
            raise StorageFailed("nobody knows")
        return ticket

    monkeypatch.setattr(Partition, "append", append)

    async def story(door: Door) -> tuple[list[bytes], str]:
        await make(door, "a")
        await asyncio.sleep(MADE_S)
        fate.extend(["refused"] * 5)
        await make(door, "b", "c")
        assert (await door.produce("b", batch_of("x"))).error_code == 0
        await asyncio.sleep(3)
        assert numbers(await events(door)) == [1]
        page = await (await Line.open(door.world.network.host("probe"))).get("/metrics")
        assert "ropewalk_audit_waiting 2" in page.text
        fate.append("unknown")
        await make(door, "d")
        await asyncio.sleep(5)
        page = await (await Line.open(door.world.network.host("probe"))).get("/metrics")
        return await events(door), page.text

    values, page = at_the_door(story, ON, http="node:9644")
    assert (numbers(values), faults(values)) == ([1, 2, 3, 4], [])
    assert "ropewalk_audit_failures_total 6" in page
    assert "ropewalk_audit_waiting 0" in page


@pytest.mark.parametrize("foreign", [b"of somebody's topic", b""])
def test_a_topic_of_that_name_that_holds_something_else_harms_nobody(
    foreign: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there before the name meant anything. The topic is told about, and the node serves."""
    fate, true_append = ["unknown"], Partition.append

    def append(partition: Partition, *args: Any) -> Any:
        ticket = true_append(partition, *args)
        if partition.name.topic == AUDIT_TOPIC and fate:
            fate.clear()
            raise StorageFailed("whoever leads now has to read the log")
        return ticket

    monkeypatch.setattr(Partition, "append", append)
    monkeypatch.setattr(audit_copies, "change_event", lambda *_args, **_named: foreign)

    async def story(door: Door) -> str:
        await make(door, "a")
        await asyncio.sleep(MADE_S + 5)
        await make(door, "b")
        assert (await door.produce("b", batch_of("x"))).error_code == 0
        return (await (await Line.open(door.world.network.host("probe"))).get("/metrics")).text

    page = at_the_door(story, ON, http="node:9644")
    failures = next(line for line in page.splitlines() if line.startswith("ropewalk_audit_failures_total"))
    assert int(failures.split()[-1]) > 1


def test_the_audit_topic_is_laid_out_by_the_cluster_and_nobody_takes_from_it() -> None:
    async def story(door: Door) -> None:
        wanted = create_topics.CreatableTopic(
            AUDIT_TOPIC, 3, 1, (), (create_topics.CreatableTopicConfig("cleanup.policy", "compact"),)
        )
        (made,) = (await door.call(create_topics.API, 7, create_topics.CreateTopicsRequest((wanted,)))).topics
        assert (made.error_code, made.num_partitions) == (0, 1)
        topic = door.node.image.topics[AUDIT_TOPIC]
        assert topic.settings["cleanup.policy"] == "delete"
        assert (
            await door.produce(AUDIT_TOPIC, batch_of("x"))
        ).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        deletion = delete_topics.DeleteTopicsRequest((), (AUDIT_TOPIC,), 1000)
        (deleted,) = (await door.call(delete_topics.API, 5, deletion)).topics
        assert deleted.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        config = incremental_alter_configs.AlterableConfig("cleanup.policy", 0, "compact")
        resource = incremental_alter_configs.AlterConfigsResource(2, AUDIT_TOPIC, (config,))
        altering = incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), validate_only=False)
        (altered,) = (await door.call(incremental_alter_configs.API, 1, altering)).responses
        assert altered.error_code == ErrorCode.INVALID_CONFIG
        await asyncio.sleep(2)
        assert numbers(await events(door)) == [1]
        from_start = delete_records.DeleteRecordsTopic(
            AUDIT_TOPIC, (delete_records.DeleteRecordsPartition(0, 1),)
        )
        trimming = delete_records.DeleteRecordsRequest((from_start,), 1000)
        (trimmed,) = (await door.call(delete_records.API, 2, trimming)).topics[0].partitions
        assert trimmed.error_code == ErrorCode.POLICY_VIOLATION

    at_the_door(story, ON)
