"""Figures of topics and partitions: kafka_exporter's, and our own.

What a reader could get wrong
    The image and the partitions may change between two slices. Every row is of one moment; the page as a whole is not.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ropewalk.base import metrics
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import SCRAPE_SLICE_COUNT
from ropewalk.base.metrics import Metric, Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.log.log import Log
from ropewalk.log.settings import UNLIMITED
from ropewalk.metadata.image import Image
from ropewalk.metadata.image import Partition as PartitionFacts

_ROW: Final[tuple[Metric, ...]] = (
    metrics.CURRENT_OFFSET,
    metrics.OLDEST_OFFSET,
    metrics.LEADER,
    metrics.LEADER_IS_PREFERRED,
    metrics.REPLICAS,
    metrics.IN_SYNC_REPLICAS,
    metrics.UNDER_REPLICATED,
    metrics.PARTITION_BYTES,
    metrics.PARTITION_SEGMENTS,
)


class PartitionFigures:
    def __init__(
        self,
        image: Image,
        partitions: Partitions,
        node_id: NodeId,
        clock: Clock,
        transaction_ms_max: Callable[[], int],
    ) -> None:
        """`transaction_ms_max`: the longest time that a transaction may be given."""
        self._image = image
        self._partitions = partitions
        self._node_id = node_id
        self._clock = clock
        self._transaction_ms_max = transaction_ms_max

    def collect(self, sheet: Sheet) -> Iterator[None]:
        totals = _Totals(self._clock.now_ms(), self._transaction_ms_max())
        led = self._partitions.led
        row_count = 0
        for topic in list(self._image.topics.values()):
            # One node speaks for the topic as a whole, so that the sum over all nodes is right.
            if topic.partitions and topic.partitions[0].leader == self._node_id:
                sheet.add(metrics.TOPIC_PARTITIONS, len(topic.partitions), topic.name)
            appended_bytes = None
            for facts in topic.partitions:
                partition = led(topic.topic_id, facts.index)
                if partition is None:
                    continue
                appended_bytes = (appended_bytes or 0) + partition.appended_bytes
                size_bytes = totals.add(partition)
                if sheet.per_partition:
                    sheet.add_row(_ROW, _row(partition, facts, size_bytes), topic.name, str(facts.index))
                row_count += 1
                if row_count % SCRAPE_SLICE_COUNT == 0:
                    yield
            if appended_bytes is not None:
                sheet.add(metrics.TOPIC_APPENDED, appended_bytes, topic.name)
        totals.write(sheet)
        yield


def _row(partition: Partition, facts: PartitionFacts, size_bytes: int) -> tuple[float, ...]:
    replica_count, in_sync_count = len(facts.replicas), len(facts.isr)
    return (
        partition.high_watermark,
        partition.log.start_offset,
        -1 if facts.leader is None else facts.leader,
        int(facts.leader == facts.replicas[0]),
        replica_count,
        in_sync_count,
        int(in_sync_count < replica_count),
        size_bytes,
        partition.log.segment_count,
    )


class _Totals:
    """What all partitions add up to."""

    def __init__(self, now_ms: int, transaction_ms_max: int) -> None:
        self._now_ms = now_ms
        self._transaction_ms_max = transaction_ms_max
        self.transaction_count = 0
        self.hanging_count = 0
        self.partition_count = 0
        self.damaged_count = 0
        self.size_bytes = 0
        self.segment_count = 0
        self.used_by_bytes = 0.0
        self.used_by_time = 0.0

    def add(self, partition: Partition) -> int:
        """Answers the partition's size, which takes a walk over its segments."""
        log = partition.log
        size_bytes = log.size_bytes
        self.partition_count += 1
        self.segment_count += log.segment_count
        if log.damaged:
            self.damaged_count += 1
        if not size_bytes:  # most of thousands of partitions: nothing below could matter
            return 0
        self.size_bytes += size_bytes
        open_count = len(log.producers.open_transactions())
        if open_count:
            self.transaction_count += open_count
            if partition.hanging_transactions(timeout_ms_max=self._transaction_ms_max):
                self.hanging_count += 1
        settings = log.settings
        self.used_by_bytes = max(self.used_by_bytes, _share(size_bytes, settings.retention_bytes))
        self.used_by_time = max(self.used_by_time, _share(_age_ms(log, self._now_ms), settings.retention_ms))
        return size_bytes

    def write(self, sheet: Sheet) -> None:
        sheet.add(metrics.PARTITIONS, self.partition_count)
        sheet.add(metrics.PARTITIONS_DAMAGED, self.damaged_count)
        sheet.add(metrics.PARTITION_TRANSACTIONS, self.transaction_count)
        sheet.add(metrics.TRANSACTIONS_HANGING, self.hanging_count)
        sheet.add(metrics.LOG_BYTES, self.size_bytes)
        sheet.add(metrics.LOG_SEGMENTS, self.segment_count)
        sheet.add(metrics.RETENTION_USED, round(self.used_by_bytes, 4), "bytes")
        sheet.add(metrics.RETENTION_USED, round(self.used_by_time, 4), "time")


def _share(used: int, allowed: int) -> float:
    return 0.0 if allowed == UNLIMITED else used / max(1, allowed)


def _age_ms(log: Log, now_ms: int) -> int:
    """Of the youngest record in the oldest segment, which is what retention goes by."""
    timestamp = log.oldest_segment_timestamp
    return 0 if timestamp is None else max(0, now_ms - timestamp)
