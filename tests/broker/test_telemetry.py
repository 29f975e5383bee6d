"""`__telemetry` of a whole node on simulated ports: what is written, when, and what becomes of failures."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropewalk.base.metrics import METRICS
from ropewalk.broker.watching import telemetry_samples
from ropewalk.broker.watching.group_lag import TopicLag
from ropewalk.broker.watching.telemetry_samples import GroupSampled, NodeSample, PartitionSample
from ropewalk.metadata.internal_topics import TELEMETRY_TOPIC
from ropewalk.records.batch import decode_header
from ropewalk.records.record import decode_records
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import delete_topics
from tests.http.client import Line
from tests.kafka.door import Door, at_the_door, batch_of
from tests.kafka.test_group_apis import SETTINGS as GROUP_SETTINGS
from tests.kafka.test_group_apis import commit, committing, find

INTERVAL = "telemetry.interval.ms=1000"
SOON_MS = 10 * 60 * 1000
"""In place of hours, which a simulated node takes a while for."""


async def written(door: Door, offset: int = 0) -> list[tuple[str, dict[str, Any] | None]]:
    """Everything from `offset` on."""
    found: list[tuple[str, dict[str, Any] | None]] = []
    while True:
        data = await door.fetch(TELEMETRY_TOPIC, offset)
        assert data.error_code == 0
        rest = memoryview(data.records or b"")
        if not rest:
            return found
        while rest:
            header = decode_header(rest)
            for record in decode_records(rest[: header.size_bytes]):
                assert record.key is not None
                value = None if record.value is None else msgspec.json.decode(record.value)
                found.append((record.key.decode(), value))
            offset = header.base_offset + header.last_offset_delta + 1
            rest = rest[header.size_bytes :]


async def rounds(door: Door, count: int) -> None:
    """Let so many rounds pass, and stop between two, which begin with the full seconds."""
    await asyncio.sleep(int(door.world.now_s) + count + 0.5 - door.world.now_s)


def test_partitions_groups_and_the_node_are_sampled() -> None:
    async def story(door: Door) -> list[tuple[str, dict[str, Any] | None]]:
        await door.create("orders", 2)
        await door.produce("orders", batch_of("a", "b"), partition=1)
        await find(door, "billing")
        assert await commit(door, committing(1, group="billing", topic="orders", partition=1)) == 0
        await rounds(door, 2)
        return await written(door)

    samples = dict(at_the_door(story, INTERVAL, *GROUP_SETTINGS))
    orders = samples["partition:orders-1"]
    assert orders is not None
    assert {**orders, "at_ms": 0, "size_bytes": 0, "appended_bytes": 0} == {
        "kind": "partition",
        "at_ms": 0,
        "node": 0,
        "topic": "orders",
        "partition": 1,
        "start_offset": 0,
        "high_watermark": 2,
        "end_offset": 2,
        "size_bytes": 0,
        "segment_count": 1,
        "appended_bytes": 0,
    }
    assert orders["size_bytes"] == orders["appended_bytes"] > 0
    billing = samples["group:billing"]
    assert billing is not None
    assert (billing["kind"], billing["state"], billing["member_count"]) == ("group", "Empty", 0)
    assert billing["topics"] == [
        {
            "topic": "orders",
            "partition_count": 1,
            "committed_offset_sum": 1,
            "lag_sum": 1,
            "lag_max": 1,
            "lag_max_partition": 1,
        }
    ]
    node = samples["node:0"]
    assert node is not None
    assert node["figures"]["ropewalk_partitions"] == 2 + 3
    assert node["figures"]["ropewalk_connections.kafka"] == 1
    assert node["figures"]["ropewalk_sync_duration_seconds_count"] > 0
    assert f"partition:{TELEMETRY_TOPIC}-0" not in samples


def test_every_figure_of_a_node_is_a_documented_metric() -> None:
    async def story(door: Door) -> dict[str, Any] | None:
        await rounds(door, 2)
        return dict(await written(door))["node:0"]

    sample = at_the_door(story, INTERVAL, http="node:9644")
    assert sample is not None
    names = {metric.name for metric in METRICS}
    for figure in sample["figures"]:
        name = figure.partition(".")[0]
        assert name in names or name.rpartition("_")[0] in names, figure


def test_a_quiet_node_writes_its_own_sample_and_nothing_else() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("orders", 5)
        await rounds(door, 2)
        before = len(await written(door))
        await rounds(door, 5)
        return [key for key, _ in await written(door, before)]

    assert at_the_door(story, INTERVAL) == ["node:0"] * 5


def test_what_changes_is_written_again_and_what_is_gone_is_said_to_be() -> None:
    async def story(door: Door) -> list[list[tuple[str, bool]]]:
        await door.create("busy")
        await door.create("doomed")
        await rounds(door, 2)
        told = []
        before = len(await written(door))
        await door.produce("busy", batch_of("a"))
        await rounds(door, 1)
        told.append(await written(door, before))
        before += len(told[-1])
        request = delete_topics.DeleteTopicsRequest(topic_names=("doomed",), timeout_ms=1000)
        (result,) = (await door.call(delete_topics.API, 4, request)).topics
        assert result.error_code == 0
        await rounds(door, 1)
        told.append(await written(door, before))
        return [[(key, value is None) for key, value in each] for each in told]

    busy, doomed = at_the_door(story, INTERVAL)
    assert busy == [("partition:busy-0", False), ("node:0", False)]
    assert doomed == [("partition:doomed-0", True), ("node:0", False)]


def test_now_and_then_everything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry_samples, "FULL_ROUND_MS", SOON_MS)

    async def story(door: Door) -> list[str]:
        await door.create("orders")
        await asyncio.sleep(1.25 * SOON_MS / 1000 + 2)
        return [key for key, _ in await written(await door.another())]

    keys = at_the_door(story, f"telemetry.interval.ms={SOON_MS // 4}", limit_s=SOON_MS / 500)
    assert keys == ["partition:orders-0", *["node:0"] * 4, "partition:orders-0", "node:0"]


def test_the_topic_is_internal_kept_for_a_week_and_not_written_by_clients() -> None:
    async def story(door: Door) -> tuple[bool, int, int]:
        await rounds(door, 2)
        topic = (await door.topics())[TELEMETRY_TOPIC]
        refused = await door.produce(TELEMETRY_TOPIC, batch_of("a"))
        return topic.is_internal, len(topic.partitions), refused.error_code

    assert at_the_door(story, INTERVAL) == (True, 1, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_without_an_interval_there_is_no_topic() -> None:
    async def story(door: Door) -> bool:
        await asyncio.sleep(100)
        return TELEMETRY_TOPIC in await door.topics()

    assert at_the_door(story, "telemetry.interval.ms=0") is False


@pytest.mark.parametrize(
    ("settings", "expected"), [(("storage=memory",), False), (("storage=memory", INTERVAL), True)]
)
def test_a_node_in_memory_writes_none_unless_asked(settings: tuple[str, ...], expected: bool) -> None:
    async def story(door: Door) -> bool:
        await asyncio.sleep(30)
        return TELEMETRY_TOPIC in await door.topics()

    assert at_the_door(story, *settings, telemetry=True) is expected


def test_a_full_disk_is_counted_and_afterwards_everything_is_written() -> None:
    async def story(door: Door) -> tuple[str, list[str]]:
        await door.create("orders")
        await rounds(door, 2)
        before = len(await written(door))
        door.machine.platters.capacity_bytes = door.machine.platters.used_bytes
        await rounds(door, 5)
        page = await (await Line.open(door.world.network.host("probe"))).get("/public_metrics")
        door.machine.platters.make_room()
        await rounds(door, 2)
        return page.text, [key for key, _ in await written(door, before)]

    page, keys = at_the_door(story, INTERVAL, http="node:9644")
    assert "ropewalk_telemetry_failures_total 5" in page
    assert keys[:2] == ["partition:orders-0", "node:0"]


def test_a_topic_that_was_deleted_is_made_again() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("orders")
        await rounds(door, 2)
        request = delete_topics.DeleteTopicsRequest(topic_names=(TELEMETRY_TOPIC,), timeout_ms=1000)
        (result,) = (await door.call(delete_topics.API, 4, request)).topics
        assert result.error_code == 0
        await rounds(door, 1)
        return [key for key, _ in await written(door)]

    assert at_the_door(story, INTERVAL) == ["node:0"]


def test_the_page_about_telemetry_names_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/telemetry.md").read_text()
    for sample in (PartitionSample, GroupSampled, NodeSample, TopicLag):
        for field in sample.__struct_fields__:
            assert f"`{field}`" in page, field
