"""The log of one partition of a queue: what is committed stays, and of what a leader had besides the next one has a part.

A term is one leader's time. A leader that was deposed may go on for a while: it appends to its own copy, and nothing of it is ever committed.
"""

from collections.abc import Callable

from msgspec import Struct

from ropewalk.queues.commands import Message
from ropewalk.sim.runs.queues.facts import Fact


class Entry(Struct, frozen=True):
    """A record. What it says is its number: no two that were ever appended have the same."""

    number: int
    batch: int
    """Records of one batch are there together, or not at all."""
    appended_at_ms: int
    """Real time."""
    sent_at_ms: int = 0
    """As the door stamped it."""
    group: str = ""
    delay_ms: int = 0
    deduplication_id: str = ""
    state: bytes = b""
    """Not empty: a record of state, and no message."""
    facts: tuple[Fact, ...] = ()
    """What was decided with it, for the book alone."""
    identity: tuple[int, int, int] | None = None
    """Of a dead letter: producer id, epoch and sequence."""
    origin: tuple[str, int] | None = None
    """And the queue and the number it had there."""

    def message(self, offset: int) -> Message | None:
        return None if self.state else Message(offset, self.sent_at_ms, self.group, self.delay_ms)


class Term:
    """One leader's copy."""

    def __init__(self, number: int, entries: list[Entry]) -> None:
        self.number = number
        self.entries = entries
        self.start_end = len(entries)
        """What it began with: it serves nobody before that is committed."""
        self.high_watermark = 0
        self.sequences: dict[tuple[int, int], tuple[int, int]] = {}
        """By producer and first sequence: the first offset of the batch, and how many it has."""
        for offset, entry in enumerate(entries):
            if entry.identity is not None:
                self._remember(offset, entry, entry.identity)

    def append(self, entry: Entry) -> int:
        self.entries.append(entry)
        if entry.identity is not None:
            self._remember(len(self.entries) - 1, entry, entry.identity)
        return len(self.entries) - 1

    def _remember(self, offset: int, entry: Entry, identity: tuple[int, int, int]) -> None:
        producer_id, _, sequence = identity
        if offset == 0 or self.entries[offset - 1].batch != entry.batch:
            self._batch_began = (producer_id, sequence)
            self.sequences[self._batch_began] = (offset, 1)
        else:
            first, count = self.sequences[self._batch_began]
            self.sequences[self._batch_began] = (first, count + 1)


class QueueLog:
    def __init__(self, name: str, on_committed: Callable[[int, Entry], None]) -> None:
        self.name = name
        self.committed: list[Entry] = []
        self.term = Term(0, [])
        self._on_committed = on_committed

    def commit(self, term: Term, end_offset: int) -> bool:
        """Whether it is so: a deposed leader commits nothing."""
        if term is not self.term:
            return False
        for offset in range(len(self.committed), end_offset):
            self.committed.append(term.entries[offset])
            self._on_committed(offset, term.entries[offset])
        term.high_watermark = max(term.high_watermark, end_offset)
        return True

    def change_leader(self, kept: float) -> int:
        """The next term begins with all that is committed and about so much of the rest, in whole batches. Answers how many records are lost."""
        entries = self.term.entries
        end = len(self.committed) + round((len(entries) - len(self.committed)) * kept)
        while len(self.committed) < end < len(entries) and entries[end - 1].batch == entries[end].batch:
            end -= 1
        self.term = Term(self.term.number + 1, entries[:end])
        self.term.high_watermark = len(self.committed)
        return len(entries) - end
