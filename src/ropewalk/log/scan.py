"""Walking a segment file batch by batch, past whatever is not a batch.

Recovery, index building, time look-ups and the scrub all read segments this way, so there is one
opinion on what a valid batch is and on where a damaged stretch ends.

What a reader could get wrong
    A header alone is a claim. Below `verify_from` a batch is believed if the next one begins where and with what
    offset it says, since whoever serves it checks the CRC; otherwise, and from there on, the CRC decides.
    The CRC does not cover the base offset and the leader epoch. So a batch must begin at the very offset at which
    the one before it ended, and where the leader epochs are known it must be of the right one.
    After a damaged batch the next one is looked for where the damaged header says it must be. Only if
    nothing valid is there are the bytes searched: a record may itself contain a valid batch, and that
    one must not come to light as a record batch of ours.
    Nothing before a batch that follows damage vouches for its offset. So something else must: the header of the damaged
    batch, the next batch, or a known end.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch, UnsupportedFormat
from ropewalk.base.ports import File
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.records.batch import HEADER_BYTES, MAGIC, BatchHeader, decode_header, verify_crc

OFFSET_MAX: Final = 2**63 - 1
VERIFY_ALL: Final = -1
VERIFY_NONE: Final = OFFSET_MAX

_WINDOW_BYTES: Final = 1 << 16
_SEARCH_BYTES: Final = 1 << 20
_MAGIC_POSITION: Final = 16
_MAGIC_BYTE: Final = bytes([MAGIC])


class Found(Struct, frozen=True, gc=False):
    """A batch and where it begins."""

    position: int
    header: BatchHeader


class Damage(Struct, frozen=True, gc=False):
    """Bytes that are no batches: from where one was expected to where the next valid one begins."""

    start_position: int
    end_position: int
    start_offset: int
    end_offset: int | None
    """The base offset of the next valid batch; None if there is none up to the end that was scanned."""


def scan(
    file: File,
    *,
    position: int,
    end_position: int,
    offset: int,
    end_offset: int = OFFSET_MAX,
    verify_from: int = VERIFY_ALL,
    epochs: LeaderEpochs | None = None,
) -> Iterator[Found | Damage]:
    """Everything between two positions of a segment, in order, without gaps between the answers.

    `offset` is the base offset of the first batch, `end_offset` the end that no batch may pass. Batches that
    reach beyond `verify_from` have their CRC checked, and with `epochs` all have their leader epoch.
    """
    window = _Window(file, end_position, end_offset, verify_from, epochs)
    while position < end_position:
        header = window.header_at(position)
        if (
            header is not None
            and header.base_offset == offset
            and (
                (header.end_offset <= verify_from and window.is_followed_up(position, header))
                or window.is_intact(position, header)
            )
        ):
            yield Found(position, header)
            position += header.size_bytes
            offset = header.end_offset
            continue
        following = _following(window, position, offset)
        if following is None:
            yield Damage(position, end_position, offset, None)
            return
        yield Damage(position, following.position, offset, following.header.base_offset)
        position, offset = following.position, following.header.base_offset


def _following(window: "_Window", position: int, offset: int) -> Found | None:
    """The next valid batch after the damaged one at `position`, which should have had `offset`."""
    damaged = window.claims_at(position)
    if damaged is not None:
        neighbour = position + damaged.size_bytes
        if neighbour == window.end_position:
            return None
        header = window.header_at(neighbour)
        if (
            header is not None
            and header.base_offset > offset
            and (
                header.base_offset == offset + damaged.last_offset_delta + 1
                or window.is_vouched_for(neighbour, header)
            )
            and window.is_intact(neighbour, header)
        ):
            return Found(neighbour, header)
    return _search(window, position + 1, offset)


def _search(window: "_Window", position: int, offset: int) -> Found | None:
    """The first place from `position` on that holds a whole valid batch of a later offset."""
    while window.end_position - position >= HEADER_BYTES:
        stretch = window.file.read(position, min(_SEARCH_BYTES, window.end_position - position))
        at = stretch.find(_MAGIC_BYTE, _MAGIC_POSITION)
        while at != -1:
            candidate = position + at - _MAGIC_POSITION
            header = window.header_at(candidate)
            if (
                header is not None
                and header.base_offset > offset
                and window.is_vouched_for(candidate, header)
                and window.is_intact(candidate, header)
            ):
                return Found(candidate, header)
            at = stretch.find(_MAGIC_BYTE, at + 1)
        if len(stretch) <= _MAGIC_POSITION:
            return None
        position += len(stretch) - _MAGIC_POSITION
    return None


class _Window:
    """A stretch of the file in memory, moved along as headers are asked for."""

    __slots__ = ("_data", "_end_offset", "_epochs", "_start", "_verify_from", "end_position", "file")

    def __init__(
        self,
        file: File,
        end_position: int,
        end_offset: int,
        verify_from: int,
        epochs: LeaderEpochs | None,
    ) -> None:
        self.file = file
        self.end_position = end_position
        self._end_offset = end_offset
        self._verify_from = verify_from
        self._epochs = epochs
        self._data = b""
        self._start = 0

    def header_at(self, position: int) -> BatchHeader | None:
        """None if what stands here cannot be a batch of this segment."""
        header = self._decode(position)
        if header is None or header.last_offset_delta < 0 or header.end_offset > self._end_offset:
            return None
        if self._epochs is not None and header.leader_epoch != self._epochs.at(header.base_offset):
            return None
        return header

    def claims_at(self, position: int) -> BatchHeader | None:
        """What the batch here says of itself, if it could lie before the end; any of it may be wrong."""
        return self._decode(position)

    def is_vouched_for(self, position: int, header: BatchHeader) -> bool:
        """Whether something other than the batch itself says that its offset is right.

        `verify_from` is the recovery point, if it is any offset at all: one batch ends and the next begins there.
        """
        if self.is_followed_up(position, header):
            return True
        following_position = position + header.size_bytes
        if following_position == self.end_position and header.end_offset == self._end_offset:
            return True
        return (
            self._verify_from in (header.base_offset, header.end_offset)
            and self.claims_at(following_position) is None
        )

    def is_followed_up(self, position: int, header: BatchHeader) -> bool:
        following = self.claims_at(position + header.size_bytes)
        return following is not None and following.base_offset == header.end_offset

    def is_intact(self, position: int, header: BatchHeader) -> bool:
        at = position - self._start
        if at >= 0 and at + header.size_bytes <= len(self._data):
            return verify_crc(memoryview(self._data)[at : at + header.size_bytes])
        batch = self.file.read(position, header.size_bytes)
        return len(batch) == header.size_bytes and verify_crc(memoryview(batch))

    def _decode(self, position: int) -> BatchHeader | None:
        if self.end_position - position < HEADER_BYTES:
            return None
        at = position - self._start
        if at < 0 or at + HEADER_BYTES > len(self._data):
            size = min(_WINDOW_BYTES, self.end_position - position)
            self._data, self._start, at = self.file.read(position, size), position, 0
        try:
            header = decode_header(self._data, at)
        except (CorruptBatch, UnsupportedFormat):
            return None
        return header if header.size_bytes <= self.end_position - position else None
