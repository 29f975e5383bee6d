"""Which partition each row goes to: the one it names, that of its key as Java's clients choose, or in turn.

What a reader could get wrong
    Rows without a key go to one partition until a batch's worth went there, then to the next, so that batches are filled. A
    task begins at a partition of its own choice, or all would begin at the first.
"""

import numpy as np
import pyarrow as pa

from ropewalk.spark.decoding.bodies import Numbers
from ropewalk.spark.encoding import encoder
from ropewalk.spark.encoding.rows import Rows
from ropewalk.spark.numbers import is_valid, numbers_in
from ropewalk.spark.refusals import WrongUse


class Placing:
    """For one topic, in one task."""

    def __init__(self, topic: str, partition_count: int, *, first: int, bytes_each: int) -> None:
        self._topic = topic
        self._count = partition_count
        self._first = first
        self._bytes_each = bytes_each
        self._sent_bytes = 0
        """Of rows without a key."""

    def place(self, rows: Rows, named: pa.Array | None = None) -> Numbers:
        """`named` are the partitions that rows name themselves; null where they name none. Refuses what is none of the topic's."""
        placed: Numbers = encoder.loops.hash_keys(rows.keys) % self._count
        is_keyless = rows.keys.lengths < 0
        is_named = None
        if named is not None:
            is_named = is_valid(named)
            self._refuse_others(named)
            placed = np.where(is_named, numbers_in(named.fill_null(0)), placed)
            is_keyless &= ~is_named
        if is_keyless.any():
            placed[is_keyless] = self._in_turn(rows.sizes()[is_keyless])
        return placed.astype(np.int64, copy=False)

    def _in_turn(self, sizes: Numbers) -> Numbers:
        ends = self._sent_bytes + np.cumsum(sizes)
        turns: Numbers = (ends - sizes) // self._bytes_each
        self._sent_bytes = int(ends[-1])
        return (self._first + turns) % self._count

    def _refuse_others(self, named: pa.Array) -> None:
        numbers = numbers_in(named.drop_null())
        wrong = numbers[(numbers < 0) | (numbers >= self._count)]
        if len(wrong):
            raise WrongUse(
                f"a row is for partition {wrong[0]} of {self._topic}, which has {self._count} partitions, counted from 0"
            )
