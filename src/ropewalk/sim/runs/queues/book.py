"""What became of every message of a queue, as it is committed, and the rules that no run may break.

The book sees every decision in the order of the log, in real time. It knows nothing of cursors, bitmaps, heaps or the log's own time.

    Q1  an acknowledged message is in one place until it is deleted, purged, rewound past or moved, and is given out in the end
    Q2  what is deleted, purged or moved is not given out again; nobody is given what another one has, before its time is over
    Q3  FIFO: of a group nothing is given out while something before it is there and not given with it
    Q4  a deduplication id is in the log once within five minutes, less what clocks differ
    Q5  a dead letter is in its queue once, and was received exactly as often as it may be
    A   an answer tells what is committed
    D   a delay does not end early
"""

from bisect import bisect_left, insort
from collections.abc import Callable

from msgspec import Struct

from ropewalk.base.limits import QUEUE_DEDUPLICATION_MS
from ropewalk.queues.settings import QueueSettings
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.judge import Violation
from ropewalk.sim.runs.queues.facts import (
    Deleted,
    Extended,
    Fact,
    Given,
    Moved,
    Purged,
    Released,
    Rewound,
)
from ropewalk.sim.runs.queues.queue_log import Entry


class Life(Struct):
    """One message, as far as is committed."""

    offset: int
    entry: Entry
    ready_at_ms: int
    fate: str = ""
    """Why it is gone; empty: it is there."""
    attempt: int = 0
    count: int = 0
    until_ms: int = 0
    was_repeated: bool = False
    """The attempt was given again, so more than one may have it."""
    copy_count: int = 0
    """In the queue that it was moved to."""
    was_refused: bool = False
    """That queue did not take it, so it may be received more often."""


