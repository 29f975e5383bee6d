"""The durable state of one partition of a queue, and what each event does to it.

A message below the cursor is settled or has an entry; one above it may have either, or neither: then it was never received. What is visible is
not written anywhere: it is what has no deadline that lies ahead.

Invariants
    Below the floor everything is settled; the floor itself is not, unless it is the cursor.
    A message is settled or has an entry, never both.
    `apply` never fails, and looks at nothing but the state and the event: replaying the log rebuilds the state exactly.
"""

from bisect import bisect_left

from msgspec import Struct, structs
from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_DEDUPLICATION_MS, QUEUE_RECEIVE_IDS_MAX
from ropewalk.queues.deduplication import Deduplication
from ropewalk.queues.events import (
    Acquired,
    Cleared,
    Delta,
    Event,
    Hidden,
    MoveEnded,
    MoveIntended,
    Passed,
    Released,
    Rewound,
    Settled,
    TaskBegun,
    TaskEnded,
)
from ropewalk.queues.sent_times import SentTimes


class Entry(Struct, gc=False):
    """A message that was received at least once, or was about to be."""

    sent_at_ms: int
    receive_count: int = 0
    attempt: int = 0
    """The latest."""
    acquired_at_ms: int = 0
    until_ms: int = 0
    """Hidden before, visible from then on."""
    is_acquired: bool = False
    """Somebody has it, or had it until then; otherwise it only rests."""
    first_received_at_ms: int = 0
    was_repeated: bool = False
    """The latest attempt was given again under its receive's id: who did not take the one answer may have taken the other."""


class KeptReceive(Struct, frozen=True):
    """By its id a receive is given the same messages again, as long as nobody has touched them."""

    offsets: tuple[int, ...]
    attempt: int
    at_ms: int
    until_ms: int


class TaskShare(Struct, frozen=True):
    """A move task, as far as this partition goes."""

    task_id: bytes
    end_offset: int
    """What lies below is the task's."""
    moved_count: int = 0
    ending: str = ""
    """COMPLETED, CANCELLED or FAILED; empty: it goes on."""
    reason: str = ""


