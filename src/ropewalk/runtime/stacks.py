"""Where every task and every thread of the process stands: for a person who wants to know what it waits for.

What a reader could get wrong
    The loop goes on meanwhile, so that stacks are not all of one instant: a look at many tasks is taken in slices.
    A stack has file names, line numbers and lines of the source, and no values: what a program is given is not in it.
"""

import asyncio
import sys
import threading
import traceback
from typing import Final

from ropewalk.base.limits import STACKS_SHOWN_MAX

_TASKS_AT_ONCE: Final = 20
_FRAMES_MAX: Final = 12


async def stacks() -> str:
    """Tasks that stand in the same place are shown once, with how many they are: the most first."""
    tasks = list(asyncio.all_tasks())
    places: dict[str, list[str]] = {}
    for number, task in enumerate(tasks):
        if number % _TASKS_AT_ONCE == 0:
            await asyncio.sleep(0)
        frames = task.get_stack(limit=_FRAMES_MAX)
        summary = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)
        places.setdefault("".join(summary.format()) or "  it has ended\n", []).append(task.get_name())
    shown = sorted(places.items(), key=lambda each: -len(each[1]))
    parts = [f"{len(tasks)} tasks in {len(places)} places\n"]
    parts += [f"{len(names)} x {names[0]}\n{place}" for place, names in shown[:STACKS_SHOWN_MAX]]
    return "\n".join([*parts, _threads()])


def _threads() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"thread {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame, limit=_FRAMES_MAX))}"
        for ident, frame in sys._current_frames().items()
    )
