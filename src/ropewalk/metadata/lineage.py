"""Which history of the metadata somebody has followed: who reigned when, and how to tell one history from another.

A metadata log that was put back from a backup goes on with other records under the same offsets. Whoever had followed further holds
facts that are no more, and must not go on with what comes. Every controller names its reign when it begins to decide
(`ControllerChanged`), by a name that nobody else ever has, and nobody appends without a reign. So offset and reign of the last
record that was applied say which history it is of.

What a reader could get wrong
    Only so many reigns are remembered, and logs that are older than the names have reigns without one. Where nothing is
    known that speaks against it, a position is taken for one of this history.
    A log cannot judge a position beyond its end: it may be behind. Its home can.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from ropewalk.base.ids import NodeId
from ropewalk.metadata.records import ControllerChanged, MetadataRecord


class Reign(Struct, frozen=True):
    """Of one controller, from the record at `offset` on."""

    offset: int
    node_id: NodeId
    epoch: int
    name: str
    """Empty if it began before reigns had names."""


class Position(Struct, frozen=True):
    """How far somebody has applied the log, and in which reign the last record of that was appended."""

    end_offset: int
    epoch: int = 0
    """0: it is not known."""
    reign: str = ""


def position_of(reigns: Sequence[Reign], end_offset: int) -> Position:
    """Of a reader that has applied what is before `end_offset`."""
    if not reigns:
        return Position(end_offset)
    return Position(end_offset, reigns[-1].epoch, reigns[-1].name)


def holds(reigns: Iterable[Reign], position: Position) -> bool:
    """Whether a history with these reigns, which reaches at least so far, begins with what was applied up to `position`."""
    if position.epoch == 0:
        return True
    reign = None
    for each in reigns:
        if each.offset < position.end_offset:
            reign = each
    if reign is None:  # longer ago than is remembered
        return True
    return reign.epoch == position.epoch and (
        not reign.name or not position.reign or reign.name == position.reign
    )


def complaint(position: Position, whose: str) -> str:
    """In one line, what is the matter and what to do."""
    return (
        f"{whose} has applied the metadata up to record {position.end_offset - 1} of epoch {position.epoch}, which this history does "
        "not hold: was the metadata put back from a backup? Start the node again to go on with what there is"
    )


def reigns_in(facts: Iterable[MetadataRecord], end_offset: int) -> tuple[Reign, ...]:
    """Those that a snapshot names which ends at `end_offset`."""
    return tuple(
        Reign(record.offset or 0, record.node_id, record.epoch, record.reign)
        for record in placed(facts, end_offset)
        if isinstance(record, ControllerChanged)
    )


def placed(facts: Iterable[MetadataRecord], end_offset: int) -> Iterator[MetadataRecord]:
    """The facts of a snapshot. One from before reigns were remembered does not say where the last one began: since its end, at least."""
    for record in facts:
        if isinstance(record, ControllerChanged) and record.offset is None:
            yield structs.replace(record, offset=max(0, end_offset - 1))
        else:
            yield record
