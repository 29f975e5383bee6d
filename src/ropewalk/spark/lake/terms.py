"""On which terms a job may write to a table that exists: it is its own, laid out alike, with columns that fit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from ropewalk.spark.lake.evolution import Evolved, Refused, evolve
from ropewalk.spark.lake.table import TableSpec
from ropewalk.spark.refusals import NoTable, NotOurs, WrongUse

_TOPIC: Final = "topic"


def check_owner(spec: TableSpec, owner: str | None) -> None:
    if owner is None:
        raise NotOurs(
            f"the table in {spec.address} was not made by Ropewalk, so nothing says which offsets it holds;"
            " name another directory"
        )
    if owner != spec.owner:
        raise NotOurs(
            f"the table in {spec.address} belongs to the job {owner!r}, and this is {spec.owner!r}:"
            f" name another directory, or run it as {owner!r} if it is the same job"
        )


def check_layout(spec: TableSpec, partition_columns: tuple[str, ...]) -> None:
    """A job may come to read more topics than it began with: whether there is a directory for each stays as it began."""
    wanted, found = (
        tuple(name for name in columns if name != _TOPIC)
        for columns in (spec.partition_columns, partition_columns)
    )
    if wanted != found:
        raise WrongUse(
            f"the table in {spec.address} is partitioned by {', '.join(found) or 'nothing'}, not by {', '.join(wanted) or 'nothing'};"
            " leave partition_by as it was, or name another directory"
        )


def day_column(schema: pa.Schema, partition_columns: Sequence[str]) -> str:
    """The column that the table has a directory for each day by. Raises `WrongUse` where there is none."""
    for name in partition_columns:
        if name in schema.names and schema.field(name).type == pa.date32():
            return name
    raise WrongUse(
        "keep_rows_days deletes whole days, and the table has no directory for each day: say partition_by with a column of dates, or leave"
        " out keep_rows_days"
    )


def grown_columns(
    spec: TableSpec, existing: pa.Schema, wanted: pa.Schema, *, widens: bool = False
) -> Evolved:
    """What the table's columns become. `widens` says whether its kind can give a column a wider type."""
    match evolve(existing, wanted):
        case Refused(reason):
            raise WrongUse(
                f"{reason}, in the table in {spec.address}; a column keeps its type:"
                " name another directory, or write what the table has"
            )
        case Evolved(widened=(first, *_)) if not widens:
            raise WrongUse(
                f"column {first!r} of the table in {spec.address} is too narrow for what is to be written, and tables of this"
                " kind cannot widen one; name another directory"
            )
        case Evolved() as grown:
            return grown


def refuse_missing(spec: TableSpec) -> None:
    """Before a table is made, by who only wants to look at one."""
    if spec.must_exist:
        raise NoTable(f"there is no table in {spec.address}; the job makes it when it first runs")


def refuse_strange_files(spec: TableSpec, directory: Path | None) -> None:
    """Before a table is made: what is there already would seem to be part of it."""
    if directory is None:
        return
    if directory.exists() and not directory.is_dir():
        raise WrongUse(f"{spec.address} is no directory")
    strange = sorted(each.name for each in directory.glob("[!._]*"))
    if strange:
        raise NotOurs(
            f"{spec.address} holds {strange[0]} and is no table of Ropewalk's; name a directory that is empty or not there yet"
        )
