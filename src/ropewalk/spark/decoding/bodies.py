"""Fetched bytes, batch by batch: checked against their CRC, decompressed, and without what no reader should see.

What a reader could get wrong
    Where nothing is compressed the fetched bytes themselves are the buffer: nothing is copied, and whoever keeps the
    result keeps the fetch.
    A broker sends whole batches, so the first may begin before the offset asked for, and transactions aborted in it are
    told by producer and first offset only: an abort marker in between ends what was aborted.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ropewalk.base.errors import CorruptBatch
from ropewalk.records.batch import HEADER_BYTES, BatchHeader, iterate, verify_crc
from ropewalk.records.compression import decompress

BODY_BYTES_MAX: Final = 1 << 30
"""A batch that opens to more than this is taken for an attack: Arrow's offsets end at twice as much."""

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Aborted(Struct, frozen=True, gc=False):
    """A transaction that was aborted, as Fetch tells of it."""

    producer_id: int
    first_offset: int


class Bodies(Struct, frozen=True):
    """The records of many batches, one batch after the other."""

    data: Bytes
    starts: Numbers
    ends: Numbers
    counts: Numbers
    base_offsets: Numbers
    base_timestamps: Numbers
    append_timestamps: Numbers
    """-1 where the producers' own timestamps count."""

    end_offset: int | None
    """After the last batch, whether or not anything of it is left; None where there was no whole batch."""


def open_bodies(fetched: memoryview, aborted: Iterable[Aborted] = ()) -> Bodies:
    """Raises `CorruptBatch` for bytes that are not what their producer wrote."""
    skipped = _Skipping(aborted)
    kept: list[tuple[int, BatchHeader]] = []
    end_offset: int | None = None
    is_compressed = False
    for position, header in iterate(fetched):
        batch = fetched[position : position + header.size_bytes]
        if not verify_crc(batch):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its checksum")
        end_offset = header.end_offset
        if skipped.skips(header, batch):
            continue
        kept.append((position, header))
        is_compressed = is_compressed or header.is_compressed
    if is_compressed:
        data, spans = _opened(fetched, kept)
    else:
        data = np.frombuffer(fetched, np.uint8)
        spans = [(position + HEADER_BYTES, position + header.size_bytes) for position, header in kept]
    headers = [header for _, header in kept]
    return Bodies(
        data,
        _numbers([start for start, _ in spans]),
        _numbers([end for _, end in spans]),
        _numbers([header.record_count for header in headers]),
        _numbers([header.base_offset for header in headers]),
        _numbers([header.base_timestamp for header in headers]),
        _numbers([header.max_timestamp if header.uses_append_time else -1 for header in headers]),
        end_offset,
    )


class _Skipping:
    """Which batches hold nothing for a reader: markers, and the data of transactions that were aborted."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._open: set[int] = set()
        """Producers whose aborted transaction has begun and not ended."""

    def skips(self, header: BatchHeader, batch: memoryview) -> bool:
        while (
            self._to_come and self._to_come[-1].first_offset <= header.base_offset + header.last_offset_delta
        ):
            self._open.add(self._to_come.pop().producer_id)
        if header.is_control:
            if not _is_commit(batch):
                self._open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._open


_MARKER_TYPE_POSITION: Final = 8
"""In a marker's record, with its length, attributes, two deltas and the key's length of one byte each, and the key's version."""


def _is_commit(batch: memoryview) -> bool:
    position = HEADER_BYTES + _MARKER_TYPE_POSITION
    return len(batch) > position and batch[position] == 1


def _opened(fetched: memoryview, kept: list[tuple[int, BatchHeader]]) -> tuple[Bytes, list[tuple[int, int]]]:
    bodies: list[bytes | memoryview] = []
    spans: list[tuple[int, int]] = []
    end = 0
    for position, header in kept:
        body: bytes | memoryview = fetched[position + HEADER_BYTES : position + header.size_bytes]
        if header.is_compressed:
            body = decompress(header.codec, body, bytes_max=BODY_BYTES_MAX)
        bodies.append(body)
        spans.append((end, end + len(body)))
        end += len(body)
    return np.frombuffer(b"".join(bodies), np.uint8), spans


def _numbers(values: list[int]) -> Numbers:
    return np.array(values, np.int64)
