"""How far groups are behind: what they committed beside where partitions end.

What a reader could get wrong
    A lag that cannot be known (nothing committed yet, or a topic that is gone) is None and not 0, and no part of
    a total: a group that never committed would look as if it had read everything.
"""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.client import Client
from ropewalk.client.group_offsets import Committed
from ropewalk.client.groups import DescribedGroup, Groups
from ropewalk.client.list_offsets import OffsetQuery
from ropewalk.client.together import together


class PartitionLag(Struct, frozen=True):
    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member: str | None
    """The id of the member that reads it."""
    metadata: str


class GroupLag(Struct, frozen=True):
    group: str
    lag: int
    """The sum of what is known."""
    unknown: int
    """Of how many partitions the lag is not known."""
    partitions: tuple[PartitionLag, ...]


async def measure(client: Client, groups: Groups, names: list[str]) -> list[GroupLag]:
    """The lag of each group, in the order given, over all it has committed or is assigned."""
    described = await together([groups.describe(name) for name in names]) if names else []
    return await measure_described(client, groups, described)


async def measure_described(
    client: Client, groups: Groups, described: list[DescribedGroup]
) -> list[GroupLag]:
    committed = await together([groups.committed(each.group) for each in described]) if described else []
    readers = [
        {partition: member.member_id for member in each.members for partition in member.partitions}
        for each in described
    ]
    wanted = {
        *(each for known in committed for each in known),
        *(each for known in readers for each in known),
    }
    # The offsets were read before the ends are: a lag may be a moment too large, but never negative.
    listed = await client.list_known_offsets(dict.fromkeys(wanted, int(OffsetQuery.LATEST)))
    ends = {partition: answer.offset for partition, answer in listed.items()}
    return [
        compare(group.group, offsets, reading, ends)
        for group, offsets, reading in zip(described, committed, readers, strict=True)
    ]


def compare(
    group: str,
    committed: Mapping[TopicPartition, Committed],
    readers: Mapping[TopicPartition, str],
    ends: Mapping[TopicPartition, int],
) -> GroupLag:
    rows = []
    for partition in sorted({*committed, *readers}):
        offset = committed[partition].offset if partition in committed else None
        end = ends.get(partition)
        rows.append(
            PartitionLag(
                partition.topic,
                partition.partition,
                offset,
                end,
                # An offset beyond the end is left from a topic that was deleted and made anew.
                max(0, end - offset) if end is not None and offset is not None else None,
                readers.get(partition),
                committed[partition].metadata if partition in committed else "",
            )
        )
    return GroupLag(
        group,
        sum(row.lag for row in rows if row.lag is not None),
        sum(row.lag is None for row in rows),
        tuple(rows),
    )
