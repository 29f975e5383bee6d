"""The latest batches of a log, with their positions: consumers at the tail are found there without an index.

Positions are exact and come from this process, so that such a read needs neither a walk nor a check.
"""

from array import array
from bisect import bisect_left, bisect_right

from ropewalk.base.limits import TAIL_BATCHES_MAX


class RecentBatches:
    """Offsets and positions of the last batches of the active segment, without gaps up to its end."""

    __slots__ = ("_offsets", "_positions")

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")

    def add(self, base_offset: int, position: int) -> None:
        if len(self._offsets) >= TAIL_BATCHES_MAX:
            del self._offsets[: TAIL_BATCHES_MAX // 2], self._positions[: TAIL_BATCHES_MAX // 2]
        self._offsets.append(base_offset)
        self._positions.append(position)

    def covers(self, offset: int) -> bool:
        return bool(self._offsets) and offset >= self._offsets[0]

    def position_of(self, base_offset: int) -> int | None:
        """Where the batch that begins at `base_offset` stands; None if it is not known."""
        at = bisect_left(self._offsets, base_offset)
        if at < len(self._offsets) and self._offsets[at] == base_offset:
            return self._positions[at]
        return None

    def stretch(
        self, offset: int, *, limit_offset: int | None, end_position: int, bytes_max: int
    ) -> tuple[int, int, int] | None:
        """Base offset, position and end position of the batches from the one that contains `offset` on.

        They end before the batch in which `limit_offset` lies, if it is given, and within `bytes_max`, one batch
        excepted. None if the limit leaves nothing. `offset` must be covered; the segment ends at `end_position`.
        """
        offsets, positions = self._offsets, self._positions
        first = bisect_right(offsets, offset) - 1
        position = positions[first]
        if limit_offset is not None:
            limit = bisect_right(offsets, limit_offset) - 1
            if limit <= first:
                return None
            end_position = positions[limit]
        if end_position - position > bytes_max:
            last = max(bisect_right(positions, position + bytes_max) - 1, first + 1)
            if last < len(positions):
                end_position = min(end_position, positions[last])
        return offsets[first], position, end_position
