"""A history put in order: every operation with what became of it, and every value with where it stands.

What a reader could get wrong
    An operation that never asked to commit is aborted, whatever it was answered: nobody else may commit for it.
    A transaction whose commit was refused is aborted only if no attempt before was left unanswered; the client says which.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.eos.history import (
    Began,
    EndAsked,
    Ended,
    Event,
    FinalRead,
    Outcome,
    Placed,
    Polled,
    Sent,
)

NEVER: Final = 1 << 62

Report = Callable[[str, str], None]


class Operation(Struct):
    number: int
    process: str
    is_transactional: bool
    began: int
    commit_asked: int = NEVER
    ended: int = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    placed: dict[TopicPartition, list[tuple[int, int]]] = field(default_factory=dict)
    """The (offset, value) of whatever was acknowledged."""

    @property
    def is_aborted(self) -> bool:
        if self.is_transactional and self.commit_asked == NEVER:
            return True
        return self.outcome is Outcome.ABORTED

    def __str__(self) -> str:
        return f"operation {self.number} of {self.process}"


class Ledger:
    """Reports what no reading can explain: two values at one offset, one value at two, values from nowhere."""

    def __init__(self, history: Sequence[Event], report: Report) -> None:
        self._report = report
        self.operations: dict[int, Operation] = {}
        self.writers: dict[int, tuple[int, TopicPartition]] = {}
        """By value: the operation that sent it, and where to."""
        self.offsets: dict[TopicPartition, dict[int, int]] = {}
        """By partition and offset the value that somebody saw there."""
        self._places: dict[int, tuple[TopicPartition, int]] = {}
        self._reported: set[tuple[str, int]] = set()
        for index, event in enumerate(history):
            self._on_event(index, event)

    def writer_of(self, value: int) -> Operation | None:
        known = self.writers.get(value)
        return None if known is None else self.operations[known[0]]

    def _on_event(self, index: int, event: Event) -> None:
        match event:
            case Began(number, process, is_transactional):
                self.operations[number] = Operation(number, process, is_transactional, index)
            case Sent(number, partition, values):
                for value in values:
                    self.writers[value] = (number, partition)
            case Placed(number, partition, base_offset, values):
                placed = list(enumerate(values, base_offset))
                self.operations[number].placed.setdefault(partition, []).extend(placed)
                for offset, value in placed:
                    self._on_seen(partition, offset, value)
            case (
                Polled(partition=partition, records=records) | FinalRead(partition=partition, records=records)
            ):
                for offset, value in records:
                    self._on_seen(partition, offset, value)
            case EndAsked(number, is_commit) if is_commit:
                operation = self.operations[number]
                operation.commit_asked = min(operation.commit_asked, index)
            case Ended(number, outcome):
                self.operations[number].ended = index
                self.operations[number].outcome = outcome
            case _:
                pass

    def _on_seen(self, partition: TopicPartition, offset: int, value: int) -> None:
        known = self.offsets.setdefault(partition, {}).setdefault(offset, value)
        if known != value:
            self._report("inconsistent-offsets", f"{partition} has {known} and {value} at {offset}")
        place = self._places.setdefault(value, (partition, offset))
        if place != (partition, offset):
            where = f"in {place[0]} at {place[1]} and in {partition} at {offset}"
            self._report_once("duplicate", value, f"{value} is {where}")
        if self.writers.get(value, (0, None))[1] != partition:
            text = f"{partition} has {value} at {offset}, which nobody sent there"
            self._report_once("invented", value, text)

    def _report_once(self, kind: str, value: int, text: str) -> None:
        if (kind, value) not in self._reported:
            self._reported.add((kind, value))
            self._report(kind, text)
