"""How long a process makes do with slower loops before it loads the compiled ones.

Loading numba and what it has compiled takes a process seconds of its processor, every time, and Spark starts many that see a few
records only. So a process begins with the slower loops and changes over when they have cost it a part of that.
"""

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Final

PATIENCE_US: Final = 1_000_000.0
"""About a third of what the compiled loops take to load."""


class Patience:
    """Of one process, for as long as it lives."""

    def __init__(
        self, slower: ModuleType, load: Callable[[], ModuleType], patience_us: float = PATIENCE_US
    ) -> None:
        """`load` may raise `ImportError`: numba is for speed alone."""
        self._slower = slower
        self._load = load
        self._left_us = patience_us
        self._settled: ModuleType | None = None

    def loops_for(self, cost_us: float) -> ModuleType:
        """Those to be used for what would take the slower ones so long."""
        if self._settled is not None:
            return self._settled
        self._left_us -= cost_us
        if self._left_us >= 0:
            return self._slower
        self._settled = self._slower
        with suppress(ImportError):
            self._settled = self._load()
        return self._settled
