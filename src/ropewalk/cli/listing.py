"""Which rows `top` shows, and in which order: a view of a picture, sorted and filtered by a person."""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.views.observation import GroupRow, NodeRow, PartitionRow, Picture, TopicRow


class View(Enum):
    TOPICS = "topics"
    PARTITIONS = "partitions"
    GROUPS = "groups"
    NODES = "nodes"


class Column(Struct, frozen=True):
    heading: str
    field: str
    is_text: bool = False


COLUMNS: Final[dict[View, tuple[Column, ...]]] = {
    View.TOPICS: (
        Column("TOPIC", "topic", is_text=True),
        Column("PARTITIONS", "partitions"),
        Column("OFFLINE", "offline"),
        Column("UNDER-REPLICATED", "under_replicated"),
        Column("RECORDS", "records"),
        Column("WRITTEN/S", "written_per_second"),
        Column("BYTES", "bytes"),
    ),
    View.PARTITIONS: (
        Column("TOPIC", "topic", is_text=True),
        Column("PARTITION", "partition"),
        Column("LEADER", "leader"),
        Column("REPLICAS", "replicas"),
        Column("ISR", "isr"),
        Column("START", "start"),
        Column("END", "end"),
        Column("WRITTEN/S", "written_per_second"),
    ),
    View.GROUPS: (
        Column("GROUP", "group", is_text=True),
        Column("STATE", "state", is_text=True),
        Column("MEMBERS", "members"),
        Column("LAG", "lag"),
        Column("UNKNOWN", "unknown"),
        Column("READ/S", "read_per_second"),
    ),
    View.NODES: (
        Column("NODE", "node", is_text=True),
        Column("LEADS", "leads"),
        Column("WRITTEN/S", "written_per_second"),
        Column("BYTES", "bytes"),
    ),
}
_BUSIEST_FIRST: Final = {View.TOPICS: 5, View.PARTITIONS: 7, View.GROUPS: 3, View.NODES: 2}
"""The column each view is sorted by until told otherwise."""

Cell = str | int | float | None


class Rows(Struct, frozen=True):
    shown: tuple[tuple[Cell, ...], ...]
    total: int
    """How many there are with this filter, shown or not."""


class Listing(Struct, frozen=True):
    """What a person has chosen. `sorted_by` counts columns; text sorts from A, numbers from the largest."""

    view: View = View.TOPICS
    sorted_by: int = _BUSIEST_FIRST[View.TOPICS]
    is_reversed: bool = False
    wanted: str = ""
    """Only rows whose name holds this, whatever the case."""

    def switched(self, view: View) -> "Listing":
        return Listing(view, _BUSIEST_FIRST[view], wanted=self.wanted)

    def sorted_beside(self, step: int) -> "Listing":
        """By the next column to the right, or to the left."""
        return replace(self, sorted_by=(self.sorted_by + step) % len(COLUMNS[self.view]), is_reversed=False)

    def rows(self, picture: Picture, *, count_max: int | None = None) -> Rows:
        columns = COLUMNS[self.view]
        found = [
            row
            for row in (_cells(each, columns) for each in _of(picture, self.view))
            if self.wanted.lower() in str(row[0]).lower()
        ]
        by = columns[self.sorted_by]
        known = [row for row in found if row[self.sorted_by] is not None]
        # Sorting keeps the order of equals, also when reversed: rows that tie stay in the order of their names.
        known.sort(key=lambda row: _key(row[self.sorted_by]), reverse=by.is_text == self.is_reversed)
        unknown = [row for row in found if row[self.sorted_by] is None]
        return Rows(tuple([*known, *unknown][:count_max]), len(found))


def _of(picture: Picture, view: View) -> Sequence[TopicRow | PartitionRow | GroupRow | NodeRow]:
    match view:
        case View.TOPICS:
            return picture.topics
        case View.PARTITIONS:
            return picture.partitions
        case View.GROUPS:
            return picture.groups
        case View.NODES:
            return picture.nodes


def _cells(
    row: TopicRow | PartitionRow | GroupRow | NodeRow, columns: tuple[Column, ...]
) -> tuple[Cell, ...]:
    return tuple([getattr(row, column.field) for column in columns])


def _key(cell: Cell) -> tuple[str, float]:
    """A column holds either text or numbers."""
    return (cell.lower(), 0.0) if isinstance(cell, str) else ("", float(cell or 0))


_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None]) -> str:
    """One bar for each, as high as it is beside the largest; what is not known is a gap.

    >>> sparkline([None, 0, 1, 4, 8])
    ' ▁▂▅█'
    """
    largest = max((value for value in values if value is not None), default=0)
    return "".join(
        " " if value is None else _BARS[0 if largest <= 0 else round(value / largest * (len(_BARS) - 1))]
        for value in values
    )


def written(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case float():
            return f"{cell:,.1f}"
        case int():
            return f"{cell:,}"
        case _:
            return cell
