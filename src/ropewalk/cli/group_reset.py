"""`group reset`: where a group's offsets should go, worked out before anything is changed.

What a reader could get wrong
    A target outside what a partition holds is moved to its nearest end, as Kafka's tool does: the group would
    otherwise fall back to `auto.offset.reset`, which is nobody's intention.
    A time after the last record means the end: the next record to come.
"""

from enum import Enum

import typer
from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.cli.durations import parse_duration
from ropewalk.cli.failure import Failed
from ropewalk.cli.offsets import parse_partitions, parse_time
from ropewalk.cli.options import Output
from ropewalk.cli.output import counted, print_json, print_table, warn
from ropewalk.client.administration.groups import Groups
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed, PartitionOutcomes
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode


class Aim(Enum):
    """The value is the option that says it."""

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
    committed: dict[TopicPartition, Committed],
    partitions: list[TopicPartition],
    target: Target,
    *,
    now_ms: int,
) -> list[Move]:
    """Refuses partitions that are not there, and a shift of what was never committed."""
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
            raise Failed(f"{partition} is not there or has no leader; choose others with --topic")
        found = at_time.get(partition)
        bounds = Bounds(
            starts[partition].offset,
            ends[partition].offset,
            found.offset if found is not None and found.offset >= 0 else None,
        )
        current = committed[partition].offset if partition in committed else None
        offset = target_offset(target, current, bounds)
        if offset is None:
            raise Failed(
                f"nothing is committed for {partition}, so there is nothing to shift; "
                "choose other partitions with --topic, or another target"
            )
        moves.append(Move(partition, current, offset))
    return moves


def choose_target(
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_datetime: str | None,
    shift_by: int | None,
    by_duration: str | None,
) -> Target:
    said = [
        *([Target(Aim.EARLIEST)] if to_earliest else []),
        *([Target(Aim.LATEST)] if to_latest else []),
        *([Target(Aim.OFFSET, to_offset)] if to_offset is not None else []),
        *([Target(Aim.TIME, parse_time(to_datetime, option="--to-datetime"))] if to_datetime else []),
        *([Target(Aim.SHIFT, shift_by)] if shift_by is not None else []),
        *([Target(Aim.AGO, parse_duration(by_duration, option="--by-duration"))] if by_duration else []),
    ]
    if len(said) != 1:
        raise typer.BadParameter(
            "choose exactly one target", param_hint=" or ".join(aim.value for aim in Aim)
        )
    return said[0]


async def refuse_members(groups: Groups, group: str, *, is_new: bool, execute: bool) -> None:
    """A group that is not there has no members: setting its offsets makes it. One that has offsets and cannot be
    described is of another kind; whether it has members the broker will say."""
    try:
        members = (await groups.describe(group)).members
    except RemoteError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        if is_new:
            warn(f"there is no group {group} yet; setting its offsets makes it")
        return
    if not members:
        return
    shown = ", ".join(f"{member.client_id} at {member.host.removeprefix('/')}" for member in members[:3])
    text = f"{group} has {counted(len(members), 'member')} ({shown}{', …' if len(members) > 3 else ''})"
    if execute:
        raise Failed(f"{text}, which would go on from where they are; stop them first")
    warn(f"{text}; --execute will be refused until they are stopped")


async def choose_partitions(
    client: Client, committed: dict[TopicPartition, Committed], topics: list[str]
) -> list[TopicPartition]:
    """What `--topic T` and `--topic T:0,2` name; with none of them, everything the group has committed."""
    if not topics:
        return sorted(committed)
    chosen: set[TopicPartition] = set()
    for text in topics:
        topic, partitions = parse_topic(text)
        if partitions is None:
            partitions = [partition.index for partition in (await client.topic(topic)).partitions]
        chosen |= {TopicPartition(topic, index) for index in partitions}
    return sorted(chosen)


def parse_topic(text: str) -> tuple[str, list[int] | None]:
    """`orders` or `orders:0,2`; None stands for all partitions."""
    topic, colon, partitions = text.partition(":")
    if not topic:
        raise typer.BadParameter(f"{text!r} names no topic", param_hint="--topic")
    return topic, parse_partitions(partitions if colon else None, option="--topic")


def print_moves(
    group: str, moves: list[Move], outcomes: PartitionOutcomes, output: Output, *, executed: bool
) -> None:
    statuses = []
    for move in moves:
        error = outcomes.get(move.at)
        statuses.append(
            f"{error.message} ({error.name})" if error else "reset" if executed else "would be reset"
        )
    if output is Output.JSON:
        rows = [
            {
                "group": group,
                "topic": move.at.topic,
                "partition": move.at.partition,
                "committed": move.committed,
                "target": move.target,
                "status": status,
            }
            for move, status in zip(moves, statuses, strict=True)
        ]
        print_json(rows)
    else:
        print_table(
            ("TOPIC", "PARTITION", "COMMITTED", "TARGET", "CHANGE", "STATUS"),
            [
                (move.at.topic, move.at.partition, move.committed, move.target, move.change, status)
                for move, status in zip(moves, statuses, strict=True)
            ],
        )
