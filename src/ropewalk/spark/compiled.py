"""Loops over records, compiled by numba. Without it this module cannot be imported, and whoever wants speed alone goes on without.

What a reader could get wrong
    What was compiled is kept beside the source, else in the user's cache directory, else in `NUMBA_CACHE_DIR`. Where none of them can be
    written, as in a container whose user has no home, numba refuses to compile at all if asked to keep the result; then each
    worker compiles anew, some seconds each, and says so.
    Python's lock is let go while such a loop runs.
"""

from collections.abc import Callable
from typing import Any

import numba as nb
import structlog

_log = structlog.get_logger()
_said = False


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled when it is first called with arguments of these types."""
    try:
        made: Callable[..., Any] = nb.njit(cache=True, nogil=True)(function)
    except RuntimeError as refused:
        _say_once(str(refused))
        made = nb.njit(nogil=True)(function)
    return made


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Becomes part of the compiled loops that call it."""
    made: Callable[..., Any] = nb.njit(inline="always")(function)
    return made


def _say_once(reason: str) -> None:
    global _said
    if not _said:
        _log.warning(
            "compiled loops cannot be kept: every worker compiles them anew; set NUMBA_CACHE_DIR",
            reason=reason,
        )
    _said = True
