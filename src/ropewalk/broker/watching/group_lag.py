"""How far a group is behind, partition by partition and topic by topic.

What a reader could get wrong
    Whoever looks after a group need not lead what it reads. A copy of the partition serves, though it is a moment
    behind; where there is none, or the partition is gone, the lag is not known here: that is None, and never 0.
    An offset may have been committed beyond the end of the log, or the log cut since: that is a lag of 0.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.broker.partitions.partitions import Partitions


class PartitionLag(Struct, frozen=True, gc=False):
    topic: str
    partition: int
    committed_offset: Offset
    lag: int | None


class TopicLag(Struct, frozen=True, gc=False):
    topic: str
    partition_count: int
    """Partitions for which an offset is committed."""

    committed_offset_sum: int
    lag_sum: int
    """Over the partitions whose lag is known."""

    lag_max: int
    lag_max_partition: int
    """The lowest of those that are furthest behind; -1 where no lag is known."""


def partition_lags(
    offsets: Iterable[tuple[str, int, Offset]], partitions: Partitions
) -> Iterator[PartitionLag]:
    """`offsets` as a sample of the group has them: topic, partition, committed offset."""
    for topic, index, committed_offset in offsets:
        try:
            partition = partitions.find_copy(topic, index)
        except RopewalkError:
            lag = None
        else:
            lag = max(0, partition.high_watermark - committed_offset)
        yield PartitionLag(topic, index, committed_offset, lag)


def topic_lags(lags: Iterable[PartitionLag]) -> list[TopicLag]:
    """Summed up, in the order of the topics' names."""
    by_topic: dict[str, list[PartitionLag]] = {}
    for lag in lags:
        by_topic.setdefault(lag.topic, []).append(lag)
    return [_summed(topic, by_topic[topic]) for topic in sorted(by_topic)]


def _summed(topic: str, lags: list[PartitionLag]) -> TopicLag:
    known = [(-lag.lag, lag.partition) for lag in lags if lag.lag is not None]
    furthest = min(known, default=(0, -1))
    return TopicLag(
        topic=topic,
        partition_count=len(lags),
        committed_offset_sum=sum(lag.committed_offset for lag in lags),
        lag_sum=-sum(negated for negated, _ in known),
        lag_max=-furthest[0],
        lag_max_partition=furthest[1],
    )
