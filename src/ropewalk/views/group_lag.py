"""How far groups are behind: what they committed beside where partitions end.

What a reader could get wrong
    A lag that cannot be known (nothing committed yet, or a topic that is gone) is None and not 0, and no part of
    a total: a group that never committed would look as if it had read everything.
"""

from collections.abc import Coroutine, Mapping
from typing import TypeVar

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.groups import DescribedGroup, Groups
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.together import together
from ropewalk.client.errors import SILENCE, RemoteError
from ropewalk.views.answering import begin_with_any, deadline_ms
from ropewalk.wire.error_code import ErrorCode

T = TypeVar("T")


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
    unanswered: str | None = None
    """Why nothing is known of the group: its coordinator does not answer in time."""


Readers = dict[TopicPartition, str]
"""Which member reads which partition."""


async def measure(client: Client, groups: Groups, names: list[str]) -> list[GroupLag]:
    """The lag of each group, in the order given, over all it has committed or is assigned; as far as brokers answer in time."""
    await begin_with_any(client)
    readers = await together([_or_silence(_readers_of(client, groups, name)) for name in names])
    measured = await measure_read(
        client,
        groups,
        {name: each for name, each in zip(names, readers, strict=True) if not isinstance(each, str)},
    )
    by_name = {each.group: each for each in measured}
    return [
        by_name[name] if not isinstance(each, str) else GroupLag(name, 0, 0, (), each)
        for name, each in zip(names, readers, strict=True)
    ]


async def measure_read(client: Client, groups: Groups, readers: Mapping[str, Readers]) -> list[GroupLag]:
    """As `measure`, for those who know already who reads what."""
    committed = await together(
        [_or_silence(groups.committed(name, deadline_ms=deadline_ms(client))) for name in readers]
    )
    wanted = {
        *(at for known in committed if not isinstance(known, str) for at in known),
        *(at for known in readers.values() for at in known),
    }
    # The offsets were read before the ends are: a lag may be a moment too large, but never negative.
    listed = await client.list_known_offsets(
        dict.fromkeys(wanted, int(OffsetQuery.LATEST)),
        deadline_ms=deadline_ms(client),
        without_the_silent=True,
    )
    ends = {partition: answer.offset for partition, answer in listed.items()}
    return [
        compare(name, offsets, readers[name], ends)
        if not isinstance(offsets, str)
        else GroupLag(name, 0, 0, (), offsets)
        for name, offsets in zip(readers, committed, strict=True)
    ]


def readers_in(group: DescribedGroup) -> Readers:
    return {partition: member.member_id for member in group.members for partition in member.partitions}


async def _or_silence(call: Coroutine[object, object, T]) -> T | str:
    """What is answered, or in words that nobody answers in time."""
    try:
        return await call
    except SILENCE as error:
        return str(error)
    except RemoteError as error:
        if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            raise
        return str(error)


async def _readers_of(client: Client, groups: Groups, name: str) -> Readers:
    """A group of another kind than DescribeGroups knows (KIP-848's, on Kafka) still has offsets to compare."""
    try:
        return readers_in(await groups.describe(name, deadline_ms=deadline_ms(client)))
    except RemoteError as error:
        until_ms = deadline_ms(client)
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND or not await groups.committed(
            name, deadline_ms=until_ms
        ):
            raise
        return {}


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
