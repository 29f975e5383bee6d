"""Figures of consumer groups, as kafka_exporter tells them: members, offsets and lag."""

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from ropewalk.base import metrics
from ropewalk.base.limits import SCRAPE_SLICE_COUNT
from ropewalk.base.metrics import Sheet
from ropewalk.broker.coordinators.groups import GroupSample
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.watching.group_lag import PartitionLag, partition_lags, topic_lags


class GroupSamples(Protocol):
    def samples(self) -> Iterator[GroupSample]: ...


class GroupFigures:
    def __init__(self, groups: GroupSamples, partitions: Partitions) -> None:
        self._groups = groups
        self._partitions = partitions

    def collect(self, sheet: Sheet) -> Iterator[None]:
        kinds: Counter[tuple[str, str]] = Counter()
        row_count = 0
        for sample in self._groups.samples():
            kinds[sample.state.value, sample.group_type.value] += 1
            sheet.add(metrics.GROUP_MEMBERS, sample.member_count, sample.group_id)
            sheet.add(metrics.GROUP_GENERATION, sample.generation, sample.group_id)
            lags: list[PartitionLag] = []
            for each in partition_lags(sample.offsets, self._partitions):
                lags.append(each)
                labels = (sample.group_id, each.topic, str(each.partition))
                sheet.add(metrics.GROUP_OFFSET, each.committed_offset, *labels)
                if each.lag is not None:
                    sheet.add(metrics.GROUP_LAG, each.lag, *labels)
                row_count += 1
                if row_count % SCRAPE_SLICE_COUNT == 0:
                    yield
            for topic in topic_lags(lags):
                sheet.add(metrics.GROUP_OFFSET_SUM, topic.committed_offset_sum, sample.group_id, topic.topic)
                if topic.lag_max_partition >= 0:
                    sheet.add(metrics.GROUP_LAG_SUM, topic.lag_sum, sample.group_id, topic.topic)
            row_count += 1
            if row_count % SCRAPE_SLICE_COUNT == 0:
                yield
        for (state, group_type), count in sorted(kinds.items()):
            sheet.add(metrics.GROUPS, count, state, group_type)
        yield