class Book:
    def __init__(self, name: str, settings: QueueSettings, *, spread_ms: int, sometimes: Sometimes) -> None:
        """`spread_ms`: how far clocks are apart at most."""
        self.name = name
        self._settings = settings
        self._spread_ms = spread_ms
        self._sometimes = sometimes
        self.lives: dict[int, Life] = {}
        """By offset, in order."""
        self._by_number: dict[int, Life] = {}
        self._groups: dict[str, list[int]] = {}
        """Offsets that are there, in order."""
        self._ids: dict[str, int] = {}
        self.on_copy: Callable[[str, int, int], None] = lambda _name, _number, _at_ms: None
        """A message that was moved from that queue, by its number there, is committed here; and when it was appended."""
        self._attempts: dict[int, tuple[int, ...]] = {}
        self._gone: set[int] = set()
        """Offsets of what was gone at some time."""

    def commit(self, offset: int, entry: Entry) -> None:
        for fact in entry.facts:
            self._apply(fact)
        if entry.state:
            return
        delay_ms = self._settings.delay_ms if self._settings.is_fifo else entry.delay_ms
        life = Life(offset, entry, entry.appended_at_ms + delay_ms)
        self.lives[offset] = self._by_number[entry.number] = life
        self._groups.setdefault(entry.group, []).append(offset)
        if entry.origin is not None:
            self.on_copy(*entry.origin, entry.appended_at_ms)
        if entry.deduplication_id:
            self._check_id(entry)

    def add_copy(self, number: int, at_ms: int) -> None:
        life = self._by_number[number]
        life.copy_count += 1
        target = self._settings.dead_letters
        if life.copy_count > 1:
            raise Violation("Q5", f"{self._called(life)} is a dead letter twice")
        if at_ms < life.until_ms and not life.fate:
            raise Violation("Q2", f"{self._called(life)} is moved while somebody has it")
        if target is None:  # a move task takes what can be received, however often it was
            return
        if life.count != target.receive_count_max and not life.was_refused and not life.fate:
            raise Violation("Q5", f"{self._called(life)} is a dead letter after {life.count} receives")

    def check_acknowledged(self, offset: int, committed: list[Entry], number: int | None, name: str) -> None:
        """A send was answered with this offset; by its deduplication id if it was a duplicate."""
        if offset >= len(committed):
            raise Violation("A", f"{self.name}: a send was answered with {offset}, which is not committed")
        entry = committed[offset]
        if entry.number != number and (number is not None or entry.deduplication_id != name):
            raise Violation("A", f"{self.name}: a send was answered with {offset}, where another message is")

    def check_deleted(self, offset: int) -> None:
        if offset not in self._gone:
            raise Violation("A", f"the delete of {self.name}/{offset} was answered, and is not committed")

    def check_given(self, offsets: tuple[int, ...], attempt: int) -> None:
        """FIFO: a receive was answered."""
        if self._attempts.get(attempt) != offsets:
            raise Violation("A", f"{self.name}/{offsets[0]} was given out, and that is not committed")

    def check_prompt(self, offset: int, at_ms: int, *, is_changed: bool) -> None:
        """A standard queue gave it out before that was written. `is_changed`: what is not committed yet explains it."""
        life = self.lives[offset]
        if is_changed:
            return
        if life.fate:
            raise Violation("Q2", f"{self._called(life)} is given out again after it was {life.fate}")
        self._check_time(life, at_ms)

    def fail_early(self, offset: int, by_ms: int) -> None:
        """The same leader gave it out a second time."""
        raise Violation("Q2", f"{self.name}/{offset} is given out {by_ms} ms before its time is over")

    def waiting(self) -> list[str]:
        """What is still there."""
        return [self._called(life) for life in self.lives.values() if not life.fate]

    def _apply(self, fact: Fact) -> None:
        match fact:
            case Given():
                self._give(fact)
            case Extended(offset, until_ms):
                self.lives[offset].until_ms = until_ms
            case Released(offset):
                life = self.lives[offset]
                if life.was_repeated:
                    raise Violation("Q2", f"{self._called(life)} is given back, and somebody may have it")
                life.count -= 1
                life.until_ms = 0
            case Deleted(offset):
                self._end(self.lives[offset], "deleted")
            case Purged(end_offset):
                for life in self.lives.values():
                    if life.offset < end_offset:
                        self._end(life, "purged")
            case Rewound(offset):
                self._rewind(offset)
            case Moved(offsets, moved_count):
                for place, offset in enumerate(offsets):
                    self._end_move(self.lives[offset], is_moved=place < moved_count)

    def _give(self, fact: Given) -> None:
        self._attempts[fact.attempt] = fact.offsets
        for place, offset in enumerate(fact.offsets):
            life = self.lives[offset]
            is_repeated = life.attempt == fact.attempt
            if life.fate:
                raise Violation("Q2", f"{self._called(life)} is given out again after it was {life.fate}")
            if not is_repeated:
                if self._settings.is_fifo:
                    self._check_time(life, fact.at_ms)
                    self._check_order(life, fact.offsets[:place])
                life.count += 1
            if life.copy_count:
                raise Violation("Q5", f"{self._called(life)} is given out and a dead letter")
            life.attempt, life.until_ms, life.was_repeated = fact.attempt, fact.until_ms, is_repeated

    def _check_time(self, life: Life, at_ms: int) -> None:
        if at_ms < life.until_ms:
            raise Violation(
                "Q2", f"{self._called(life)} is given out {life.until_ms - at_ms} ms before its time is over"
            )
        if at_ms < life.ready_at_ms:
            raise Violation("D", f"{self._called(life)} is given out {life.ready_at_ms - at_ms} ms early")

    def _check_order(self, life: Life, given_before: tuple[int, ...]) -> None:
        there = self._groups[life.entry.group]
        for offset in there[: bisect_left(there, life.offset)]:
            if offset not in given_before:
                raise Violation("Q3", f"{self._called(life)} is given out before {offset} of its group")

    def _end(self, life: Life, fate: str) -> None:
        if not life.fate:
            life.fate = fate
            self._gone.add(life.offset)
            self._groups[life.entry.group].remove(life.offset)

    def _end_move(self, life: Life, *, is_moved: bool) -> None:
        if not is_moved:
            life.was_refused = True
            return
        if life.copy_count != 1:
            raise Violation("Q5", f"{self._called(life)} is settled as a dead letter, and is not there")
        self._end(life, "moved")

    def _rewind(self, offset: int) -> None:
        for life in self.lives.values():
            if life.offset < offset:
                self._end(life, "rewound past")
                continue
            if life.fate:
                insort(self._groups[life.entry.group], life.offset)
                self._sometimes.note("a rewind brought back what was gone")
            life.fate, life.attempt, life.count, life.until_ms = "", 0, 0, 0
            life.copy_count, life.was_refused = 0, False

    def _check_id(self, entry: Entry) -> None:
        key = f"{entry.deduplication_id}/{entry.group if self._settings.deduplicates_by_group else ''}"
        before_ms = self._ids.get(key)
        if before_ms is not None:
            if entry.appended_at_ms - before_ms + self._spread_ms < QUEUE_DEDUPLICATION_MS:
                raise Violation("Q4", f"{self.name}: id {key} is there twice")
            self._sometimes.note("an id was used again after five minutes")
        self._ids[key] = entry.appended_at_ms

    def _called(self, life: Life) -> str:
        return f"{self.name}/{life.offset}"
