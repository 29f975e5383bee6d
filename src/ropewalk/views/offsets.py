"""Where to begin in a topic, and what that comes to in each partition."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import Isolation, OffsetQuery


class OutsidePartition(RopewalkError):
    """An offset that a partition does not have."""


class Anchor(Enum):
    BEGINNING = "beginning"
    END = "end"
    ABSOLUTE = "absolute"
    BEFORE_END = "before end"
    TIME = "time"


class Where(Struct, frozen=True):
    """`number` is an offset, a distance from the end or an instant, as the anchor says."""

    anchor: Anchor
    number: int = 0


class Bound(Struct, frozen=True):
    """Where a partition's reading begins, and the offsets it had when we asked."""

    partition: int
    offset: int
    start: int
    end: int


async def resolve_starts(
    client: Client,
    topic: str,
    partitions: Sequence[int] | None,
    where: Where,
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> list[Bound]:
    """Refuses an absolute offset that a partition does not have, naming those it has, with `OutsidePartition`."""
    chosen = (
        partitions
        if partitions is not None
        else [partition.index for partition in (await client.topic(topic)).partitions]
    )
    starts = await client.list_offsets(topic, dict.fromkeys(chosen, OffsetQuery.EARLIEST))
    ends = await client.list_offsets(topic, dict.fromkeys(chosen, OffsetQuery.LATEST), isolation=isolation)
    at_time = (
        await client.list_offsets(topic, dict.fromkeys(chosen, where.number))
        if where.anchor is Anchor.TIME
        else {}
    )
    bounds = []
    for index in chosen:
        start, end = starts[index].offset, ends[index].offset
        match where.anchor:
            case Anchor.BEGINNING:
                offset = start
            case Anchor.END:
                offset = end
            case Anchor.BEFORE_END:
                offset = max(start, end - where.number)
            case Anchor.TIME:
                offset = at_time[index].offset if at_time[index].offset >= 0 else end
            case Anchor.ABSOLUTE:
                offset = where.number
                if not start <= offset <= end:
                    raise OutsidePartition(f"{topic}-{index} has offsets {start} to {end}, not {offset}")
        bounds.append(Bound(index, offset, start, end))
    return bounds


async def resolve_stops(
    client: Client, topic: str, partitions: Sequence[int], instant_ms: int
) -> dict[int, int]:
    """For each partition the first offset at or after the instant; a partition without one is left out."""
    listed = await client.list_offsets(topic, dict.fromkeys(partitions, instant_ms))
    return {index: answer.offset for index, answer in listed.items() if answer.offset >= 0}
