"""What /metrics says, read by Prometheus's own parser and held against kafka_exporter's table of names."""

import asyncio
from collections.abc import Iterable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ropewalk.base import metrics
from ropewalk.base.durations import BOUNDS_MS, Durations
from ropewalk.base.limits import SCRAPE_SLICE_COUNT
from ropewalk.base.metrics import METRICS, Kind, Metric, Sheet
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.http.exposition import Exposition
from ropewalk.http.handlers.scrape import Scrapes
from ropewalk.sim.machines.world import NodePorts, World
from tests.http.client import Line
from tests.kafka.door import Door, at_the_door, batch_of
from tests.kafka.test_group_apis import SETTINGS as GROUP_SETTINGS
from tests.kafka.test_group_apis import commit, committing, find, member

EXPORTER = {
    "kafka_brokers": (),
    "kafka_broker_info": ("id", "address"),
    "kafka_topic_partitions": ("topic",),
    "kafka_topic_partition_current_offset": ("topic", "partition"),
    "kafka_topic_partition_oldest_offset": ("topic", "partition"),
    "kafka_topic_partition_in_sync_replica": ("topic", "partition"),
    "kafka_topic_partition_leader": ("topic", "partition"),
    "kafka_topic_partition_leader_is_preferred": ("topic", "partition"),
    "kafka_topic_partition_replicas": ("topic", "partition"),
    "kafka_topic_partition_under_replicated_partition": ("topic", "partition"),
    "kafka_consumergroup_current_offset": ("consumergroup", "topic", "partition"),
    "kafka_consumergroup_current_offset_sum": ("consumergroup", "topic"),
    "kafka_consumergroup_lag": ("consumergroup", "topic", "partition"),
    "kafka_consumergroup_lag_sum": ("consumergroup", "topic"),
    "kafka_consumergroup_members": ("consumergroup",),
}
"""As kafka_exporter 1.9 has them, all gauges."""

HTTP = "node:9644"


def samples_of(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    samples: Iterable[Sample] = (
        sample for family in text_string_to_metric_families(page) for sample in family.samples
    )
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}


def value_in(page: str, name: str, **labels: str) -> float:
    return samples_of(page)[name, tuple(sorted(labels.items()))]


async def scrape(door: Door, path: str = "/metrics") -> str:
    line = await Line.open(door.world.network.host("prometheus"))
    return (await line.get(path)).text


def test_the_names_of_kafka_exporter_are_declared_as_it_declares_them() -> None:
    declared = {metric.name: metric for metric in METRICS if metric.name.startswith("kafka_")}
    assert {name: metric.labels for name, metric in declared.items()} == EXPORTER
    assert {metric.kind for metric in declared.values()} == {Kind.GAUGE}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_named_for_what_it_is(metric: Metric) -> None:
    if not metric.name.startswith("kafka_"):
        assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
        assert (metric.kind is Kind.HISTOGRAM) <= metric.name.endswith("_seconds")
    assert metric.help.endswith(".")
    assert sum(other.name == metric.name for other in METRICS) == 1


def test_partitions_are_told_as_kafka_exporter_tells_them() -> None:
    async def story(door: Door) -> str:
        await door.create("orders", 3)
        await door.produce("orders", batch_of("a", "b"), partition=1)
        return await scrape(door)

    page = at_the_door(story, http=HTTP)
    where = {"topic": "orders", "partition": "1"}
    assert value_in(page, "kafka_brokers") == 1
    assert value_in(page, "kafka_broker_info", id="0", address="node:9092") == 1
    assert value_in(page, "kafka_topic_partitions", topic="orders") == 3
    assert value_in(page, "kafka_topic_partition_current_offset", **where) == 2
    assert value_in(page, "kafka_topic_partition_oldest_offset", **where) == 0
    assert value_in(page, "kafka_topic_partition_leader", **where) == 0
    assert value_in(page, "kafka_topic_partition_leader_is_preferred", **where) == 1
    assert value_in(page, "kafka_topic_partition_replicas", **where) == 1
    assert value_in(page, "kafka_topic_partition_in_sync_replica", **where) == 1
    assert value_in(page, "kafka_topic_partition_under_replicated_partition", **where) == 0


def test_the_nodes_own_figures_move_with_what_it_does() -> None:
    async def story(door: Door) -> tuple[str, str]:
        await door.create("orders", 2)
        before = await scrape(door)
        await door.produce("orders", batch_of("a" * 1000))
        await door.produce("nowhere", batch_of("a"))
        return before, await scrape(door)

    before, after = at_the_door(story, "auto.create.topics.enable=false", http=HTTP)
    assert value_in(after, "ropewalk_partitions") == 2
    assert value_in(after, "ropewalk_log_segments") == 2
    assert value_in(after, "ropewalk_log_bytes") > 1000
    assert value_in(after, "ropewalk_partition_log_bytes", topic="orders", partition="0") > 1000
    assert value_in(after, "ropewalk_topic_appended_bytes_total", topic="orders") > 1000
    assert value_in(after, "ropewalk_ready") == 1
    assert value_in(after, "ropewalk_disk_free_bytes") > 0
    assert value_in(after, "ropewalk_sync_duration_seconds_count") > 0
    assert value_in(after, "ropewalk_request_duration_seconds_count", api="Produce") == 2
    assert value_in(after, "ropewalk_connections", door="kafka") == 1
    assert (
        value_in(after, "ropewalk_request_errors_total", api="Produce", error="UNKNOWN_TOPIC_OR_PARTITION")
        == 1
    )
    received = {"name": "ropewalk_network_received_bytes_total", "door": "kafka"}
    assert value_in(after, **received) - value_in(before, **received) > 1000
    assert "ropewalk_request_duration_seconds_count{" in before
    assert 'api="Produce"' not in before, "an API that nobody used is not told of"


