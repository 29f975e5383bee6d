"""A progress bar on stderr, where that is a terminal; nothing elsewhere."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ropewalk.base.ports import Clock

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_PAUSE_MS: Final = 100
"""Drawing costs more than sending a batch: ten times a second is enough to the eye."""


class Progress:
    """Told as often as it is handy; draws when it is time."""

    def __init__(self, clock: Clock, bar: "tuple[RichProgress, TaskID] | None") -> None:
        self._clock = clock
        self._bar = bar
        self._drawn_ms = -float(_PAUSE_MS)

    def show(self, fraction: float, text: str) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._bar is None or now_ms - self._drawn_ms < _PAUSE_MS:
            return
        self._drawn_ms = now_ms
        drawing, task = self._bar
        drawing.update(task, completed=fraction, text=text)
        drawing.refresh()


@contextmanager
def progress(clock: Clock, title: str) -> Iterator[Progress]:
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Progress(clock, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with RichProgress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as drawing:
        yield Progress(clock, (drawing, drawing.add_task(title, total=1.0, text="")))
