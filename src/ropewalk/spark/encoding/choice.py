"""Which loops encode: plain Python's at first, the compiled ones as soon as there is enough to do."""

from types import ModuleType
from typing import Final

import numpy as np

from ropewalk.spark.decoding.bodies import Bytes, Numbers
from ropewalk.spark.encoding import plain
from ropewalk.spark.encoding.rows import Blobs, Rows
from ropewalk.spark.patience import PATIENCE_US, Patience

ROW_US: Final = 2.5
"""What plain Python takes to write a record, or to look at a key or a value: measured, and good enough if half wrong."""
HASHED_BYTE_US: Final = 0.1


class Choice:
    """Does what `kernels` and `plain` do, by one of them."""

    def __init__(self, patience_us: float = PATIENCE_US) -> None:
        self._patience = Patience(plain, _compiled, patience_us)

    def write_records(
        self,
        rows: Rows,
        order: Numbers,
        firsts: Numbers,
        ends: Numbers,
        positions: Numbers,
        output: Bytes,
    ) -> tuple[Numbers, Numbers]:
        loops = self._patience.loops_for(ROW_US * len(rows))
        written: tuple[Numbers, Numbers] = loops.write_records(rows, order, firsts, ends, positions, output)
        return written

    def hash_keys(self, keys: Blobs) -> Numbers:
        hashes: Numbers = self._patience.loops_for(_hashing_us(keys)).hash_keys(keys)
        return hashes

    def hash_blobs(self, blobs: Blobs) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
        hashes: np.ndarray[tuple[int], np.dtype[np.uint64]] = self._patience.loops_for(
            _hashing_us(blobs)
        ).hash_blobs(blobs)
        return hashes


def _hashing_us(blobs: Blobs) -> float:
    return ROW_US * len(blobs.lengths) + HASHED_BYTE_US * int(np.maximum(blobs.lengths, 0).sum())


def _compiled() -> ModuleType:
    from ropewalk.spark.encoding import kernels

    return kernels
