"""Places at which a test lets a process die: between what a pipeline has done and what Spark knows of it.

    ROPEWALK_SPARK_DIE_AT="archive committed" python -m ropewalk.spark …

What a reader could get wrong
    Death is SIGKILL of the own process, so that nothing is tidied up. In an executor's Python worker that is the worker alone.
    With ROPEWALK_SPARK_DIE_AFTER=n it dies at the n-th time, counted in this process.
"""

import os
import signal
from typing import Final

_PLACE: Final = "ROPEWALK_SPARK_DIE_AT"
_COUNT: Final = "ROPEWALK_SPARK_DIE_AFTER"
_reached = 0


def reach(place: str) -> None:
    """Does nothing unless a test has named this place."""
    global _reached
    if os.environ.get(_PLACE) != place:
        return
    _reached += 1
    if _reached >= int(os.environ.get(_COUNT, "1")):
        os.kill(os.getpid(), signal.SIGKILL)
