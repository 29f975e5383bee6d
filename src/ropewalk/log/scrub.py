"""The scrub: reading closed segments again to find bits that rotted, before a consumer does.

A pass goes through a log segment by segment, a budget of bytes at a time. Where it was is kept in memory only; a
restart begins a new pass.
"""

from collections.abc import Iterator

from msgspec import Struct

from ropewalk.base.ports import File
from ropewalk.log.damage import DamagedRange, is_bad_sector
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.scan import Damage, scan
from ropewalk.log.segment import Segment
from ropewalk.log.storage import Storage


class ScrubCursor(Struct, frozen=True, gc=False):
    """Everything before this place was verified in this pass."""

    base_offset: int = -1
    position: int = 0
    offset: int = 0

    def is_before_end_of(self, segment: Segment) -> bool:
        if segment.base_offset == self.base_offset:
            return self.position < segment.size_bytes
        return segment.base_offset > self.base_offset


class Scrub:
    """One step: taken on the event loop, run in the disk pool, handed back to `Maintenance.on_scrubbed`."""

    __slots__ = (
        "_bytes_max",
        "_epochs",
        "_generation",
        "_storage",
        "_verified",
        "cursor",
        "damaged",
        "scrubbed_bytes",
        "segment",
    )

    def __init__(
        self, storage: Storage, segment: Segment, epochs: LeaderEpochs, cursor: ScrubCursor, bytes_max: int
    ) -> None:
        if cursor.base_offset != segment.base_offset:
            cursor = ScrubCursor(segment.base_offset, 0, segment.base_offset)
        self._storage = storage
        self._epochs = epochs
        self._bytes_max = bytes_max
        self.segment = segment
        self.cursor = cursor
        """Before `run` where this step begins, afterwards where the next does."""

        self.damaged: list[DamagedRange] = []
        self.scrubbed_bytes = 0
        self._generation = 0
        self._verified: tuple[int, int] | None = None

    def run(self) -> None:
        """Verify at least one batch and at most about `bytes_max` bytes. A segment deleted meanwhile is done."""
        segment, start = self.segment, self.cursor
        try:
            file = self._storage.borrow_segment(segment)
        except FileNotFoundError:
            self.cursor = ScrubCursor(segment.base_offset, segment.size_bytes, segment.end_offset)
            return
        self._generation = segment.trust.withdraw(segment.size_bytes)
        reached = start.position, start.offset
        try:
            for reached in self._verified_up_to(file):
                if reached[0] - start.position >= self._bytes_max:
                    break
        except OSError as error:
            if not is_bad_sector(error):
                raise
            position, offset = reached
            # Where the next batch begins nobody can tell: the rest of the segment is given up.
            self.damaged.append(
                DamagedRange(offset, segment.end_offset, segment.base_offset, position, segment.size_bytes)
            )
            reached = segment.size_bytes, segment.end_offset
        self.cursor = ScrubCursor(segment.base_offset, *reached)
        self.scrubbed_bytes = self.cursor.position - start.position
        if not self.damaged:
            self._verified = (start.position, self.cursor.position)

    def _verified_up_to(self, file: File) -> Iterator[tuple[int, int]]:
        """Position and offset after each batch, and after each stretch that is none."""
        segment = self.segment
        for piece in scan(
            file,
            position=self.cursor.position,
            end_position=segment.size_bytes,
            offset=self.cursor.offset,
            end_offset=segment.end_offset,
            epochs=self._epochs,
        ):
            if isinstance(piece, Damage):
                offset = segment.end_offset if piece.end_offset is None else piece.end_offset
                self.damaged.append(
                    DamagedRange(
                        piece.start_offset,
                        offset,
                        segment.base_offset,
                        piece.start_position,
                        piece.end_position,
                    )
                )
                yield piece.end_position, offset
            else:
                yield piece.position + piece.header.size_bytes, piece.header.end_offset

    def note_verified(self) -> None:
        """Trust what turned out well."""
        if self._verified is not None:
            self.segment.trust.add(*self._verified, self._generation)
