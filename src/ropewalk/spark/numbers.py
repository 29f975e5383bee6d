"""Arrow's columns as numpy's arrays and back, without a copy where that can be.

Not by `to_numpy`, `pa.array` or `pa.scalar`: whatever they are given, they load pandas, which takes a fresh worker longer than most tasks.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers_in(column: pa.Array) -> npt.NDArray[Any]:
    """Integers of any width. Nothing that makes sense for null: fill it before."""
    if not len(column):
        return np.zeros(0, np.int64)
    kind = column.type
    width = kind.bit_width // 8
    sign = "u" if pa.types.is_unsigned_integer(kind) else "i"
    return np.frombuffer(column.buffers()[1], f"{sign}{width}", len(column), width * column.offset)


def is_valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which are not null."""
    return numbers_in(column.is_valid().cast(pa.uint8())).astype(np.bool_)


def column_of(numbers: npt.NDArray[Any], *, present: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Integers of any width; null where they are not `present`."""
    buffers = [None if present is None else _bits(present), pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)


def single(value: bytes) -> pa.Array:
    """A column with one value."""
    offsets = np.array([0, len(value)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(value)])


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
