"""Where a group's offsets should go, worked out before anything is changed.

What a reader could get wrong
    A target outside what a partition holds is moved to its nearest end, as Kafka's tool does: the group would
    otherwise fall back to `auto.offset.reset`, which is nobody's intention.
    A time after the last record means the end: the next record to come.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.calls.list_offsets import OffsetQuery


class NoTarget(RopewalkError):
    """A partition has no place where its offset could go."""


class NotThere(NoTarget):
    """Nobody leads it, or it does not exist."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} is not there or has no leader")


class NothingToShift(NoTarget):
    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"nothing is committed for {partition}, so there is nothing to shift")


class Aim(Enum):
    """The value is the option that says it on a command line."""

    EARLIEST = "--to-earliest"
    LATEST = "--to-latest"
    OFFSET = "--to-offset"
    TIME = "--to-datetime"
    SHIFT = "--shift-by"
    AGO = "--by-duration"


class Target(Struct, frozen=True):
    """`number` is an offset, an instant, a distance or a duration in milliseconds, as the aim says."""

    aim: Aim
    number: int = 0


class Move(Struct, frozen=True):
    at: TopicPartition
    committed: int | None
    target: int

    @property
    def change(self) -> int | None:
        return None if self.committed is None else self.target - self.committed


class Bounds(Struct, frozen=True):
    start: int
    end: int
    at_time: int | None = None
    """The first offset at or after the instant; None where none is asked for or there is none."""


def target_offset(target: Target, committed: int | None, bounds: Bounds) -> int | None:
    """Where one partition's offset goes; None where a shift has nothing to start from."""
    match target.aim:
        case Aim.EARLIEST:
            wanted = bounds.start
        case Aim.LATEST:
            wanted = bounds.end
        case Aim.OFFSET:
            wanted = target.number
        case Aim.TIME | Aim.AGO:
            wanted = bounds.end if bounds.at_time is None else bounds.at_time
        case Aim.SHIFT:
            if committed is None:
                return None
            wanted = committed + target.number
    return min(max(wanted, bounds.start), bounds.end)


async def plan(
    client: Client,
    committed: Mapping[TopicPartition, Committed],
    partitions: Sequence[TopicPartition],
    target: Target,
    *,
    now_ms: int,
) -> list[Move]:
    """Refuses partitions that are not there, and a shift of what was never committed, with `NoTarget`."""
    starts = await client.list_known_offsets(dict.fromkeys(partitions, int(OffsetQuery.EARLIEST)))
    ends = await client.list_known_offsets(dict.fromkeys(partitions, int(OffsetQuery.LATEST)))
    instant_ms = {Aim.TIME: target.number, Aim.AGO: now_ms - target.number}.get(target.aim)
    at_time = (
        await client.list_known_offsets(dict.fromkeys(partitions, max(0, instant_ms)))
        if instant_ms is not None
        else {}
    )
    moves = []
    for partition in partitions:
        if partition not in starts or partition not in ends:
            raise NotThere(partition)
        found = at_time.get(partition)
        bounds = Bounds(
            starts[partition].offset,
            ends[partition].offset,
            found.offset if found is not None and found.offset >= 0 else None,
        )
        current = committed[partition].offset if partition in committed else None
        offset = target_offset(target, current, bounds)
        if offset is None:
            raise NothingToShift(partition)
        moves.append(Move(partition, current, offset))
    return moves
