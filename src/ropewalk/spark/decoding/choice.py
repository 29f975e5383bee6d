"""Which loops decode: numpy's at first, the compiled ones as soon as there is enough to do.

Loading numba and what it has compiled takes a process seconds of its processor, every time, and Spark starts many that see a few
records only. So a process begins with the slower loops and changes over when they have cost it a part of that.

What a reader could get wrong
    numpy goes through all batches at once, record by record, so what it costs depends on the longest batch first: one of ten thousand
    records costs more than a thousand of ten. And it copies byte by byte: megabytes of long values cost, however few they are.
"""

from contextlib import suppress
from types import ModuleType
from typing import Final

from ropewalk.spark.decoding import lockstep
from ropewalk.spark.decoding.bodies import Numbers

STEP_US: Final = 130.0
RECORD_US: Final = 0.4
BYTE_US: Final = 0.006
"""What numpy takes for a step over all batches, for each record in it and for each byte: measured, and good enough if half wrong."""

PATIENCE_US: Final = 1_000_000.0
"""About a third of what the compiled loops take to load."""


class Choice:
    """Of one process, for as long as it lives."""

    def __init__(self, patience_us: float = PATIENCE_US) -> None:
        self._patience_us = patience_us
        self._settled: ModuleType | None = None

    def of(self, counts: Numbers, size_bytes: int) -> ModuleType:
        """For batches of so many records each, and so many bytes together."""
        if self._settled is not None:
            return self._settled
        if len(counts):
            self._patience_us -= STEP_US * int(counts.max()) + RECORD_US * int(counts.sum())
            self._patience_us -= BYTE_US * size_bytes
        if self._patience_us < 0:
            self._settled = _compiled_or_not()
            return self._settled
        return lockstep


def _compiled_or_not() -> ModuleType:
    with suppress(ImportError):  # numba is for speed alone
        from ropewalk.spark.decoding import kernels

        return kernels
    return lockstep
