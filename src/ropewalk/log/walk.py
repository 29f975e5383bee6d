"""Reading a closed segment batch by batch, whole and verified, up to the first that is not.

What a reader could get wrong
    The bytes that are answered are those that were verified; they are not read again.
"""

from collections.abc import Iterator
from typing import Final

from ropewalk.base.errors import CorruptBatch, UnsupportedFormat
from ropewalk.base.ports import File
from ropewalk.log.damage import DamagedRange, is_bad_sector
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.scan import Damage, scan
from ropewalk.log.segment import Segment
from ropewalk.records.batch import HEADER_BYTES, BatchHeader, decode_header, verify_crc

_WINDOW_BYTES: Final = 1 << 18


class Unreadable(Exception):
    """A segment holds something that is not the batch that should be there."""

    def __init__(self, damaged: DamagedRange | None) -> None:
        super().__init__(damaged)
        self.damaged = damaged
        """None if it was there after all when it was read again."""


def walk(segment: Segment, file: File, epochs: LeaderEpochs) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a segment, in order. Raises `Unreadable` at the first that is not valid. Blocks."""
    segment.trust.withdraw(
        segment.size_bytes
    )  # what this brings into the page cache is not noted as verified
    window, start = b"", 0
    position, offset = 0, segment.base_offset
    while offset < segment.end_offset:
        header = _header_at(window, position - start)
        if header is None or position - start + header.size_bytes > len(window):
            size_bytes = _WINDOW_BYTES if header is None else max(_WINDOW_BYTES, header.size_bytes)
            window = _read(segment, file, position, size_bytes, offset)
            start = position
            header = _header_at(window, 0)
            if header is not None and header.size_bytes > len(window):
                window = _read(segment, file, position, header.size_bytes, offset)
        at = position - start
        if header is None or at + header.size_bytes > len(window):
            raise Unreadable(_damaged(segment, file, epochs, position, offset))
        batch = memoryview(window)[at : at + header.size_bytes]
        if (
            header.base_offset != offset
            or header.last_offset_delta < 0
            or header.end_offset > segment.end_offset
            or header.leader_epoch != epochs.at(offset)
            or not verify_crc(batch)
        ):
            raise Unreadable(_damaged(segment, file, epochs, position, offset))
        yield header, batch
        position += header.size_bytes
        offset = header.end_offset


def _read(segment: Segment, file: File, position: int, size_bytes: int, offset: int) -> bytes:
    """As much of it as the segment has from there on. Behind a bad sector nobody can tell where the next batch begins."""
    try:
        return file.read(position, min(size_bytes, segment.size_bytes - position))
    except OSError as error:
        if not is_bad_sector(error):
            raise
        raise Unreadable(
            DamagedRange(offset, segment.end_offset, segment.base_offset, position, segment.size_bytes)
        ) from error


def _header_at(window: bytes, at: int) -> BatchHeader | None:
    if len(window) - at < HEADER_BYTES:
        return None
    try:
        return decode_header(window, at)
    except (CorruptBatch, UnsupportedFormat):
        return None


def _damaged(
    segment: Segment, file: File, epochs: LeaderEpochs, position: int, offset: int
) -> DamagedRange | None:
    """How far the damage goes."""
    for piece in scan(
        file,
        position=position,
        end_position=segment.size_bytes,
        offset=offset,
        end_offset=segment.end_offset,
        epochs=epochs,
    ):
        if isinstance(piece, Damage):
            end_offset = segment.end_offset if piece.end_offset is None else piece.end_offset
            return DamagedRange(
                offset, end_offset, segment.base_offset, piece.start_position, piece.end_position
            )
        return None
    return DamagedRange(offset, segment.end_offset, segment.base_offset, position, position)
