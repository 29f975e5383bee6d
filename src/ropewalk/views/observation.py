"""What `top` sees: the cluster at one instant, and what happened between two.

Everything comes over Kafka's protocol, so any broker that speaks it can be watched.

What a reader could get wrong
    A rate is known from the second look on; before that, and for what was not there the last time, it is None.
    Records written are counted by offsets: on a compacted topic offsets go on and records may be fewer.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.groups import DescribedGroup, Groups, ListedGroup
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.calls.list_offsets import ListedOffset, OffsetQuery
from ropewalk.client.calls.together import together
from ropewalk.client.errors import SILENCE, ApiNotOffered, RemoteError
from ropewalk.views.answering import begin_with_any, deadline_ms
from ropewalk.views.group_lag import GroupLag, compare, readers_in
from ropewalk.wire.error_code import ErrorCode


class PartitionSample(Struct, frozen=True, gc=False):
    leader: int | None
    replica_count: int
    isr_count: int
    start: int | None
    end: int | None
    size_bytes: int | None = None
    """Of the largest copy; None where nobody asked, or nobody said."""


class GroupSample(Struct, frozen=True, gc=False):
    state: str
    member_count: int | None
    """None where the broker does not say."""
    lag: GroupLag


class Sample(Struct, frozen=True):
    """The cluster at one instant of the monotonic clock."""

    at_ms: float
    cluster_id: str | None
    broker_count: int
    partitions: Mapping[TopicPartition, PartitionSample]
    groups: Mapping[str, GroupSample]


class TopicRow(Struct, frozen=True):
    topic: str
    partitions: int
    offline: int
    """Partitions that nobody leads."""
    under_replicated: int
    records: int
    """Offsets between the start and the end of each partition, together."""
    written_per_second: float | None
    bytes: int | None = None
    """One copy of each partition; None where nothing is known of any."""


class PartitionRow(Struct, frozen=True):
    topic: str
    partition: int
    leader: int | None
    replicas: int
    isr: int
    start: int | None
    end: int | None
    written_per_second: float | None


class GroupRow(Struct, frozen=True):
    group: str
    state: str
    members: int | None
    lag: int | None
    """None where the coordinator does not answer."""
    unknown: int | None
    read_per_second: float | None
    """By what was committed."""


class NodeRow(Struct, frozen=True):
    """What a node carries of the partitions that were looked at."""

    node: str
    leads: int
    written_per_second: float | None
    bytes: int | None
    """Of the partitions that it leads, one copy of each."""


class Picture(Struct, frozen=True):
    cluster_id: str | None
    brokers: int
    written_per_second: float | None
    topics: tuple[TopicRow, ...]
    partitions: tuple[PartitionRow, ...]
    groups: tuple[GroupRow, ...]
    nodes: tuple[NodeRow, ...] = ()


class Source(Protocol):
    async def look(self) -> Sample: ...


class ClusterSource:
    """Looks at a real cluster: a handful of requests to each broker, and two for each group."""

    def __init__(self, client: Client, *, internal: bool, with_sizes: bool = False) -> None:
        """`with_sizes` asks brokers for bytes, too."""
        self._with_sizes = with_sizes
        self._client = client
        self._groups = Groups(client)
        self._internal = internal

    async def look(self) -> Sample:
        at_ms = self._client.session.clock.monotonic_ms()
        await begin_with_any(self._client)
        listed_groups = await self._list_groups()
        described = await together([self._describe(each) for each in listed_groups])
        committed = await together([self._committed(each) for each in listed_groups])
        view = await self._client.metadata()
        found = {
            TopicPartition(topic.name, partition.index): partition
            for topic in view.topics
            if self._internal or not topic.is_internal
            for partition in topic.partitions
        }
        wanted = {*found, *(partition for each in committed for partition in each or ())}
        starts, listed = await together(
            [
                self._offsets(found, OffsetQuery.EARLIEST),
                self._offsets(wanted, OffsetQuery.LATEST),
            ]
        )
        ends = {partition: answer.offset for partition, answer in listed.items()}
        sizes = (
            await self._client.log_sizes(found, deadline_ms=deadline_ms(self._client))
            if self._with_sizes
            else {}
        )
        return Sample(
            at_ms,
            view.cluster_id,
            len(view.brokers),
            {
                at: PartitionSample(
                    partition.leader if partition.leader >= 0 else None,
                    len(partition.replicas),
                    len(partition.isr),
                    starts[at].offset if at in starts else None,
                    ends.get(at),
                    sizes.get(at),
                )
                for at, partition in found.items()
            },
            {
                each.group: GroupSample(
                    each.state,
                    len(members.members) if members is not None else None,
                    compare(each.group, offsets, readers_in(members) if members is not None else {}, ends)
                    if offsets is not None
                    else GroupLag(each.group, 0, 0, (), "its coordinator does not answer"),
                )
                for each, members, offsets in zip(listed_groups, described, committed, strict=True)
            },
        )

    async def _list_groups(self) -> list[ListedGroup]:
        try:
            return await self._groups.list(deadline_ms=deadline_ms(self._client), without_the_silent=True)
        except ApiNotOffered:  # a broker without groups can be watched too
            return []

    async def _describe(self, listed: ListedGroup) -> DescribedGroup | None:
        """None for a group that went since it was listed, is of a kind that DescribeGroups does not know, or whose coordinator does not answer."""
        try:
            return await self._groups.describe(listed.group, deadline_ms=deadline_ms(self._client))
        except SILENCE:
            return None
        except RemoteError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return None
            raise

    async def _committed(self, listed: ListedGroup) -> dict[TopicPartition, Committed] | None:
        try:
            return await self._groups.committed(listed.group, deadline_ms=deadline_ms(self._client))
        except SILENCE:
            return None

    async def _offsets(
        self, partitions: Iterable[TopicPartition], query: OffsetQuery
    ) -> dict[TopicPartition, ListedOffset]:
        return await self._client.list_known_offsets(
            dict.fromkeys(partitions, int(query)),
            deadline_ms=deadline_ms(self._client),
            without_the_silent=True,
        )


def draw(former: Sample | None, latter: Sample) -> Picture:
    """What the latter sample shows, with rates since the former one."""
    seconds = (latter.at_ms - former.at_ms) / 1000 if former is not None else 0.0

    def rate(before: int | None, after: int | None) -> float | None:
        if before is None or after is None or seconds <= 0:
            return None
        # An end that moved back belongs to a topic that was deleted and made anew: nothing to compare with.
        return round((after - before) / seconds, 1) if after >= before else None

    partitions = []
    for at, sample in sorted(latter.partitions.items()):
        known = former.partitions.get(at) if former is not None else None
        partitions.append(
            PartitionRow(
                at.topic,
                at.partition,
                sample.leader,
                sample.replica_count,
                sample.isr_count,
                sample.start,
                sample.end,
                rate(known.end if known is not None else None, sample.end),
            )
        )
    groups = []
    for name, group in sorted(latter.groups.items()):
        known_group = former.groups.get(name) if former is not None else None
        groups.append(
            GroupRow(
                name,
                group.state,
                group.member_count,
                group.lag.lag if group.lag.unanswered is None else None,
                group.lag.unknown if group.lag.unanswered is None else None,
                rate(_read(known_group.lag) if known_group is not None else None, _read(group.lag)),
            )
        )
    by_topic: dict[str, list[PartitionRow]] = {}
    for row in partitions:
        by_topic.setdefault(row.topic, []).append(row)
    return Picture(
        latter.cluster_id,
        latter.broker_count,
        _sum(row.written_per_second for row in partitions),
        tuple(_topic_row(topic, rows, _bytes(latter, rows)) for topic, rows in by_topic.items()),
        tuple(partitions),
        tuple(groups),
        tuple(_node_rows(latter, partitions)),
    )


def _node_rows(sample: Sample, rows: Iterable[PartitionRow]) -> Iterator[NodeRow]:
    """By number; who leads nothing is not known of here."""
    led: dict[int, list[PartitionRow]] = {}
    for row in rows:
        if row.leader is not None:
            led.setdefault(row.leader, []).append(row)
    for node, of_node in sorted(led.items()):
        yield NodeRow(
            str(node),
            len(of_node),
            _sum(row.written_per_second for row in of_node),
            _bytes(sample, of_node),
        )


def _bytes(sample: Sample, rows: Iterable[PartitionRow]) -> int | None:
    sizes = [sample.partitions[TopicPartition(row.topic, row.partition)].size_bytes for row in rows]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def _topic_row(topic: str, rows: list[PartitionRow], size_bytes: int | None) -> TopicRow:
    return TopicRow(
        topic,
        len(rows),
        sum(row.leader is None for row in rows),
        sum(row.isr < row.replicas for row in rows),
        sum(row.end - row.start for row in rows if row.end is not None and row.start is not None),
        _sum(row.written_per_second for row in rows),
        size_bytes,
    )


def _read(lag: GroupLag) -> int:
    return sum(row.committed for row in lag.partitions if row.committed is not None)


def _sum(rates: Iterable[float | None]) -> float | None:
    """Of those that are known; None where none is."""
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 1) if known else None
