"""Finding what is asked for in a log: answers say what is to be read, and where.

Nothing here waits for the disk. A `Span` is read from the page cache on the event loop, or in the disk pool; what the
pool opened, loaded and verified comes back through `on_read`.
"""

from ropewalk.log.contents import Contents
from ropewalk.log.index import IndexRequest
from ropewalk.log.plan import Plan, Wanted, make_plan
from ropewalk.log.segment import Segment
from ropewalk.log.segments import Segments
from ropewalk.log.span import Span
from ropewalk.log.storage import Storage
from ropewalk.log.times import TimeSearch


class Reader:
    __slots__ = ("_contents", "_name", "_segments", "_storage")

    def __init__(self, storage: Storage, name: str, segments: Segments, contents: Contents) -> None:
        self._storage = storage
        self._name = name
        self._segments = segments
        self._contents = contents

    def locate(self, offset: int, *, limit_offset: int, bytes_max: int, interval_bytes: int) -> Span | None:
        """As `Log.locate`, for an offset that lies in the log and below the limit."""
        damaged, segments = self._contents.damaged, self._segments
        if len(damaged):
            damaged.refuse(offset, self._name)
        elif segments.tail.covers(offset):
            return self._locate_in_tail(offset, limit_offset, bytes_max)
        segment = segments.containing(offset)
        end_position: int | None = segment.size_bytes
        end_offset = segment.end_offset
        if limit_offset < end_offset:
            end_offset = limit_offset
            end_position = segments.tail.position_of(limit_offset) if segment is segments.active else None
        wanted = Wanted(offset, end_offset, end_position, segment.end_offset, segment.size_bytes, bytes_max)
        pending = segment.index.pending
        if len(pending) and offset - segment.base_offset >= pending.offsets[0]:
            return self._span(segment, wanted, make_plan(segment, damaged, wanted, None), None)
        loaded = self._storage.indexes.get(segment.index.path)
        plan = None if loaded is None else make_plan(segment, damaged, wanted, loaded)
        return self._span(segment, wanted, plan, _index_request(segment, interval_bytes))

    def on_read(self, span: Span) -> None:
        """`span.read` has answered in the disk pool: remember what it opened, loaded and verified."""
        segment = span.segment
        if segment not in self._segments:
            return
        if span.file is not None:
            self._storage.files.keep(segment.path, span.file)
        span.note_verified()
        loaded = span.loaded
        if loaded is None:
            return
        columns, request, is_rebuilt = loaded
        if request.flushed_bytes != segment.index.flushed_bytes:
            return  # more was flushed meanwhile; what was loaded lacks it
        if is_rebuilt and segment is not self._segments.active:
            self._storage.rewrite_index(segment.index, columns)
        self._storage.indexes.put(segment.index.path, columns)

    def search_times(self, *, start_offset: int, limit_offset: int, interval_bytes: int) -> TimeSearch:
        """A search of what is there by now, which blocks."""
        return TimeSearch(
            self._storage,
            self._name,
            tuple(
                (segment, _index_request(segment, interval_bytes)) for segment in tuple(self._segments.all)
            ),
            self._contents.epochs,
            start_offset=start_offset,
            limit_offset=limit_offset,
        )

    def _locate_in_tail(self, offset: int, limit_offset: int, bytes_max: int) -> Span | None:
        active = self._segments.active
        stretch = self._segments.tail.stretch(
            offset,
            limit_offset=limit_offset if limit_offset < active.end_offset else None,
            end_position=active.size_bytes,
            bytes_max=bytes_max,
        )
        if stretch is None:
            return None
        base_offset, position, end_position = stretch
        plan = Plan(position, base_offset, end_position, True, None, True)
        wanted = Wanted(offset, limit_offset, end_position, active.end_offset, active.size_bytes, bytes_max)
        return self._span(active, wanted, plan, None)

    def _span(
        self, segment: Segment, wanted: Wanted, plan: Plan | None, request: IndexRequest | None
    ) -> Span:
        contents = self._contents
        return Span(
            self._storage, self._name, segment, contents.damaged, contents.epochs, wanted, plan, request
        )


def _index_request(segment: Segment, interval_bytes: int) -> IndexRequest:
    pending = segment.index.pending
    return IndexRequest(
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        flushed_bytes=segment.index.flushed_bytes,
        end_position=pending.positions[0] if len(pending) else segment.size_bytes,
        interval_bytes=interval_bytes,
    )
