"""Spark waits ten seconds for a process of its own, on however busy a machine, and has no setting for that: then it is asked again."""

from collections.abc import Callable
from typing import Final, TypeVar

from pyspark.errors import StreamingQueryException

STARTS_MAX: Final = 3
_NOT_WAITED_FOR: Final = "Python worker failed to connect back"

T = TypeVar("T")


def patiently(run: Callable[[], T]) -> T:
    """What `run` gives. A query that Spark gave up at its start has read and written nothing, and is begun anew."""
    for _ in range(STARTS_MAX - 1):
        try:
            return run()
        except StreamingQueryException as error:
            if _NOT_WAITED_FOR not in str(error):
                raise
    return run()
