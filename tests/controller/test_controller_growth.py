"""Topics that grow under load, when another node is wanted, and what is hot."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.controller.growth import Growth
from ropewalk.controller.hot import HotKeys, hot_partitions
from ropewalk.controller.load import ClusterLoad, NodeLoad, PartitionLoad, gather
from ropewalk.controller.scale_signal import ScaleSignal
from ropewalk.controller.topics import decide_create_partitions
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from tests.controller.imagined import NOW_MS, ImaginedCluster

GROWTH_PARTITION_BYTES = 1 << 22
GROWTH_SUSTAINED_MS = 30_000
SCALE_SUSTAINED_MS = 120_000


def load(cluster: ImaginedCluster, name: str, *bytes_in: int) -> ClusterLoad:
    topic = cluster.image.topic(name)
    told = tuple(PartitionLoad(topic.topic_id, index, number, 0, 1) for index, number in enumerate(bytes_in))
    return gather(cluster.image, {NodeId(0): NodeLoad(partitions=told)})


def grow(growth: Growth, cluster: ImaginedCluster, name: str, bytes_in: float, now_ms: int) -> list[int]:
    """The counts asked for, with so much written to every partition, in shares of what one takes."""
    each = int(bytes_in * GROWTH_PARTITION_BYTES)
    told = load(cluster, name, *[each] * len(cluster.image.topic(name).partitions))
    commands = growth.on_load(cluster.image, told, cluster.settings, now_ms)
    for command in commands:
        broker_settings = cluster.settings.of_broker
        cluster.apply(
            decide_create_partitions(cluster.image, command, broker_settings, Random(1), now_ms=NOW_MS)
        )
    return [command.partition_count for command in commands]


def test_a_topic_grows_when_it_has_had_too_much_for_a_while() -> None:
    cluster, growth = ImaginedCluster(1), Growth()
    cluster.topic("orders", (0,), partitions_auto_max="5")
    now_ms = 0
    assert grow(growth, cluster, "orders", 9.0, now_ms) == []
    assert grow(growth, cluster, "orders", 9.0, now_ms + GROWTH_SUSTAINED_MS - 1) == []
    counts = []
    for _ in range(4):
        now_ms += GROWTH_SUSTAINED_MS
        counts += grow(growth, cluster, "orders", 9.0, now_ms)
    assert counts == [2, 4, 5], "it doubles at most, and stops at its limit"


def test_what_a_partition_is_meant_to_take_and_for_how_long_can_be_set() -> None:
    cluster, growth = ImaginedCluster(1, {"partitions.auto.sustained.ms": "7"}), Growth()
    cluster.topic("orders", (0,), partitions_auto_max="9", partitions_auto_byte_rate=str(1 << 21))
    assert grow(growth, cluster, "orders", 0.75, 0) == []
    assert grow(growth, cluster, "orders", 0.75, 6) == []
    assert grow(growth, cluster, "orders", 0.75, 7) == [2]


def test_a_topic_grows_no_further_than_its_load_needs() -> None:
    cluster, growth = ImaginedCluster(1), Growth()
    cluster.topic("orders", *[(0,)] * 4, partitions_auto_max="100")
    grow(growth, cluster, "orders", 1.2, 0)
    assert grow(growth, cluster, "orders", 1.2, GROWTH_SUSTAINED_MS) == [5]


def test_a_pause_begins_the_wait_anew() -> None:
    cluster, growth = ImaginedCluster(1), Growth()
    cluster.topic("orders", (0,), partitions_auto_max="5")
    grow(growth, cluster, "orders", 2.0, 0)
    grow(growth, cluster, "orders", 0.5, GROWTH_SUSTAINED_MS // 2)
    assert grow(growth, cluster, "orders", 2.0, GROWTH_SUSTAINED_MS) == []


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        pytest.param("orders", {}, id="not asked for"),
        pytest.param("orders", {"partitions_auto_max": "5", "cleanup_policy": "compact"}, id="compacted"),
        pytest.param(OFFSETS_TOPIC, {"partitions_auto_max": "5"}, id="the cluster's own"),
        pytest.param("orders", {"partitions_auto_max": "1"}, id="at its limit"),
    ],
)
def test_topics_that_do_not_grow(name: str, overrides: dict[str, str]) -> None:
    cluster, growth = ImaginedCluster(1), Growth()
    cluster.topic(name, (0,), **overrides)
    grow(growth, cluster, name, 9.0, 0)
    assert grow(growth, cluster, name, 9.0, 10 * GROWTH_SUSTAINED_MS) == []


def test_only_whoever_leads_is_believed() -> None:
    cluster = ImaginedCluster(2)
    topic_id = cluster.topic("orders", (0, 1))
    told = NodeLoad(partitions=(PartitionLoad(topic_id, 0, 5, 5, 5), PartitionLoad(topic_id, 9, 5, 5, 5)))
    assert gather(cluster.image, {NodeId(1): told}).of(topic_id, 0).bytes_in == 0
    assert gather(cluster.image, {NodeId(0): told}).of(topic_id, 0).bytes_in == 5
    unknown = NodeLoad(partitions=(PartitionLoad(TopicId(b"?" * 16), 0, 5, 5, 5),))
    assert not gather(cluster.image, {NodeId(0): unknown}).traffic


@pytest.mark.parametrize(
    ("node", "configuration", "factor", "expected"),
    [
        pytest.param(NodeLoad(), {}, 1, (), id="nothing"),
        pytest.param(NodeLoad(cpu_permille=751), {}, 1, ("busy 75 % of the time",), id="busy"),
        pytest.param(NodeLoad(cpu_permille=750), {}, 1, (), id="busy enough"),
        pytest.param(
            NodeLoad(cpu_permille=751), {"cluster.scale.cpu.percent": "90"}, 1, (), id="busy and meant to be"
        ),
        pytest.param(
            NodeLoad(disk_used_bytes=76, disk_total_bytes=100), {}, 1, ("disks are 76 % full",), id="full"
        ),
        pytest.param(
            NodeLoad(), {"max.broker.partitions": "5"}, 1, ("max.broker.partitions allows 10",), id="many"
        ),
    ],
)
def test_another_node_is_wanted_after_a_while(
    node: NodeLoad, configuration: dict[str, str], factor: int, expected: tuple[str, ...]
) -> None:
    cluster, signal = ImaginedCluster(2, configuration), ScaleSignal()
    cluster.topic("orders", *[(0,)] * 9)
    told = {NodeId(number): node for number in (0, 1)}
    broker_settings = cluster.settings.of_broker
    assert signal.on_load(cluster.image, told, broker_settings, 0) == ()
    reasons = signal.on_load(cluster.image, told, broker_settings, SCALE_SUSTAINED_MS)
    assert len(reasons) == len(expected)
    for reason, part in zip(reasons, expected, strict=True):
        assert part in reason.text


def test_another_node_is_wanted_where_partitions_have_more_replicas_than_there_are_brokers() -> None:
    cluster, signal = ImaginedCluster(3), ScaleSignal()
    cluster.topic("orders", (0, 1, 2))
    cluster.fence(2)
    signal.on_load(cluster.image, {}, cluster.settings.of_broker, 0)
    (reason,) = signal.on_load(cluster.image, {}, cluster.settings.of_broker, SCALE_SUSTAINED_MS)
    assert reason.text == "2 brokers are in service, partitions have up to 3 replicas"
    cluster.unfence(2)
    assert signal.on_load(cluster.image, {}, cluster.settings.of_broker, SCALE_SUSTAINED_MS + 1) == ()


def test_the_busiest_partitions_come_first() -> None:
    cluster = ImaginedCluster(1)
    cluster.topic("orders", (0,), (0,), (0,))
    found = hot_partitions(cluster.image, load(cluster, "orders", 1, 0, 3), 10)
    assert [(hot.index, hot.share, hot.leader) for hot in found] == [(2, 0.75, 0), (0, 0.25, 0)]
    assert hot_partitions(cluster.image, load(cluster, "orders", 0, 0, 0), 10) == []


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(1, 10))
def test_a_key_that_is_frequent_enough_is_always_found_and_never_counted_too_low(
    numbers: list[int], capacity: int
) -> None:
    keys = [b"%d" % number for number in numbers]
    sketch, truth = HotKeys(capacity), Counter(keys)
    for key in keys:
        sketch.add(key)
    found = {hot.key: hot for hot in sketch.top(capacity)}
    assert len(found) <= capacity
    assert sum(hot.count for hot in found.values()) == len(keys)
    for key, hot in found.items():
        assert hot.count - hot.error <= truth[key] <= hot.count
    for key, count in truth.items():
        assert key in found or count <= len(keys) / capacity


def test_sketches_are_put_together_and_fade() -> None:
    one, other = HotKeys(2), HotKeys(2)
    for key in (b"a", b"a", b"b"):
        one.add(key)
    for key in (b"b", b"c", b"d"):
        other.add(key)
    one.add_all(other.top(2))
    assert one.added == 6
    for hot in one.top(2):
        assert hot.error <= hot.count
    one.fade()
    assert one.added == 3
    for _ in range(4):
        one.fade()
    assert one.top(2) == []
