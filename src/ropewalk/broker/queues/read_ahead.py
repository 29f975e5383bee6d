"""Records of a queue's log that are at hand: those that were just written and not told to the core, and those that may be given out soon.

Nothing here is needed: what is not at hand is read from the log again.

Invariants
    No more than `QUEUE_READ_AHEAD_BYTES_MAX` for a partition, but for one stretch that was read last, and within the node's room.
"""

from collections import deque
from collections.abc import Sequence

from ropewalk.base.limits import (
    QUEUE_READ_AHEAD_BYTES_MAX,
    QUEUE_READ_AHEAD_NODE_BYTES_MAX,
    QUEUE_READ_BYTES,
)
from ropewalk.broker.queues.reading import Passage
from ropewalk.records.packing import Headers
from ropewalk.records.record import Record

_RECORD_OVERHEAD_BYTES = 200
"""Of a record as an object, with its key, value and headers."""


class ReadAheadRoom:
    """What all partitions of a node hold together. Where it is full, those give way that were used longest ago: nobody may ever ask for what they hold."""

    __slots__ = ("_holders", "used_bytes")

    def __init__(self) -> None:
        self._holders: dict[ReadAhead, None] = {}
        """The one that was used longest ago first."""
        self.used_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.used_bytes >= QUEUE_READ_AHEAD_NODE_BYTES_MAX

    def on_used(self, holder: "ReadAhead", count_bytes: int) -> None:
        """It holds so much more, or less."""
        self.used_bytes += count_bytes
        self._holders.pop(holder, None)
        if holder.used_bytes:
            self._holders[holder] = None

    def make_for(self, holder: "ReadAhead") -> None:
        """As far as others have something to give."""
        while self.is_full:
            first = next(iter(self._holders))
            if first is holder:
                if len(self._holders) == 1:
                    return
                self.on_used(holder, 0)
            else:
                first.clear()


class ReadAhead:
    def __init__(self, room: ReadAheadRoom) -> None:
        self._room = room
        self._untold: deque[Passage] = deque()
        """In order, with gaps where others have written or there was no room."""
        self._told: dict[int, Record] = {}
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @property
    def has_room(self) -> bool:
        """For another stretch that is read."""
        return self._used_bytes + QUEUE_READ_BYTES <= QUEUE_READ_AHEAD_BYTES_MAX and not self._room.is_full

    def note_written(self, start_offset: int, end_offset: int, records: tuple[Record, ...]) -> None:
        """This leader has appended these, or with none of them something that is no message."""
        if not records and self._untold and self._untold[-1].end_offset == start_offset:
            last = self._untold.pop()
            self._untold.append(Passage(last.start_offset, end_offset, last.records))
            return
        size_bytes = _size_of(records)
        self._room.make_for(self)
        if self._used_bytes + size_bytes > QUEUE_READ_AHEAD_BYTES_MAX or self._room.is_full:
            return
        self._use(size_bytes)
        self._untold.append(Passage(start_offset, end_offset, records))

    def note_read(self, passage: Passage) -> None:
        """Read from the log, to be told next."""
        size_bytes = _size_of(passage.records)
        self._room.make_for(self)
        while self._told and (
            self._used_bytes + size_bytes > QUEUE_READ_AHEAD_BYTES_MAX or self._room.is_full
        ):
            self.take([next(iter(self._told))])
        self._use(size_bytes)
        self._untold.appendleft(passage)

    def next_passage(self, offset: int, *, limit_offset: int) -> Passage | None:
        """The stretch with `offset` that was not told yet, if it is at hand and ends within the limit. It counts as told then."""
        while self._untold and self._untold[0].end_offset <= offset:
            self._drop(self._untold.popleft())
        if not self._untold or not self._untold[0].start_offset <= offset:
            return None
        if self._untold[0].end_offset > limit_offset:
            return None
        passage = self._untold.popleft()
        self._use(0)
        told = self._told
        for record in passage.records:
            if record.offset in told:  # after a rewind the same is told again
                self.take([record.offset])
            told[record.offset] = record
        return passage

    def gap_end(self, offset: int) -> int | None:
        """From where on something is at hand again; None: nowhere."""
        return (
            self._untold[0].start_offset if self._untold and self._untold[0].start_offset > offset else None
        )

    def has(self, offsets: Sequence[int]) -> bool:
        """Whether all of them are at hand."""
        return all(map(self._told.__contains__, offsets))

    def take(self, offsets: Sequence[int]) -> list[Record]:
        """Those that are at hand, to be given out: they are not kept."""
        told = self._told
        records = [told.pop(offset) for offset in offsets if offset in told]
        self._use(-_size_of(records))
        return records

    def forget_below(self, floor: int) -> None:
        self.take([offset for offset in self._told if offset < floor])

    def untold_records(self) -> list[Record]:
        return [record for passage in self._untold for record in passage.records]

    def clear(self) -> None:
        self._untold.clear()
        self._told.clear()
        self._use(-self._used_bytes)

    def _drop(self, passage: Passage) -> None:
        self._use(-_size_of(passage.records))

    def _use(self, count_bytes: int) -> None:
        self._used_bytes += count_bytes
        self._room.on_used(self, count_bytes)


def _size_of(records: Sequence[Record]) -> int:
    size_bytes = _RECORD_OVERHEAD_BYTES * len(records)
    headers: Headers = ()
    headers_bytes = 0
    for record in records:
        if record.headers is not headers:  # those of one sender are often the very same
            headers = record.headers
            headers_bytes = sum([len(name) + len(value or b"") for name, value in headers])
        size_bytes += len(record.value or b"") + headers_bytes
        if record.key:
            size_bytes += len(record.key)
    return size_bytes
