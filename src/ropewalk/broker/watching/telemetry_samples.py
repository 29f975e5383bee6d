"""What `__telemetry` holds: one JSON object per sample, and the rule about which are worth writing.

    partition:orders-3   {"kind":"partition","at_ms":…,"node":0,"topic":"orders","partition":3,…}
    group:billing        {"kind":"group","at_ms":…,"node":0,"group":"billing",…}
    node:0               {"kind":"node","at_ms":…,"node":0,"figures":{…}}

Behaviour worth knowing
    A partition or a group is written when it differs from what was written last, so a quiet node writes one record per
    round: its own. A null value says that the thing under that key is gone.
    Now and then (`FULL_ROUND_MS`) everything is written, so that whoever reads a window finds a beginning in it.
    `__telemetry` itself is left out: it would be different every time for the sole reason that it was described.

What a reader could get wrong
    A compaction makes a partition smaller without changing its offsets. That is told with its next change.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.base import metrics
from ropewalk.base.durations import Durations
from ropewalk.base.ids import NodeId, Offset
from ropewalk.base.metrics import Metric, Source
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.watching.group_figures import GroupSamples
from ropewalk.broker.watching.group_lag import TopicLag, partition_lags, topic_lags
from ropewalk.metadata.internal_topics import TELEMETRY_TOPIC

FULL_ROUND_MS: Final = 6 * 60 * 60 * 1000

_LABELS_TOLD: Final = frozenset({"mode", "door"})
"""Of a node's figures those are told that have no labels but these, which have two values each."""


class PartitionSample(Struct, frozen=True, gc=False, tag_field="kind", tag="partition"):
    at_ms: int
    node: NodeId
    topic: str
    partition: int
    start_offset: Offset
    high_watermark: Offset
    end_offset: Offset
    size_bytes: int
    segment_count: int
    appended_bytes: int
    """Since the node opened the partition; it begins at 0 again with every start."""


class GroupSampled(Struct, frozen=True, gc=False, tag_field="kind", tag="group"):
    at_ms: int
    node: NodeId
    group: str
    state: str
    member_count: int
    topics: tuple[TopicLag, ...]


class NodeSample(Struct, frozen=True, tag_field="kind", tag="node"):
    at_ms: int
    node: NodeId
    figures: dict[str, float]
    """Metrics of the node by name; `NAME.VALUE` where one has a label, `NAME_count` and `NAME_sum` of a histogram."""


class Sampled(Struct, frozen=True, gc=False):
    """A record to be written: a value of None says that the thing is gone."""

    key: str
    value: PartitionSample | GroupSampled | NodeSample | None

    def encoded(self) -> tuple[bytes, bytes | None]:
        return self.key.encode(), None if self.value is None else msgspec.json.encode(self.value)


class Sampler:
    """Looks at everything and answers what has changed. Nothing is written here, and nothing waited for."""

    def __init__(
        self, node_id: NodeId, partitions: Partitions, groups: GroupSamples, sources: Iterable[Source]
    ) -> None:
        """`sources` are asked for the node's figures at every round, so none may be costly."""
        self._node_id = node_id
        self._partitions = partitions
        self._groups = groups
        self._sources = sources
        self._partitions_told: dict[Partition, tuple[int, int, int, int]] = {}
        self._sizes_bytes: dict[Partition, int] = {}
        """As they were told."""

        self._groups_told: dict[str, tuple[object, ...]] = {}
        self._full_round_due_ms: float | None = None

    def round(self, now_ms: int, monotonic_ms: float) -> Iterator[Sampled | None]:
        """One after the other what is new; None where nothing was, so that the caller can let others have a turn."""
        if self._full_round_due_ms is None or monotonic_ms >= self._full_round_due_ms:
            self._full_round_due_ms = monotonic_ms + FULL_ROUND_MS
            self._partitions_told.clear()
            self._groups_told.clear()
        yield from self._changed_partitions(now_ms)
        yield from self._changed_groups(now_ms)
        yield Sampled(f"node:{self._node_id}", self._node(now_ms))

    def forget(self) -> None:
        """What was answered last was not written: everything is new again."""
        self._full_round_due_ms = None

    def _changed_partitions(self, now_ms: int) -> Iterator[Sampled | None]:
        told = self._partitions_told
        present: dict[Partition, None] = {}
        for partition in self._partitions.all_led():
            name, log = partition.name, partition.log
            if name.topic == TELEMETRY_TOPIC:
                continue
            present[partition] = None
            mark = (log.end_offset, partition.high_watermark, log.start_offset, log.segment_count)
            if told.get(partition) == mark:
                yield None
                continue
            sample = self._partition(partition, now_ms)
            told[partition], self._sizes_bytes[partition] = mark, sample.size_bytes
            yield Sampled(f"partition:{name}", sample)
        for partition in [each for each in told if each not in present]:
            del told[partition], self._sizes_bytes[partition]
            yield Sampled(f"partition:{partition.name}", None)

    def _changed_groups(self, now_ms: int) -> Iterator[Sampled | None]:
        told, present = self._groups_told, set[str]()
        for sample in self._groups.samples():
            group_id = sample.group_id
            present.add(group_id)
            lags = tuple(topic_lags(partition_lags(sample.offsets, self._partitions)))
            mark = (sample.state, sample.member_count, lags)
            if told.get(group_id) == mark:
                yield None
                continue
            told[group_id] = mark
            yield Sampled(
                f"group:{group_id}",
                GroupSampled(now_ms, self._node_id, group_id, sample.state.value, sample.member_count, lags),
            )
        for group_id in sorted(told.keys() - present):
            del told[group_id]
            yield Sampled(f"group:{group_id}", None)

    def _partition(self, partition: Partition, now_ms: int) -> PartitionSample:
        log = partition.log
        return PartitionSample(
            at_ms=now_ms,
            node=self._node_id,
            topic=partition.name.topic,
            partition=partition.name.partition,
            start_offset=log.start_offset,
            high_watermark=partition.high_watermark,
            end_offset=log.end_offset,
            size_bytes=log.size_bytes,
            segment_count=log.segment_count,
            appended_bytes=partition.appended_bytes,
        )

    def _node(self, now_ms: int) -> NodeSample:
        sheet = _NodeSheet()
        sheet.add(metrics.PARTITIONS, len(self._partitions_told))
        sheet.add(metrics.LOG_BYTES, sum(self._sizes_bytes.values()))
        for source in self._sources:
            for _ in source.collect(sheet):
                pass
        return NodeSample(now_ms, self._node_id, sheet.figures)


class _NodeSheet:
    """A `Sheet` that keeps the figures of the node as a whole."""

    per_partition = False

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        if _LABELS_TOLD.issuperset(metric.labels):
            self.figures[".".join((metric.name, *labels))] = value

    def add_row(self, row: tuple[Metric, ...], values: tuple[float, ...], *labels: str) -> None:
        for metric, value in zip(row, values, strict=True):
            self.add(metric, value, *labels)

    def add_durations(self, metric: Metric, durations: Durations, *labels: str) -> None:
        if not labels:
            self.figures[f"{metric.name}_count"] = durations.count
            self.figures[f"{metric.name}_sum"] = durations.total_ms / 1000
