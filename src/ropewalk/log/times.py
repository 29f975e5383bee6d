"""Look-ups by time, exact to the record. They block.

Behaviour worth knowing
    The answer to "from when on" is the first record in offset order whose timestamp is not below the wanted one, as
    Kafka's consumers expect; timestamps need not rise.
    A batch's header may claim a larger timestamp than any of its records has. The records decide.
    A compacted batch has offsets without records; no time leads to them.
    What is damaged might hold the answer, so a search that meets damage raises `StorageFailed`.
"""

from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.base.ports import File
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.index import IndexRequest
from ropewalk.log.scan import Damage, Found, scan
from ropewalk.log.segment import TIMESTAMP_NONE, Segment
from ropewalk.log.storage import Storage
from ropewalk.records.batch import BatchHeader
from ropewalk.records.record import iterate_records


class TimedOffset(Struct, frozen=True, gc=False):
    offset: Offset
    timestamp: int
    leader_epoch: LeaderEpoch


class TimeSearch:
    """The log as it stood at one moment, between its start and a limit."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        segments: tuple[tuple[Segment, IndexRequest], ...],
        epochs: LeaderEpochs,
        *,
        start_offset: int,
        limit_offset: int,
    ) -> None:
        self._storage = storage
        self._name = name
        self._segments = segments
        self._epochs = epochs
        self._start_offset = start_offset
        self._limit_offset = limit_offset

    def first_at_or_after(self, timestamp: int) -> TimedOffset | None:
        for segment, request in self._segments:
            if segment.base_offset >= self._limit_offset:
                return None
            if segment.end_offset <= self._start_offset or segment.max_timestamp < timestamp:
                continue
            found = self._first_in(segment, request, timestamp)
            if found is not None:
                return found
        return None

    def largest(self) -> TimedOffset | None:
        largest = TIMESTAMP_NONE
        for segment, _ in self._segments:
            largest = max(largest, self._largest_in(segment))
        return self.first_at_or_after(largest) if largest != TIMESTAMP_NONE else None

    def _first_in(self, segment: Segment, request: IndexRequest, timestamp: int) -> TimedOffset | None:
        file = self._open(segment)
        if file is None:
            return None
        position, offset = self._place_before(segment, request, timestamp, file)
        for piece in self._scan(file, segment, position, offset):
            header = piece.header
            if header.base_offset >= self._limit_offset:
                return None
            if header.max_timestamp < timestamp or header.end_offset <= self._start_offset:
                continue
            for record_offset, record_timestamp in _stamps(file, piece, self._start_offset):
                if record_offset >= self._limit_offset:
                    return None
                if record_timestamp >= timestamp:
                    epoch = self._epochs.at(record_offset)
                    return TimedOffset(Offset(record_offset), record_timestamp, LeaderEpoch(epoch))
        return None

    def _largest_in(self, segment: Segment) -> int:
        if segment.end_offset <= self._start_offset or segment.base_offset >= self._limit_offset:
            return TIMESTAMP_NONE
        if self._start_offset <= segment.base_offset and segment.end_offset <= self._limit_offset:
            return segment.max_timestamp
        file = self._open(segment)
        largest = TIMESTAMP_NONE
        if file is None:
            return largest
        for piece in self._scan(file, segment, 0, segment.base_offset):
            if piece.header.base_offset >= self._limit_offset:
                break
            if self._start_offset <= piece.header.base_offset:
                largest = max(largest, piece.header.max_timestamp)
            elif self._start_offset < piece.header.end_offset:
                stamps = _stamps(file, piece, self._start_offset)
                largest = max(largest, max((timestamp for _, timestamp in stamps), default=TIMESTAMP_NONE))
        return largest

    def _place_before(
        self, segment: Segment, request: IndexRequest, timestamp: int, file: File
    ) -> tuple[int, int]:
        """Position and offset of an indexed batch at or before the first that reaches `timestamp`."""
        pending = segment.index.pending
        columns = self._storage.indexes.peek(segment.index.path)
        if columns is None:
            columns, _ = request.load(self._storage.borrow_index(segment), file)
        for entries in (pending, columns):
            at = bisect_left(entries.timestamps, timestamp, 0, len(entries)) - 1
            if at >= 0:
                position, offset = entries.positions[at], segment.base_offset + entries.offsets[at]
                if self._holds(file, segment, position, offset):
                    return position, offset
        return 0, segment.base_offset

    def _holds(self, file: File, segment: Segment, position: int, offset: int) -> bool:
        """Whether the log agrees with the index about one batch."""
        first = next(scan(file, position=position, end_position=segment.size_bytes, offset=offset), None)
        return isinstance(first, Found) and first.header.base_offset == offset

    def _scan(self, file: File, segment: Segment, position: int, offset: int) -> Iterator[Found]:
        segment.trust.withdraw(
            segment.size_bytes
        )  # what this brings into the page cache is not noted as verified
        for piece in scan(
            file, position=position, end_position=segment.size_bytes, offset=offset, epochs=self._epochs
        ):
            if isinstance(piece, Damage):
                if piece.end_offset is not None and piece.end_offset <= self._start_offset:
                    continue
                if piece.start_offset >= self._limit_offset:
                    return
                raise StorageFailed(
                    f"{self._name}: damage at offset {piece.start_offset} keeps a time from being looked up"
                )
            yield piece

    def _open(self, segment: Segment) -> File | None:
        """None if the segment was deleted meanwhile."""
        try:
            file = self._storage.borrow_segment(segment)
        except FileNotFoundError:
            return None
        segment.trust.withdraw(
            segment.size_bytes
        )  # what a search brings into the page cache is not all verified
        return file


def _stamps(file: File, found: Found, start_offset: int) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of the records of a batch from `start_offset` on; the first of those that share one time.

    One by one, because a header may claim far more records than anybody would list.
    """
    header: BatchHeader = found.header
    if header.uses_append_time and header.record_count == header.last_offset_delta + 1:
        yield max(header.base_offset, start_offset), header.max_timestamp
        return
    for record in iterate_records(file.read(found.position, header.size_bytes)):
        if record.offset >= start_offset:
            yield record.offset, record.timestamp