def test_groups_are_told_as_kafka_exporter_tells_them() -> None:
    async def story(door: Door) -> tuple[str, str]:
        await door.create("orders", 2)
        await door.produce("orders", batch_of("a", "b", "c"), partition=0)
        await door.produce("orders", batch_of("d", "e"), partition=1)
        await find(door, "billing")
        await member(door, "billing")
        await find(door, "idle")
        for partition, offset in ((0, 1), (1, 2)):
            request = committing(offset, group="idle", topic="orders", partition=partition)
            assert await commit(door, request) == 0
        return await scrape(door), await scrape(door, "/public_metrics")

    page, public = at_the_door(story, *GROUP_SETTINGS, http=HTTP)
    first = {"consumergroup": "idle", "topic": "orders", "partition": "0"}
    whole = {"consumergroup": "idle", "topic": "orders"}
    assert value_in(page, "kafka_consumergroup_members", consumergroup="billing") == 1
    assert value_in(page, "kafka_consumergroup_members", consumergroup="idle") == 0
    assert value_in(page, "ropewalk_group_generation", consumergroup="billing") == 1
    assert value_in(page, "ropewalk_group_generation", consumergroup="idle") == 0
    assert value_in(page, "kafka_consumergroup_current_offset", **first) == 1
    assert value_in(page, "kafka_consumergroup_lag", **first) == 2
    for told in (page, public):
        assert value_in(told, "kafka_consumergroup_current_offset_sum", **whole) == 3
        assert value_in(told, "kafka_consumergroup_lag_sum", **whole) == 2
        assert value_in(told, "ropewalk_groups", state="Stable", type="classic") == 1
        assert value_in(told, "ropewalk_groups", state="Empty", type="classic") == 1
    assert "kafka_consumergroup_lag{" not in public


def test_public_metrics_leave_out_what_has_a_line_per_partition() -> None:
    async def story(door: Door) -> tuple[str, str]:
        await door.create("orders", 3)
        return await scrape(door), await scrape(door, "/public_metrics")

    whole, public = at_the_door(story, http=HTTP)
    left_out = {name for name, _ in samples_of(whole)} - {name for name, _ in samples_of(public)}
    declared = {metric.name for metric in METRICS if metric.is_per_partition}
    assert left_out == {name for name in declared if "consumergroup" not in name}
    assert value_in(public, "ropewalk_partitions") == 3


class RowCount(Exposition):
    """Counts what is added between two slices."""

    def __init__(self) -> None:
        super().__init__(per_partition=True)
        self.row_count = 0

    def add_row(self, row: tuple[Metric, ...], values: tuple[float, ...], *labels: str) -> None:
        super().add_row(row, values, *labels)
        self.row_count += 1


def test_thousands_of_partitions_are_written_in_slices() -> None:
    partition_count = 10 * SCRAPE_SLICE_COUNT + 1

    async def story(door: Door) -> list[int]:
        await door.create("wide", partition_count)
        sheet, slices = RowCount(), []
        for source in door.node.sources():
            for _ in source.collect(sheet):
                slices.append(sheet.row_count)
                sheet.row_count = 0
        assert value_in(b"".join(sheet.chunks()).decode(), "ropewalk_partitions") == partition_count
        return slices

    slices = at_the_door(story)
    assert max(slices) <= SCRAPE_SLICE_COUNT
    assert sum(slices) == partition_count


def test_between_two_slices_others_have_their_turn() -> None:
    turns: list[str] = []

    class Slices:
        def collect(self, sheet: Sheet) -> Iterator[None]:
            for _ in range(4):
                turns.append("slice")
                asyncio.get_running_loop().call_soon(turns.append, "other")
                yield

    async def main(world: World) -> None:
        ports = await world.machine("node").start(_given)
        vitals = Vitals(ports.process, ports.disk, "/", ports.pool, ports.clock)
        await Scrapes(lambda: [Slices()], vitals).page(per_partition=True)

    with World(0) as world:
        world.run(main(world), limit_s=10)
    assert turns.count("slice") == 4
    assert "slice,slice,slice" not in ",".join(turns), "what one slice made ready waited for two others"


async def _given(ports: NodePorts) -> NodePorts:
    return ports


def test_two_who_ask_at_once_get_the_same_page() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("wide", 20 * SCRAPE_SLICE_COUNT)
        return list(await asyncio.gather(*(scrape(door) for _ in range(3))))

    pages = at_the_door(story, http=HTTP)
    assert {value_in(page, "ropewalk_partitions") for page in pages} == {20 * SCRAPE_SLICE_COUNT}


