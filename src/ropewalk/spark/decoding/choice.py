"""Which loops decode: numpy's at first, the compiled ones as soon as there is enough to do.

What a reader could get wrong
    numpy goes through all batches at once, record by record, so what it costs depends on the longest batch first: one of ten thousand
    records costs more than a thousand of ten. And it copies byte by byte: megabytes of long values cost, however few they are.
"""

from types import ModuleType
from typing import Final

from ropewalk.spark.decoding import lockstep
from ropewalk.spark.decoding.bodies import Numbers
from ropewalk.spark.patience import PATIENCE_US, Patience

STEP_US: Final = 130.0
RECORD_US: Final = 0.4
BYTE_US: Final = 0.006
"""What numpy takes for a step over all batches, for each record in it and for each byte: measured, and good enough if half wrong."""


class Choice:
    def __init__(self, patience_us: float = PATIENCE_US) -> None:
        self._patience = Patience(lockstep, _compiled, patience_us)

    def of(self, counts: Numbers, size_bytes: int) -> ModuleType:
        """For batches of so many records each, and so many bytes together."""
        steps_us = STEP_US * int(counts.max()) + RECORD_US * int(counts.sum()) if len(counts) else 0.0
        return self._patience.loops_for(steps_us + BYTE_US * size_bytes)


def _compiled() -> ModuleType:
    from ropewalk.spark.decoding import kernels

    return kernels
