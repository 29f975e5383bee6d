"""The segments of one log, in the order of their offsets. The last one is active: it takes what is appended."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ropewalk.log.segment import Segment
from ropewalk.log.tail import RecentBatches


class Segments:
    """There is always an active one, and none begins before the one in front of it ends."""

    __slots__ = ("_base_offsets", "active", "all", "tail")

    def __init__(self, segments: list[Segment]) -> None:
        self.all = segments
        self.active = segments[-1]
        self.tail = RecentBatches()
        """The latest batches of the active segment."""

        self._base_offsets = [segment.base_offset for segment in segments]

    def __len__(self) -> int:
        return len(self.all)

    def __contains__(self, segment: Segment) -> bool:
        return segment in self.all

    @property
    def closed(self) -> list[Segment]:
        return self.all[:-1]

    @property
    def base_offset(self) -> int:
        """Of the first one: nothing below it is in a file any more."""
        return self._base_offsets[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.all)

    def containing(self, offset: int) -> Segment:
        """The one that an offset within the log lies in."""
        return self.all[bisect_right(self._base_offsets, offset) - 1]

    def above(self, offset: int) -> Iterator[Segment]:
        """Those that end above `offset`, the active one first."""
        for segment in reversed(self.all):
            if segment.end_offset <= offset:
                return
            yield segment

    def begin(self, segment: Segment) -> None:
        """Close the active one; `segment`, which begins where it ends, is active from here on."""
        self.all.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment
        self.tail = RecentBatches()

    def remove_first(self, count: int) -> list[Segment]:
        removed = self.all[:count]
        del self.all[:count], self._base_offsets[:count]
        return removed

    def has_in_a_row(self, segments: Sequence[Segment]) -> bool:
        at = self._index_of(segments[0])
        return at >= 0 and self.all[at : at + len(segments)] == segments

    def replace(self, replaced: Sequence[Segment], segment: Segment) -> None:
        """Put one in the place of several, which are here in a row and closed."""
        at = self._index_of(replaced[0])
        self.all[at : at + len(replaced)] = [segment]
        self._base_offsets[at : at + len(replaced)] = [segment.base_offset]

    def _index_of(self, segment: Segment) -> int:
        """Where a segment that begins at that offset would be; -1 if all begin later."""
        return bisect_right(self._base_offsets, segment.base_offset) - 1
