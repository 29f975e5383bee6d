"""Where a group should go on reading: worked out and shown first, and then done exactly as it was shown."""

from collections.abc import Mapping, Sequence
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import CONSOLE_MOVES_BYTES_MAX, CONSOLE_MOVES_MAX
from ropewalk.client.administration.groups import Groups
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.errors import RemoteError
from ropewalk.console.filled_in import number
from ropewalk.console.page import Asked, Done, Page, Shown, Wrong, link
from ropewalk.console.pages.group import name_of
from ropewalk.views.group_reset import Aim, Move, NoTarget, Target, plan
from ropewalk.views.words import NotUnderstood, parse_indexes, parse_instant, parse_span
from ropewalk.wire.error_code import ErrorCode

_AIMS: Final = (
    ("earliest", "the oldest record"),
    ("latest", "the end"),
    ("offset", "an offset"),
    ("time", "a time"),
    ("ago", "so long ago"),
    ("shift", "so many records on, or back"),
)


async def show(asked: Asked) -> Shown:
    name = name_of(asked)
    groups = Groups(asked.client)
    committed = await groups.committed(name)
    moves: list[Move] = []
    trouble: str | None = None
    if asked.query.get("to"):
        try:
            moves = await _plan(asked, committed)
        except (Wrong, NotUnderstood, NoTarget) as wrong:
            trouble = str(wrong)
        except RemoteError as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                raise
            trouble = str(error)
    values: dict[str, object] = {
        "name": name,
        "aims": _AIMS,
        "said": {each: asked.query.get(each, "") for each in ("to", "value", "topics")},
        "topics": sorted({each.topic for each in committed}),
        "moves": moves,
        "fields": written(moves),
        "trouble": trouble,
        "members": await _member_count(groups, name),
    }
    return Shown("reset.html", values, f"Reset {name}")


async def reset(asked: Asked) -> Done:
    """What was shown, partition by partition."""
    name = name_of(asked)
    targets = read(asked.form.all("move"))
    if not targets:
        raise Wrong("there is nothing to reset")
    for error in (await Groups(asked.client).commit(name, targets)).values():
        if error is not None:
            raise error
    return Done(link("group", name=name), f"{name} goes on elsewhere in {len(targets):,} partitions")


async def _plan(asked: Asked, committed: Mapping[TopicPartition, Committed]) -> list[Move]:
    chosen = await _partitions(asked, committed)
    if not chosen:
        raise Wrong("the group has committed nothing; say which topics it should read")
    if len(chosen) > CONSOLE_MOVES_MAX:
        raise Wrong(
            f"these are {len(chosen):,} partitions, and {CONSOLE_MOVES_MAX:,} go at a time; say topics"
        )
    target = _target(asked.query.get("to", ""), asked.query.get("value", "").strip())
    moves = await plan(asked.client, committed, chosen, target, now_ms=asked.clock.now_ms())
    if sum(map(len, written(moves))) > CONSOLE_MOVES_BYTES_MAX:
        raise Wrong("these are more partitions than one form has room for; say topics")
    return moves


def _target(to: str, value: str) -> Target:
    match to:
        case "earliest":
            return Target(Aim.EARLIEST)
        case "latest":
            return Target(Aim.LATEST)
        case "offset":
            return Target(Aim.OFFSET, number(value, "offset"))
        case "time":
            return Target(Aim.TIME, parse_instant(value))
        case "ago":
            return Target(Aim.AGO, parse_span(value))
        case "shift":
            return Target(Aim.SHIFT, number(value, "records", least=-(1 << 62)))
    raise Wrong("choose where to")


async def _partitions(asked: Asked, committed: Mapping[TopicPartition, Committed]) -> list[TopicPartition]:
    said = asked.query.get("topics", "").split()
    chosen: set[TopicPartition] = set() if said else set(committed)
    for each in said:
        topic, colon, indexes = each.partition(":")
        wanted = (
            parse_indexes(indexes)
            if colon
            else [partition.index for partition in (await asked.client.topic(topic)).partitions]
        )
        chosen |= {TopicPartition(topic, index) for index in wanted}
    return sorted(chosen)


def written(moves: Sequence[Move]) -> list[str]:
    """As fields of a form, in letters that take one byte there: `TOPIC:PARTITION.OFFSET-PARTITION.OFFSET`."""
    by_topic: dict[str, list[str]] = {}
    for move in moves:
        by_topic.setdefault(move.at.topic, []).append(f"{move.at.partition}.{move.target}")
    return [f"{topic}:{'-'.join(targets)}" for topic, targets in by_topic.items()]


def read(fields: Sequence[str]) -> dict[TopicPartition, int]:
    """Raises `Wrong`."""
    targets: dict[TopicPartition, int] = {}
    for field in fields:
        topic, _, said = field.partition(":")
        for each in said.split("-"):
            index, _, offset = each.partition(".")
            targets[TopicPartition(topic, number(index, "partition"))] = number(offset, "offset")
    return targets


async def _member_count(groups: Groups, name: str) -> int:
    """A group with members goes on from where they are, and its offsets cannot be set."""
    try:
        return len((await groups.describe(name)).members)
    except RemoteError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return 0


PAGE: Final = Page(name="reset", title="Reset a group", under="groups", show=show, actions={"now": reset})
