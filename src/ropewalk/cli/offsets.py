"""Offsets as people write them, in kcat's manner, and what they come to in each partition.

beginning, earliest, start    the oldest record there is
end, latest                   after the newest
17                            offset 17
-5                            five before the end
s@TIME, e@TIME                the first record at or after TIME, as a place to start and to stop;
                              TIME is milliseconds since 1970 or a date such as 2026-11-15T10:00
"""

from datetime import UTC, datetime
from typing import Final

import typer

from ropewalk.cli.failure import Failed
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.views import offsets
from ropewalk.views.offsets import Anchor, Bound, OutsidePartition, Where

_WORDS: Final = {
    "beginning": Anchor.BEGINNING,
    "earliest": Anchor.BEGINNING,
    "start": Anchor.BEGINNING,
    "end": Anchor.END,
    "latest": Anchor.END,
}


def parse_offset(text: str, *, option: str) -> Where:
    """Everything but `e@TIME`, which is a place to stop and not to start."""
    if text in _WORDS:
        return Where(_WORDS[text])
    if text.startswith("s@"):
        return Where(Anchor.TIME, parse_time(text[2:], option=option))
    try:
        number = int(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not an offset; write beginning, end, 17, -5 or s@TIME", param_hint=option
        ) from None
    return Where(Anchor.BEFORE_END, -number) if text.startswith("-") else Where(Anchor.ABSOLUTE, number)


def parse_time(text: str, *, option: str) -> int:
    """Milliseconds since 1970. A date without a zone is meant in UTC."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write milliseconds since 1970 or 2026-11-15T10:00", param_hint=option
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def parse_partitions(text: str | None, *, option: str = "--partitions") -> list[int] | None:
    """`0,2,5`; None stands for all."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise typer.BadParameter(f"{text!r} is not a list of partitions such as 0,2", param_hint=option)
    return sorted(set(numbers))


async def resolve_starts(
    client: Client,
    topic: str,
    partitions: list[int] | None,
    where: Where,
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> list[Bound]:
    """Refuses an absolute offset that a partition does not have, naming those it has."""
    try:
        return await offsets.resolve_starts(client, topic, partitions, where, isolation=isolation)
    except OutsidePartition as error:
        raise Failed(f"{error}; choose one of these, or one partition with -p") from None
