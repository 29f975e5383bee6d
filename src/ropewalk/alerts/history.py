"""What rules look at: the figures of the moment, and of some series what was before.

What a reader could get wrong
    A series that is not there at the moment has no number now, whatever it had before. Its past still counts for windows, as in
    Prometheus, until it is older than they are.
    Labels are pairs in the order of their names.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeAlias

from ropewalk.base.limits import ALERT_SERIES_REMEMBERED_MAX

Labels: TypeAlias = tuple[tuple[str, str], ...]
Figures: TypeAlias = Mapping[str, Mapping[Labels, float]]
"""By the name of the series, and its labels."""

_NOTHING: Final[Mapping[Labels, float]] = {}


class Past(Protocol):
    """Samples of one series in their order."""

    @property
    def times_ms(self) -> "array[int]": ...

    @property
    def values(self) -> "array[float]": ...

    @property
    def grown(self) -> "array[float]":
        """As `values`, and as if the counter had never begun again at 0."""

    def first_since(self, at_ms: int) -> int:
        """The index of the first sample at or after a time; their number if there is none."""


class Samples(Protocol):
    """What an expression is worked out from."""

    def now(self, name: str) -> Mapping[Labels, float]: ...

    def past(self, name: str) -> Iterator[tuple[Labels, Past]]: ...


class History:
    """Keeps what `windows_s` asks for: by the name of a series, how many seconds."""

    __slots__ = ("_now", "_series_count", "_windows", "_windows_ms", "refused_count")

    def __init__(self, windows_s: Mapping[str, int]) -> None:
        self._windows_ms = {name: seconds * 1000 for name, seconds in windows_s.items()}
        self._windows: dict[str, dict[Labels, _Window]] = {name: {} for name in windows_s}
        self._now: Figures = {}
        self._series_count = 0
        self.refused_count = 0
        """Samples of series for which there was no room."""

    def look(self, figures: Figures) -> None:
        """These are the figures of the moment."""
        self._now = figures

    def remember(self, at_ms: int) -> None:
        """Keep the figures of the moment for the windows."""
        for name, windows in self._windows.items():
            for labels, value in self._now.get(name, _NOTHING).items():
                window = windows.get(labels)
                if window is None:
                    if self._series_count >= ALERT_SERIES_REMEMBERED_MAX:
                        self.refused_count += 1
                        continue
                    window = windows[labels] = _Window()
                    self._series_count += 1
                window.add(at_ms, value)
            since_ms = at_ms - self._windows_ms[name]
            for labels in [labels for labels, window in windows.items() if window.drop_before(since_ms)]:
                del windows[labels]
                self._series_count -= 1

    def now(self, name: str) -> Mapping[Labels, float]:
        return self._now.get(name, _NOTHING)

    def past(self, name: str) -> Iterator[tuple[Labels, Past]]:
        yield from self._windows.get(name, {}).items()


class _Window:
    __slots__ = ("grown", "times_ms", "values")

    def __init__(self) -> None:
        self.times_ms = array("q")
        self.values = array("d")
        self.grown = array("d")

    def add(self, at_ms: int, value: float) -> None:
        if self.values:
            before = self.values[-1]
            # A counter that is smaller than it was has begun again at 0.
            self.grown.append(self.grown[-1] + (value if value < before else value - before))
        else:
            self.grown.append(value)
        self.times_ms.append(at_ms)
        self.values.append(value)

    def first_since(self, at_ms: int) -> int:
        return bisect_left(self.times_ms, at_ms)

    def drop_before(self, at_ms: int) -> bool:
        """Whether nothing is left."""
        count = self.first_since(at_ms)
        # Half at once, so that the rest is not moved with every sample.
        if count > len(self.times_ms) // 2:
            del self.times_ms[:count], self.values[:count], self.grown[:count]
        return not self.times_ms
