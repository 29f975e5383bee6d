"""Judges a history: everything in it that a node must never do, in words.

    inconsistent    two values at one offset
    corrupt         content that nobody wrote
    invented        a value that nobody sent to this partition, or whose sending was definitely refused
    lost            acknowledged, and not where the acknowledgement said
    vanished        given to a consumer, and not there any more
    duplicate       an idempotent producer's value at two offsets, or a plain one's more often than sent
    reordered       sent after an acknowledgement and placed before it; or out of an idempotent producer's order
    skipped         a fetch that left out readable records, or had a hole between them
    unseen          a fetch or a question for the end that did not know what was known before it was asked
    unreadable      refused though nothing was damaged
    deleted         the start of the log moved past what anybody asked to delete and past what had expired
    compacted       the last record of a key is gone, or a tombstone before its time
    resurrected     records that were deleted, for good as the node said, and are there again; a start that moved back
    forgotten       a topic, or a producer's place in a partition, that the node had acknowledged
    survivor        a node that went on after a failed sync
    unstartable     a node that did not start, though nothing was in its way
    ended           a node that ended itself on a disk that had not failed

It is pure: a history in, violations out, and it knows nothing of how a node works. What a topic promises is said by
the event of its creation; without one it promises all. A topic that does not survive power cuts is judged anew after
each of them, and when a process has begun after, or while, the disk did not take what the page cache had.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.history import (
    CORRUPT,
    Acknowledged,
    BoundsSeen,
    ClockJumped,
    ClocksDrift,
    Created,
    Deleted,
    DeletionAsked,
    EndedItself,
    Event,
    Failed,
    Fetched,
    FinalRead,
    Forgotten,
    LossAdmitted,
    PowerFailed,
    Promise,
    Refused,
    Returned,
    Rotted,
    Sent,
    StartFailed,
    SurvivedFailedSync,
    WriteBackFailed,
)
from ropewalk.sim.judges.keys import Keys

HISTORY_END: Final = 1 << 62


class Violation(Struct, frozen=True):
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def check(history: Sequence[Event], note: Callable[[str], None] = lambda _: None) -> list[Violation]:
    """Every violation, in the order in which it came to light; `note` hears of rare things that were in order."""
    found: list[Violation] = []
    promises: dict[str, Promise] = {}
    jumps: list[int] = []
    drift = ClocksDrift(since_ms=0, fraction=0.0)
    by_partition: dict[TopicPartition, _Partition] = {}
    sends: dict[int, Sent] = {}
    for index, event in enumerate(history):
        match event:
            case Sent():
                sends[event.send] = event
                partition = event.partition
            case Acknowledged() | Failed():
                partition = sends[event.send].partition
            case Created(topic, promise):
                promises[topic] = promise
                continue
            case ClockJumped():
                jumps.append(index)
                continue
            case ClocksDrift():
                drift = event
                continue
            case PowerFailed() | WriteBackFailed():
                for known in by_partition.values():
                    known.on_power_failed(index)
                continue
            case SurvivedFailedSync(node):
                found.append(Violation("survivor", f"{node} went on after a failed sync"))
                continue
            case StartFailed(node, reason):
                found.append(Violation("unstartable", f"{node}: {reason}"))
                continue
            case EndedItself(node, reason):
                found.append(Violation("ended", f"{node}: {reason}"))
                continue
            case _:
                partition = event.partition
        state = by_partition.get(partition)
        if state is None:
            promise = promises.get(partition.topic, Promise())
            state = by_partition[partition] = _Partition(partition, promise, jumps, drift, found, note)
        state.on_event(index, event)
    for state in by_partition.values():
        state.conclude(len(history))
    return found


class _Partition:
    """What is known of one partition, event by event."""

    def __init__(
        self,
        name: TopicPartition,
        promise: Promise,
        jumps: Sequence[int],
        drift: ClocksDrift,
        found: list[Violation],
        note: Callable[[str], None],
    ) -> None:
        self._name = name
        self._promise = promise
        self._jumps = jumps
        self._drift = drift
        self._found = found
        self._note = note
        self._keys = Keys(promise, jumps, self._report, note) if promise.is_compacted else None
        self._sends: dict[int, tuple[int, Sent]] = {}
        self._outcomes: dict[int, Acknowledged | Failed] = {}
        self._value_at: dict[int, int] = {}
        self._offset_of: dict[int, int] = {}
        self._acknowledged: dict[int, int] = {}
        self._acknowledged_ends: list[tuple[int, int]] = []
        self._given: dict[int, int] = {}
        self._known_ends: list[tuple[int, int]] = [(-1, 0)]
        self._deletable_before = 0
        self._deletions: list[tuple[int, int]] = []
        self._starts: list[tuple[int, int]] = []
        self._timestamp_ms: dict[int, int] = {}
        self._rotten: list[Rotted] = []
        self._final: FinalRead | None = None
        self._sent_counts: Counter[int] = Counter()
        self._idempotent: set[int] = set()
        self._power_failed_at = -1
        """Since when a topic that does not survive power cuts has promised anything."""

    def on_power_failed(self, index: int) -> None:
        """Forget everything but what was sent, unless the topic promises to remember."""
        if not self._promise.survives_power_cuts:
            self._begin_anew(index)

    def _begin_anew(self, index: int) -> None:
        self._power_failed_at = index
        self._value_at.clear()
        self._offset_of.clear()
        self._acknowledged.clear()
        self._given.clear()
        self._acknowledged_ends.clear()
        self._known_ends = [(-1, 0)]
        self._starts.clear()

    def on_event(self, index: int, event: Event) -> None:
        if self._is_from_before_power_cut(event):
            return
        match event:
            case Sent():
                self._sends[event.send] = (index, event)
                self._sent_counts.update(event.values)
                self._timestamp_ms.update(dict.fromkeys(event.values, event.timestamp_ms))
                if self._keys is not None:
                    self._keys.on_sent(index, event)
                if event.is_idempotent:
                    self._idempotent.update(event.values)
            case Acknowledged(send, base_offset):
                self._outcomes[send] = event
                if self._keys is not None:
                    self._keys.on_outcome(event)
                values = self._sends[send][1].values
                for offset, value in enumerate(values, base_offset):
                    self._sight(offset, value, "acknowledged")
                    self._acknowledged[offset] = value
                self._acknowledged_ends.append((index, base_offset + len(values)))
                self._learn_end(index, base_offset + len(values))
            case Failed():
                self._outcomes[event.send] = event
                if self._keys is not None:
                    self._keys.on_outcome(event)
            case Fetched():
                self._on_fetched(index, event)
            case Refused():
                self._on_refused(event)
            case BoundsSeen():
                self._on_bounds(index, event)
            case DeletionAsked(_, before_offset):
                self._deletable_before = max(self._deletable_before, before_offset)
            case Deleted(_, before_offset):
                self._deletions.append((index, before_offset))
            case Rotted():
                self._rotten.append(event)
            case Forgotten(_, what):
                # The batches that a producer's place is known from may be among the damaged, or among the lost.
                if not self._rotten and self._power_failed_at < 0:
                    self._report("forgotten", what)
            case LossAdmitted():
                self._begin_anew(index)
            case Returned(_, what):
                self._report("resurrected", what)
            case FinalRead():
                self._final = event
            case (
                Created()
                | ClockJumped()
                | ClocksDrift()
                | PowerFailed()
                | WriteBackFailed()
                | SurvivedFailedSync()
                | StartFailed()
                | EndedItself()
            ):
                raise AssertionError("belongs to no partition")

    def conclude(self, index: int) -> None:
        if self._final is not None:
            self._judge_final(index, self._final)
        self._judge_refused_sends()
        if self._power_failed_at < 0:
            self._judge_order()

    def _is_from_before_power_cut(self, event: Event) -> bool:
        """Whether the node said it before the last power cut that it did not have to survive."""
        match event:
            case Acknowledged(send):
                return self._sends[send][0] < self._power_failed_at
            case Fetched(began) | Refused(began) | BoundsSeen(began):
                return began < self._power_failed_at
            case _:
                return False

    def _on_fetched(self, index: int, event: Fetched) -> None:
        self._judge_contiguous(event.records, event.covered, f"{event.consumer} at {event.offset}")
        for offset, value in event.records:
            self._sight(offset, value, f"given to {event.consumer}")
            self._given[offset] = value
        if self._keys is not None:
            self._keys.judge_fetched(index, event)
        if event.covered:
            first, end = event.covered[0][0], event.covered[-1][1]
            if first > event.offset or end <= event.offset:
                self._report(
                    "skipped", f"{event.consumer} asked for {event.offset} and got {first} to {end - 1}"
                )
            self._learn_end(index, end)
        elif event.offset < self._end_known_before(event.began):
            self._report(
                "unseen",
                f"{event.consumer} got nothing at {event.offset}, "
                f"where {self._end_known_before(event.began)} was the end before it asked",
            )

    def _on_refused(self, event: Refused) -> None:
        offset = event.offset
        if event.is_storage:
            if offset < self._end_known_before(event.began) and not self._is_rotten(offset):
                self._report("unreadable", f"{event.consumer} was refused {offset} for the storage's sake")
        elif self._start_max(event.at_ms) <= offset <= self._end_known_before(event.began):
            self._report("unreadable", f"{event.consumer} was told that {offset} is out of range")

    def _on_bounds(self, index: int, event: BoundsSeen) -> None:
        if event.end_offset is not None:
            known = self._end_known_before(event.began)
            if event.end_offset < known:
                self._report("unseen", f"the end was said to be {event.end_offset} when {known} was known")
            self._learn_end(index, event.end_offset)
        if event.start_offset is not None:
            self._judge_start(event.start_offset, event.began, event.at_ms)
            self._starts.append((index, event.start_offset))

    def _start_max(self, at_ms: int) -> int:
        """Where the log may begin by then: where somebody asked it to, or past what has expired."""
        if self._promise.retention_ms is None:
            return self._deletable_before
        if self._jumps:
            return HISTORY_END
        ahead_ms = self._drift.fraction * (at_ms - self._drift.since_ms)
        oldest_ms = at_ms + ahead_ms - self._promise.retention_ms
        young = (offset for offset, value in self._value_at.items() if self._timestamp_ms[value] > oldest_ms)
        return max(self._deletable_before, min(young, default=HISTORY_END))

    def _judge_start(self, start_offset: int, began: int, at_ms: int) -> None:
        deleted = max((before for index, before in self._deletions if index < began), default=0)
        if start_offset < deleted:
            self._report("resurrected", f"the log starts at {start_offset}, and {deleted} was deleted up to")
        former = max((start for index, start in self._starts if index < began), default=0)
        if start_offset < former:
            self._report("resurrected", f"the log starts at {start_offset}, and started at {former}")
        start_max = self._start_max(at_ms)
        if start_offset > start_max:
            self._report("deleted", f"the log starts at {start_offset}, and {start_max} was owed")
        elif start_offset > self._deletable_before:
            self._note("records expired")

    def _judge_contiguous(
        self, records: Iterable[tuple[int, int]], covered: Iterable[tuple[int, int]], who: str
    ) -> None:
        for (_, end), (start, _) in pairwise(covered):
            self._report("skipped", f"{who} got {start} right after {end - 1}")
        for (before, _), (after, _) in pairwise(records):
            if after <= before or (after != before + 1 and self._keys is None):
                self._report("skipped", f"{who} got {after} right after {before}")

    def _judge_final(self, index: int, final: FinalRead) -> None:
        self._judge_start(final.start_offset, began=HISTORY_END, at_ms=final.at_ms)
        held = dict(final.records)
        refused = set(final.refused_offsets)
        for offset, value in final.records:
            self._sight(offset, value, "found at the end")
        for offset in sorted(refused):
            if not self._is_rotten(offset):
                self._report("unreadable", f"{offset} is refused at the end and was never damaged")
        covered = {offset for start, end in final.covered for offset in range(start, end)} | refused
        for offset in range(final.start_offset, final.end_offset):
            if offset not in covered or (self._keys is None and offset not in held and offset not in refused):
                self._report("skipped", f"{offset} is missing at the end")
        floor = max(final.start_offset, self._deletable_before)
        self._judge_duplicates(final)
        if self._keys is not None:
            self._keys.judge_final(index, final, floor=floor)
            return
        for kind, promised in (("lost", self._acknowledged), ("vanished", self._given)):
            for offset, value in sorted(promised.items()):
                if offset >= floor and offset not in refused and held.get(offset) != value:
                    self._report(
                        kind, f"value {value} at offset {offset}; there is {held.get(offset, 'nothing')}"
                    )

    def _judge_duplicates(self, final: FinalRead) -> None:
        for value, count in Counter(value for _, value in final.records).items():
            allowed = 1 if value in self._idempotent else self._sent_counts[value]
            if count > max(1, allowed):
                self._report("duplicate", f"value {value} stands {count} times, {allowed} allowed")

    def _judge_refused_sends(self) -> None:
        """A value all of whose sendings were definitely refused must not exist."""
        possible: set[int] = set()
        refused: set[int] = set()
        for send, (_, sent) in self._sends.items():
            outcome = self._outcomes.get(send)
            if isinstance(outcome, Failed) and outcome.is_definite:
                refused.update(sent.values)
            else:
                possible.update(sent.values)
        for value in sorted(refused - possible):
            if value in self._offset_of:
                self._report("invented", f"value {value} stands at {self._offset_of[value]} and was refused")

    def _judge_order(self) -> None:
        """What was acknowledged before another was sent stands before it, and each producer's order is kept.

        A plain producer's order is that of one connection. An idempotent one's is that of its values, over
        all connections; what it sent again counts from the first time.
        """
        first_sent: dict[int, int] = {}
        lanes: dict[tuple[str, int], list[int]] = defaultdict(list)
        acknowledged_ends = iter(self._acknowledged_ends)
        upcoming = next(acknowledged_ends, None)
        floor = 0
        for send, (sent_index, sent) in self._sends.items():
            while upcoming is not None and upcoming[0] < sent_index:
                floor = max(floor, upcoming[1])
                upcoming = next(acknowledged_ends, None)
            value = sent.values[0]
            is_repeated = value in first_sent
            floor_then = first_sent.setdefault(value, floor)
            if not sent.is_idempotent:
                floor_then = floor
            outcome = self._outcomes.get(send)
            if isinstance(outcome, Acknowledged) and outcome.base_offset < floor_then:
                self._report(
                    "reordered", f"value {value} came to {outcome.base_offset}, after {floor_then} was taken"
                )
            if sent.is_idempotent:
                if not is_repeated:
                    lanes[sent.producer, -1].append(value)
            elif self._sent_counts[value] == 1:
                lanes[sent.producer, sent.connection].append(value)
        for (producer, _), values in lanes.items():
            self._judge_lane(producer, [value for value in values if value in self._offset_of])

    def _judge_lane(self, producer: str, values: list[int]) -> None:
        for value, later in pairwise(values):
            if self._offset_of[value] >= self._offset_of[later]:
                self._report(
                    "reordered",
                    f"{producer} sent {value}, which stands at {self._offset_of[value]}, "
                    f"before {later}, which stands at {self._offset_of[later]}",
                )

    def _sight(self, offset: int, value: int, how: str) -> None:
        if value == CORRUPT:
            self._report("corrupt", f"offset {offset}, {how}, is not what anybody wrote")
            return
        if not self._sent_counts[value]:
            self._report("invented", f"value {value} at {offset}, {how}, was never sent here")
        former = self._value_at.setdefault(offset, value)
        if former != value:
            self._report("inconsistent", f"offset {offset} holds {value}, {how}, and held {former}")
        former_offset = self._offset_of.setdefault(value, offset)
        if former_offset != offset and self._sent_counts[value] == 1:
            self._report("duplicate", f"value {value} stands at {offset}, {how}, and at {former_offset}")
        if self._keys is not None:
            self._keys.on_sighted(offset, value)

    def _learn_end(self, index: int, end_offset: int) -> None:
        if end_offset > self._known_ends[-1][1]:
            self._known_ends.append((index, end_offset))

    def _end_known_before(self, index: int) -> int:
        for known_index, end_offset in reversed(self._known_ends):
            if known_index < index:
                return end_offset
        return 0

    def _is_rotten(self, offset: int) -> bool:
        return any(rotten.start_offset <= offset < rotten.end_offset for rotten in self._rotten)

    def _report(self, kind: str, text: str) -> None:
        self._found.append(Violation(kind, f"{self._name}: {text}"))
