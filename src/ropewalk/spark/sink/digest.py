"""A digest of a task's rows, whatever their order: shuffles do not keep it.

The sum of a number for each row, made of its key, value, headers and whatever else the sink is given of it. It notices rows that
are missing, twice or different; it is no seal against somebody who looks for another set of rows with the same sum.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ropewalk.spark.columns import Column
from ropewalk.spark.encoding import encoder
from ropewalk.spark.encoding.rows import Blobs, Rows, rows_of
from ropewalk.spark.numbers import is_valid, numbers_in

Hashes = npt.NDArray[np.uint64]

_MASK: Final = 2**64 - 1
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)


class RowsDigest:
    def __init__(self) -> None:
        self._sum = 0
        self._count = 0

    def add(self, columns: Mapping[Column, pa.Array]) -> None:
        rows = rows_of(columns, 0)
        numbers = _mixed(_of_blobs(rows.keys))
        numbers = _mixed(numbers ^ _of_blobs(rows.values))
        numbers = _mixed(numbers ^ _of_headers(rows))
        for column in (Column.TIMESTAMP, Column.PARTITION):
            if column in columns:
                numbers = _mixed(numbers ^ _of_numbers(columns[column]))
        self._sum = (self._sum + int(numbers.sum(dtype=np.uint64))) & _MASK
        self._count += len(rows)

    @property
    def text(self) -> str:
        return f"{self._count}:{self._sum:016x}"


def _of_blobs(blobs: Blobs) -> Hashes:
    hashes: Hashes = encoder.loops.hash_blobs(blobs) ^ blobs.lengths.astype(np.uint64)
    return np.where(blobs.lengths < 0, _NULL, hashes)


def _of_headers(rows: Rows) -> Hashes:
    """Of each row a sum over its headers, every one weighed with its place."""
    headers = rows.headers
    total = int(headers.counts.sum())
    sums = np.zeros(len(rows), np.uint64)
    if not total:
        return sums
    owners = np.repeat(np.arange(len(rows)), headers.counts)
    places = np.arange(total) - np.repeat(np.cumsum(headers.counts) - headers.counts, headers.counts)
    chosen = headers.starts[owners] + places
    each = _mixed(_mixed(_of_blobs(headers.keys)) ^ _of_blobs(headers.values))[chosen]
    np.add.at(sums, owners, _mixed(each ^ (places + 1).astype(np.uint64)))
    return sums


def _of_numbers(column: pa.Array) -> Hashes:
    plain = (
        column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
    )
    numbers = numbers_in(plain.fill_null(0)).astype(np.int64).astype(np.uint64)
    return np.where(is_valid(plain), numbers, _NULL)


def _mixed(numbers: Hashes) -> Hashes:
    """Every bit of the result depends on every bit given (the finalizer of splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Hashes = mixed ^ (mixed >> np.uint64(31))
    return result