@pytest.mark.parametrize("value", ["plain", 'q"uote', "back\\slash", "new\nline", "günther", "{a=b}", ""])
def test_label_values_come_back_as_they_went_in(value: str) -> None:
    sheet = Exposition(per_partition=True)
    sheet.add(metrics.GROUP_MEMBERS, 7, value)
    page = b"".join(sheet.chunks()).decode()
    assert value_in(page, "kafka_consumergroup_members", consumergroup=value) == 7


def test_a_histogram_counts_what_is_at_most_its_bound() -> None:
    durations = Durations()
    for duration_ms in (0.05, 0.1, 3.0, 60_000.0):
        durations.add(duration_ms)
    sheet = Exposition(per_partition=True)
    sheet.add_durations(metrics.REQUEST_TIME, durations, "Fetch")
    page = b"".join(sheet.chunks()).decode()
    counts = {
        dict(labels)["le"]: value
        for (name, labels), value in samples_of(page).items()
        if name.endswith("_bucket")
    }
    assert counts["0.0001"] == 2
    assert counts["0.005"] == 3
    assert counts["5.0" if "5.0" in counts else "5"] == 3
    assert counts["+Inf"] == 4
    assert len(counts) == len(BOUNDS_MS) + 1
    assert value_in(page, "ropewalk_request_duration_seconds_sum", api="Fetch") == pytest.approx(60.00315)


def test_lines_of_a_metric_stand_together_in_whatever_order_they_came() -> None:
    sheet = Exposition(per_partition=True)
    sheet.add(metrics.CONNECTIONS, 1, "kafka")
    sheet.settle()
    sheet.add(metrics.READY, 1)
    sheet.add(metrics.CONNECTIONS, 2, "http")
    names = [
        line.split("{")[0].split()[0]
        for line in b"".join(sheet.chunks()).decode().splitlines()
        if line[0] != "#"
    ]
    assert names == ["ropewalk_ready", "ropewalk_connections", "ropewalk_connections"]


def test_a_lag_is_told_in_seconds_by_the_record_that_would_be_read_next() -> None:
    whole = {"consumergroup": "idle", "topic": "orders"}

    async def story(door: Door) -> tuple[float, str, str, str]:
        clock = door.machine.clock
        began_ms = clock.now_ms()
        await door.create("orders")
        for age_s in (100, 50, 10):
            await door.produce("orders", batch_of("x", timestamp=began_ms - age_s * 1000))
        await find(door, "idle")
        assert await commit(door, committing(1, group="idle", topic="orders")) == 0
        await asyncio.sleep(60)
        behind, expected_s = await scrape(door), (clock.now_ms() - began_ms) / 1000 + 50
        assert await commit(door, committing(2, group="idle", topic="orders")) == 0
        await asyncio.sleep(60)
        nearer = await scrape(door)
        assert await commit(door, committing(3, group="idle", topic="orders")) == 0
        return expected_s, behind, nearer, await scrape(door, "/public_metrics")

    expected_s, behind, nearer, reached = at_the_door(story, *GROUP_SETTINGS, http=HTTP)
    assert value_in(behind, "ropewalk_group_lag_seconds", **whole) == pytest.approx(expected_s, abs=1)
    assert value_in(nearer, "ropewalk_group_lag_seconds", **whole) == pytest.approx(expected_s + 20, abs=1)
    assert value_in(reached, "ropewalk_group_lag_seconds", **whole) == 0


def test_requests_are_told_by_how_they_were_served_and_without_waiting() -> None:
    async def story(door: Door) -> str:
        await door.create("orders")
        await door.produce("orders", batch_of("x", timestamp=door.machine.clock.now_ms() - 2_000))
        assert (await door.produce("nowhere", batch_of("x"))).error_code != 0
        assert (await door.fetch("orders", 0)).records
        assert not (await door.fetch("orders", 1, wait_ms=20_000)).records
        return await scrape(door)

    page = at_the_door(story, "auto.create.topics.enable=false", http=HTTP)
    assert value_in(page, "ropewalk_served_total", kind="produce") == 2
    assert value_in(page, "ropewalk_served_badly_total", kind="produce") == 0
    assert value_in(page, "ropewalk_served_total", kind="fetch") == 2
    assert value_in(page, "ropewalk_served_badly_total", kind="fetch") == 0
    assert value_in(page, "ropewalk_request_duration_seconds_sum", api="Fetch") >= 20
    assert value_in(page, "ropewalk_request_work_duration_seconds_sum", api="Fetch") < 1
    assert value_in(page, "ropewalk_request_work_duration_seconds_count", api="Fetch") == 2
    assert value_in(page, "ropewalk_commit_duration_seconds_count") == 2
    assert value_in(page, "ropewalk_end_to_end_duration_seconds_count") == 1
    assert 2 <= value_in(page, "ropewalk_end_to_end_duration_seconds_sum") < 3
    assert value_in(page, "ropewalk_feature_level") == value_in(page, "ropewalk_feature_level_max")