class QueueState:
    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self.cursor = floor
        self.settled = BitMap64()
        """Above the floor."""
        self.entries: dict[int, Entry] = {}
        self.touched = BitMap64()
        """The offsets of the entries, in order."""
        self.attempt = 0
        """The latest of any message."""
        self.receives: dict[bytes, KeptReceive] = {}
        """The oldest first."""
        self.move: MoveIntended | None = None
        """Under way: nobody knows yet whether the target has them."""
        self.producer = (-1, -1)
        """Id and epoch by which the last moved messages went; -1: the next ones need another."""
        self.sequences: dict[tuple[bytes, int], int] = {}
        """The producer's next sequence for each target."""
        self.task: TaskShare | None = None
        """The latest move task that came here, ended or not."""
        self.purged_at_ms = 0
        """Wall time, the last time; 0: never."""
        self.deduplication = Deduplication()
        self.sent_times = SentTimes()
        """As far as deltas tell."""
        self.log_ms = 0
        self.wall_ms = 0
        """Both of the last thing written; 0: nothing was."""

    def apply_delta(self, delta: Delta) -> None:
        for event in delta.events:
            self.apply(event)
        self.tell_time(delta)

    def tell_time(self, delta: Delta) -> None:
        """What a delta says besides its events."""
        self.log_ms, self.wall_ms = delta.log_ms, delta.wall_ms
        self.sent_times.note(delta.end_offset, delta.log_ms)

    def apply(self, event: Event) -> None:
        match event:
            case Acquired():
                self._acquire(event)
            case Settled(offsets):
                self._settle(offsets)
            case Passed(end_offset):
                self._pass(end_offset)
            case Hidden(offsets, until_ms, is_acquired):
                for offset in offsets:
                    if (entry := self.entries.get(offset)) is not None:
                        entry.until_ms, entry.is_acquired = until_ms, is_acquired
            case Released(offsets):
                for offset in offsets:
                    self._release(offset)
            case Cleared(end_offset, purged_at_ms):
                self._clear(end_offset)
                self.purged_at_ms = purged_at_ms or self.purged_at_ms
            case Rewound(offset):
                self.entries.clear()
                self.receives.clear()
                self.touched, self.settled = BitMap64(), BitMap64()
                self.floor = self.cursor = offset
            case MoveIntended():
                self._intend(event)
            case MoveEnded(moved_count):
                self._end_move(moved_count)
            case TaskBegun(task_id, end_offset):
                self.task = TaskShare(task_id, end_offset)
            case TaskEnded(ending, reason):
                if self.task is not None:
                    self.task = structs.replace(self.task, ending=ending, reason=reason)

    def is_settled(self, offset: int) -> bool:
        return offset < self.floor or offset in self.settled

    def is_moving(self, offset: int) -> bool:
        if self.move is None:
            return False
        offsets = self.move.offsets
        place = bisect_left(offsets, offset)
        return place < len(offsets) and offsets[place] == offset

    def next_sequence(self, producer: tuple[int, int], target: tuple[bytes, int]) -> int:
        return self.sequences.get(target, 0) if producer == self.producer else 0

    def _acquire(self, event: Acquired) -> None:
        self.attempt = max(self.attempt, event.attempt)
        first_at_ms = at_ms = event.at_ms
        attempt, until_ms, received_at_ms = event.attempt, event.until_ms, event.received_at_ms
        entries, touch = self.entries, self.touched.add
        for offset, sent_at_ms in zip(event.offsets, event.sent_at_ms, strict=True):
            entry = entries.get(offset)
            if entry is None:
                entries[offset] = Entry(sent_at_ms, 1, attempt, at_ms, until_ms, True, received_at_ms)
                touch(offset)
                continue
            if entry.attempt == attempt:  # the same receive again: it has been counted
                first_at_ms = entry.acquired_at_ms
                entry.was_repeated = True
            else:
                entry.attempt, entry.was_repeated = attempt, False
                entry.receive_count += 1
                entry.acquired_at_ms = at_ms
                entry.first_received_at_ms = entry.first_received_at_ms or received_at_ms
            entry.until_ms, entry.is_acquired = until_ms, True
        if event.request_id:
            self.receives.pop(event.request_id, None)
            self.receives[event.request_id] = KeptReceive(
                event.offsets, event.attempt, first_at_ms, event.until_ms
            )
            self._forget_receives(event.at_ms - QUEUE_DEDUPLICATION_MS)

    def _forget_receives(self, before_ms: int) -> None:
        while self.receives:
            first = next(iter(self.receives))
            if len(self.receives) <= QUEUE_RECEIVE_IDS_MAX and self.receives[first].at_ms >= before_ms:
                return
            del self.receives[first]

    def _settle(self, offsets: tuple[int, ...]) -> None:
        floor, settle, forget, untouch = (
            self.floor,
            self.settled.add,
            self.entries.pop,
            self.touched.discard,
        )
        for offset in offsets:
            if offset >= floor:
                settle(offset)
                if forget(offset, None) is not None:
                    untouch(offset)
        self._lift_floor()

    def _pass(self, end_offset: int) -> None:
        if end_offset > self.cursor:
            self.settled.add_range(self.cursor, end_offset)
            # Only what lies in between: all that was ever received and not deleted would be looked at otherwise, each time.
            passed = BitMap64()
            passed.add_range(self.cursor, end_offset)
            passed &= self.touched
            self.settled.difference_update(passed)
            self.cursor = end_offset
            self._lift_floor()

    def _release(self, offset: int) -> None:
        entry = self.entries.get(offset)
        if entry is None:
            return
        entry.receive_count -= 1
        entry.until_ms, entry.is_acquired = 0, False
        if entry.receive_count == 0:
            entry.first_received_at_ms = 0

    def _clear(self, end_offset: int) -> None:
        for offset in self.touched:
            if offset >= end_offset:
                break
            del self.entries[offset]
        self.touched.remove_range(0, end_offset)
        self.cursor = max(self.cursor, end_offset)
        self._lift_floor()

    def _intend(self, event: MoveIntended) -> None:
        producer = (event.producer_id, event.producer_epoch)
        if producer != self.producer:
            self.producer = producer
            self.sequences = {}
        self.sequences[event.topic_id, event.partition] = (event.sequence + len(event.offsets)) % 2**31
        self.move = event

    def _end_move(self, moved_count: int) -> None:
        move, self.move = self.move, None
        if move is None:
            return
        self._settle(move.offsets[:moved_count])
        if moved_count < len(move.offsets):  # a leader of before may still bring them under these sequences
            self.producer = (-1, -1)
            self.sequences = {}
        if self.task is not None and self.task.task_id == move.task_id:
            self.task = structs.replace(self.task, moved_count=self.task.moved_count + moved_count)

    def _lift_floor(self) -> None:
        floor = min(self.touched.min(), self.cursor) if self.touched else self.cursor
        if floor > self.floor:
            self.floor = floor
            self.settled.remove_range(0, floor)
