"""Rows to be written, as columns of numbers: where each key, value and header lies in Arrow's own buffers. Nothing is copied.

What a reader could get wrong
    A length of -1 is null. Without a column of keys every key is null; without one of timestamps all rows have the same.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ropewalk.spark.columns import Column
from ropewalk.spark.decoding.bodies import Bytes, Numbers
from ropewalk.spark.numbers import is_valid, numbers_in
from ropewalk.spark.refusals import WrongUse

RECORD_OVERHEAD_BYTES = 36
"""The most that lengths, deltas and counts of one record take."""
HEADER_OVERHEAD_BYTES = 10
_MICROSECONDS = 1000
_NO_BYTES: Bytes = np.zeros(0, np.uint8)


class Blobs(Struct, frozen=True):
    data: Bytes
    starts: Numbers
    lengths: Numbers

    @classmethod
    def nulls(cls, count: int) -> "Blobs":
        return cls(_NO_BYTES, np.zeros(count, np.int64), np.full(count, -1, np.int64))

    @classmethod
    def of(cls, column: pa.Array) -> "Blobs":
        """From text or bytes."""
        flat = column.cast(pa.large_binary())
        count = len(flat)
        _, offsets_buffer, data_buffer = flat.buffers()
        if not count:
            return cls.nulls(0)
        offsets = np.frombuffer(offsets_buffer, np.int64, count + 1, 8 * flat.offset)
        data = _NO_BYTES if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
        lengths = np.diff(offsets)
        if flat.null_count:
            lengths[~is_valid(flat)] = -1
        return cls(data, offsets[:-1], lengths)

    def to_list(self) -> list[bytes | None]:
        """For where there are no compiled loops."""
        data = self.data.tobytes()
        return [
            None if length < 0 else data[start : start + length]
            for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        ]


class RowHeaders(Struct, frozen=True):
    """Of row n those from `starts[n]` on, as many as `counts[n]`."""

    starts: Numbers
    counts: Numbers
    keys: Blobs
    values: Blobs


class Rows(Struct, frozen=True):
    keys: Blobs
    values: Blobs
    timestamps: Numbers
    """Milliseconds."""
    headers: RowHeaders

    def __len__(self) -> int:
        return len(self.timestamps)

    def sizes(self) -> Numbers:
        """No less than each record takes uncompressed."""
        sizes = RECORD_OVERHEAD_BYTES + np.maximum(self.keys.lengths, 0) + np.maximum(self.values.lengths, 0)
        if len(self.headers.keys.lengths):
            each = (
                HEADER_OVERHEAD_BYTES + self.headers.keys.lengths + np.maximum(self.headers.values.lengths, 0)
            )
            ends = np.concatenate(([0], np.cumsum(each)))
            starts = self.headers.starts
            sizes = sizes + ends[starts + self.headers.counts] - ends[starts]
        return sizes


def rows_of(columns: Mapping[Column, pa.Array], now_ms: int) -> Rows:
    """Refuses a header without a name, which no record can have, with `WrongUse`."""
    values = Blobs.of(columns[Column.VALUE])
    count = len(values.lengths)
    keys = columns.get(Column.KEY)
    return Rows(
        Blobs.nulls(count) if keys is None else Blobs.of(keys),
        values,
        _timestamps(columns.get(Column.TIMESTAMP), count, now_ms),
        _headers(columns.get(Column.HEADERS), count),
    )


def _timestamps(column: pa.Array | None, count: int, now_ms: int) -> Numbers:
    if column is None:
        return np.full(count, now_ms, np.int64)
    micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).fill_null(now_ms * _MICROSECONDS)
    milliseconds: Numbers = np.floor_divide(numbers_in(micros), _MICROSECONDS)
    if (milliseconds < 0).any():
        raise WrongUse(
            "a timestamp lies before 1970, and a record's cannot; leave it null to have the present one"
        )
    return milliseconds


def _headers(column: pa.Array | None, count: int) -> RowHeaders:
    if column is None or column.null_count == count:
        zeros = np.zeros(count, np.int64)
        return RowHeaders(zeros, zeros, Blobs.nulls(0), Blobs.nulls(0))
    lists = column.cast(pa.large_list(column.type.value_type))
    offsets = np.frombuffer(lists.buffers()[1], np.int64, count + 1, 8 * lists.offset)
    counts = np.diff(offsets)
    if lists.null_count:
        counts[~is_valid(lists)] = 0
    pairs = lists.values
    names, contents = (Blobs.of(each) for each in pairs.flatten())
    if (names.lengths < 0).any():
        _refuse_nameless(names.lengths < 0, offsets[:-1], counts)
    # What belongs to no row may be anything; a record's size is counted over all.
    return RowHeaders(
        offsets[:-1], counts, Blobs(names.data, names.starts, np.maximum(names.lengths, 0)), contents
    )


def _refuse_nameless(
    is_nameless: "np.ndarray[tuple[int], np.dtype[np.bool_]]", starts: Numbers, counts: Numbers
) -> None:
    """Only where a row has it: between rows, and under a null, there may be anything."""
    totals = np.concatenate(([0], np.cumsum(is_nameless)))
    if (totals[starts + counts] > totals[starts]).any():
        raise WrongUse("a header has no key; name it, or leave the header out")
