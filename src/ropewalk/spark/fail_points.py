"""Places at which a test lets a process die or stand still: between what a pipeline has done and what Spark knows of it.

    ROPEWALK_SPARK_DIE_AT="archive committed" python -m ropewalk.spark …

What a reader could get wrong
    Death is SIGKILL of the own process, so that nothing is tidied up. In an executor's Python worker that is the worker alone.
    With ROPEWALK_SPARK_DIE_AFTER=n it dies at the n-th time, counted in this process.
    ROPEWALK_SPARK_HALT_IN names a directory. A process that finds a file there with the name of the place puts its own number at the end
    of that name and waits until the file is gone: whoever watches has done by then what was to happen at this very moment.
    Several may come to the place at once; one of them gets the file. It waits without being stopped by a signal, because the kernel ends
    stopped processes whose parents die, and those are wanted.
"""

import os
import signal
import time
from typing import Final

_PLACE: Final = "ROPEWALK_SPARK_DIE_AT"
_COUNT: Final = "ROPEWALK_SPARK_DIE_AFTER"
HALT_IN: Final = "ROPEWALK_SPARK_HALT_IN"
_LOOK_S: Final = 0.01
_reached = 0


def reach(place: str) -> None:
    """Does nothing unless a test has named this place."""
    directory = os.environ.get(HALT_IN)
    if directory is not None:
        _halt(directory, place)
    if os.environ.get(_PLACE) == place:
        _die()


def _die() -> None:
    global _reached
    _reached += 1
    if _reached >= int(os.environ.get(_COUNT, "1")):
        os.kill(os.getpid(), signal.SIGKILL)


def _halt(directory: str, place: str) -> None:
    file = os.path.join(directory, place)
    mine = f"{file}.{os.getpid()}"
    try:
        os.rename(file, mine)
    except FileNotFoundError:
        return
    while os.path.exists(mine):
        time.sleep(_LOOK_S)
