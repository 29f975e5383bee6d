"""The durable state of one partition of a queue, and what each event does to it.

A message below the cursor is settled or has an entry; one above it may have either, or neither: then it was never received. What is visible is
not written anywhere: it is what has no deadline that lies ahead.

Invariants
    Below the floor everything is settled; the floor itself is not, unless it is the cursor.
    A message is settled or has an entry, never both.
    `apply` never fails, and looks at nothing but the state and the event: replaying the log rebuilds the state exactly.
"""

from msgspec import Struct
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
)


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


class KeptReceive(Struct, frozen=True):
    """By its id a receive is given the same messages again, as long as nobody has touched them."""

    offsets: tuple[int, ...]
    attempt: int
    at_ms: int
    until_ms: int


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
        """Id and epoch by which the last dead letters went."""
        self.sequences: dict[tuple[bytes, int], int] = {}
        """The producer's next sequence for each target."""
        self.deduplication = Deduplication()
        self.log_ms = 0
        self.wall_ms = 0
        """Both of the last thing written; 0: nothing was."""

    def apply_delta(self, delta: Delta) -> None:
        for event in delta.events:
            self.apply(event)
        self.log_ms, self.wall_ms = delta.log_ms, delta.wall_ms

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
            case Cleared(end_offset):
                self._clear(end_offset)
            case Rewound(offset):
                self.entries.clear()
                self.receives.clear()
                self.touched, self.settled = BitMap64(), BitMap64()
                self.floor = self.cursor = offset
            case MoveIntended():
                self._intend(event)
            case MoveEnded(is_moved):
                self._end_move(is_moved=is_moved)

    def is_settled(self, offset: int) -> bool:
        return offset < self.floor or offset in self.settled

    def is_moving(self, offset: int) -> bool:
        return self.move is not None and offset in self.move.offsets

    def next_sequence(self, producer: tuple[int, int], target: tuple[bytes, int]) -> int:
        return self.sequences.get(target, 0) if producer == self.producer else 0

    def _acquire(self, event: Acquired) -> None:
        self.attempt = max(self.attempt, event.attempt)
        first_at_ms = event.at_ms
        for offset, sent_at_ms in zip(event.offsets, event.sent_at_ms, strict=True):
            entry = self.entries.get(offset)
            if entry is None:
                entry = self.entries[offset] = Entry(sent_at_ms)
                self.touched.add(offset)
            if entry.attempt == event.attempt:  # the same receive again: it has been counted
                first_at_ms = entry.acquired_at_ms
            else:
                entry.attempt = event.attempt
                entry.receive_count += 1
                entry.acquired_at_ms = event.at_ms
                entry.first_received_at_ms = entry.first_received_at_ms or event.received_at_ms
            entry.until_ms, entry.is_acquired = event.until_ms, True
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
        for offset in offsets:
            if offset >= self.floor:
                self.settled.add(offset)
                if self.entries.pop(offset, None) is not None:
                    self.touched.discard(offset)
        self._lift_floor()

    def _pass(self, end_offset: int) -> None:
        if end_offset > self.cursor:
            self.settled.add_range(self.cursor, end_offset)
            self.settled.difference_update(self.touched)
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

    def _end_move(self, *, is_moved: bool) -> None:
        move, self.move = self.move, None
        if move is None:
            return
        if is_moved:
            self._settle(move.offsets)
        else:  # the target never saw these sequences, and expects them next
            self.sequences[move.topic_id, move.partition] = move.sequence

    def _lift_floor(self) -> None:
        floor = min(self.touched.min(), self.cursor) if self.touched else self.cursor
        if floor > self.floor:
            self.floor = floor
            self.settled.remove_range(0, floor)
