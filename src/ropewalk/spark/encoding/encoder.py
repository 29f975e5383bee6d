"""Rows and the partition of each → finished record batches. No Python object is made per record.

    for batch in encode(rows, partitions, codec=Codec.ZSTD, batch_bytes=262_144, record_bytes_max=1_048_576):
        …

What a reader could get wrong
    Rows of one partition keep their order. A batch ends where the next record would make it larger than `batch_bytes` before
    compression; a record that is larger than that by itself has a batch of its own.
    Uncompressed batches are views of one buffer: whoever keeps one of them keeps them all.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from ropewalk.base.ids import NO_PRODUCER
from ropewalk.client.errors import RecordTooLarge
from ropewalk.records.batch import (
    HEADER_BYTES,
    HEADER_LAYOUT,
    MAGIC,
    PREFIX_BYTES,
    SEQUENCE_NONE,
    stamp_crc,
)
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress
from ropewalk.spark.decoding.bodies import Numbers
from ropewalk.spark.encoding.choice import Choice
from ropewalk.spark.encoding.rows import Rows

loops = Choice()
"""Of this process."""

_SMALL: Final = 1 << 16


class EncodedBatch(Struct, frozen=True, gc=False):
    partition: int
    record_count: int
    encoded: bytearray | memoryview


def encode(
    rows: Rows, partitions: Numbers, *, codec: Codec, batch_bytes: int, record_bytes_max: int
) -> Iterator[EncodedBatch]:
    """Partition by partition. Refuses a record that no request may carry with `RecordTooLarge`, before anything is encoded."""
    if not len(rows):
        return
    sizes = rows.sizes()
    _refuse_large(sizes, record_bytes_max)
    order = _order(partitions)
    sorted_sizes, sorted_partitions = sizes[order], partitions[order]
    firsts, ends = _cut(sorted_sizes, sorted_partitions, min(batch_bytes, record_bytes_max) - HEADER_BYTES)
    totals = np.concatenate(([0], np.cumsum(sorted_sizes)))
    starts = totals[firsts] + HEADER_BYTES * np.arange(len(firsts))
    output = np.empty(int(totals[-1]) + HEADER_BYTES * len(firsts), np.uint8)
    stops, latest = loops.write_records(rows, order, firsts, ends, starts + HEADER_BYTES, output)
    base_timestamps = rows.timestamps[order[firsts]]
    view = output.data
    for batch in range(len(firsts)):
        encoded: bytearray | memoryview = view[int(starts[batch]) : int(stops[batch])]
        if codec is not Codec.NONE:
            encoded = bytearray(HEADER_BYTES) + compress(codec, encoded[HEADER_BYTES:])
        count = int(ends[batch] - firsts[batch])
        HEADER_LAYOUT.pack_into(
            encoded, 0, 0, len(encoded) - PREFIX_BYTES, -1, MAGIC, 0, codec, count - 1,
            int(base_timestamps[batch]), int(latest[batch]), NO_PRODUCER, -1, SEQUENCE_NONE, count,
        )  # fmt: skip
        stamp_crc(memoryview(encoded))
        yield EncodedBatch(int(sorted_partitions[firsts[batch]]), count, encoded)


def _refuse_large(sizes: Numbers, record_bytes_max: int) -> None:
    largest = int(sizes.max())
    if largest > record_bytes_max - HEADER_BYTES:
        raise RecordTooLarge(
            f"a row of {largest} bytes, with what a record needs beside its contents; kafka.max.request.size is {record_bytes_max}."
            " Raise it, and the topic's max.message.bytes with it, or make the row smaller"
        )


def _order(partitions: Numbers) -> Numbers:
    """By partition, rows of one partition as they came."""
    narrow = partitions.astype(np.uint16) if partitions.max() < _SMALL else partitions  # sorts by radix
    return np.argsort(narrow, kind="stable")


def _cut(sizes: Numbers, partitions: Numbers, bytes_max: int) -> tuple[Numbers, Numbers]:
    """Where batches begin and end among sorted rows."""
    totals = np.cumsum(sizes)
    borders = [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(sizes)]
    firsts: list[int] = []
    first, written = 0, 0
    for border in borders:
        while first < border:
            end = int(np.searchsorted(totals, written + bytes_max, side="right"))
            end = min(max(end, first + 1), border)
            firsts.append(first)
            first, written = end, int(totals[end - 1])
    return np.array(firsts, np.int64), np.array([*firsts[1:], len(sizes)], np.int64)
