"""`group reset`: what the options name, what is asked before, and what is told of it. Where offsets go is worked out in `views/group_reset.py`."""

import typer

from ropewalk.base.ids import TopicPartition
from ropewalk.cli.durations import parse_duration
from ropewalk.cli.failure import Failed
from ropewalk.cli.offsets import parse_partitions, parse_time
from ropewalk.cli.options import Output
from ropewalk.cli.output import counted, print_json, print_table, warn
from ropewalk.client.administration.groups import Groups
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed, PartitionOutcomes
from ropewalk.client.errors import RemoteError
from ropewalk.views import group_reset
from ropewalk.views.group_reset import Aim, Move, NothingToShift, NotThere, Target
from ropewalk.wire.error_code import ErrorCode


async def plan(
    client: Client,
    committed: dict[TopicPartition, Committed],
    partitions: list[TopicPartition],
    target: Target,
    *,
    now_ms: int,
) -> list[Move]:
    """Refuses partitions that are not there, and a shift of what was never committed."""
    try:
        return await group_reset.plan(client, committed, partitions, target, now_ms=now_ms)
    except NotThere as error:
        raise Failed(f"{error}; choose others with --topic") from None
    except NothingToShift as error:
        raise Failed(f"{error}; choose other partitions with --topic, or another target") from None


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
