"""Offsets as people write them (`views/words.py`), as options, and what they come to in each partition; `e@TIME` says where to stop."""

from collections.abc import Callable
from typing import TypeVar

import typer

from ropewalk.cli.failure import Failed
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.views import offsets
from ropewalk.views.offsets import Bound, OutsidePartition, Where
from ropewalk.views.words import NotUnderstood, parse_indexes, parse_instant, parse_where

T = TypeVar("T")


def parse_offset(text: str, *, option: str) -> Where:
    """Everything but `e@TIME`, which is a place to stop and not to start."""
    return said(parse_where, text, option=option)


def parse_time(text: str, *, option: str) -> int:
    """Milliseconds since 1970. A date without a zone is meant in UTC."""
    return said(parse_instant, text, option=option)


def parse_partitions(text: str | None, *, option: str = "--partitions") -> list[int] | None:
    """`0,2,5`; None stands for all."""
    return None if text is None else said(parse_indexes, text, option=option)


def said(parse: Callable[[str], T], text: str, *, option: str) -> T:
    """What an option says; refused by its name."""
    try:
        return parse(text)
    except NotUnderstood as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


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
