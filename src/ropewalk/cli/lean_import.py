"""Importing a node in as little time as it takes.

A node that has been killed is missed until it is back, and most of its start is the import of its modules.

What a reader could get wrong
    structlog imports rich if it is there, for tracebacks in colour, and with it a fifth of all that a node imports. It is
    there for typer's sake. While this lasts rich cannot be imported; structlog then writes tracebacks as Python does.
    Modules are not garbage: to look for some among them takes a tenth of the time.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_UNWANTED = "rich"


@contextmanager
def lean_import() -> Iterator[None]:
    """Import what a node is made of while this lasts."""
    is_hidden = _UNWANTED not in sys.modules
    collects = gc.isenabled()
    if is_hidden:
        # Python's own way to say that there is no such module.
        sys.modules[_UNWANTED] = None  # type: ignore[assignment]
    gc.disable()
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules[_UNWANTED]
        if collects:
            gc.enable()
