"""What batches came to, as the tasks counted it that did the work.

What a reader could get wrong
    Offsets are no rows, and rows that were read are not rows that were written: a batch that the output had already is read again, or not
    even that, and writes nothing. So every figure is of what a task did in this run, and nothing is derived from where a batch begins and ends.
    Spark tells of a batch when it is over. What it came to is known earlier, and is kept here until then.
    Behind a Connect server a batch is run by a process of the server's. What it counts goes into the output's commits, and not into the tally of the
    process that started the query.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import fields


class Figures(Struct, frozen=True, kw_only=True):
    """Sums over tasks: of a batch, of a run."""

    read_rows: int = 0
    """Records that came from topics."""
    written_rows: int = 0
    """Rows that came into the output."""
    written_bytes: int = 0
    """Of files, as they are on disk; of records, their keys and values."""
    written_files: int = 0
    dead_letters: int = 0
    """Rows that came into the table of dead letters."""
    unreadable_rows: int = 0
    """Rows whose key or value could not be read, or that had no event time: dead letters, or rows with nulls in their place."""
    late_rows: int = 0
    """Rows that came when what they belong to was over."""

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Figures)}
        )

    def noted(self) -> dict[str, str]:
        """For a table's history, under the names that its other properties have."""
        return {each.name.replace("_", "-"): str(getattr(self, each.name)) for each in fields(Figures)}


NOTHING: Final = Figures()


class Tally:
    """Of one run. The thread that runs batches adds, the one that watches the query looks."""

    __slots__ = ("_by_batch", "_total")

    def __init__(self) -> None:
        self._by_batch: dict[int, Figures] = {}
        self._total = Figures()

    @property
    def total(self) -> Figures:
        return self._total

    def add(self, batch: int, figures: Figures) -> None:
        """A batch may come in several parts, and its figures with them."""
        self._by_batch[batch] = self._by_batch.get(batch, Figures()) + figures
        self._total += figures

    def take(self, batch: int) -> Figures | None:
        """What the batch came to, once; None if nobody here has counted it."""
        return self._by_batch.pop(batch, None)
