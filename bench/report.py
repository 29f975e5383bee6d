"""Samples of two brokers, taken in turn, as ratios with their spread."""

import os
import platform
import statistics
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct

Samples = Sequence[dict[str, float]]
"""One dictionary of figures by name for every repetition."""


class Target(Struct, frozen=True):
    """What the ratio Ropewalk : peer should be: at least so much for what is good, at most for what costs."""

    bound: float
    at_least: bool

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_least(bound: float) -> Target:
    return Target(bound, at_least=True)


def at_most(bound: float) -> Target:
    return Target(bound, at_least=False)


SAME_CPU = at_most(1.03)
"""What a change of the source may cost: the median of neighbouring runs, which a machine's moods reach alike."""


class Row(Struct, frozen=True):
    """One figure of both brokers. Repetition i of one ran next to repetition i of the other."""

    measure: str
    peer: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    target: Target | None = None

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(our / their for our, their in zip(self.ours, self.theirs, strict=False) if their > 0)

    def cells(self) -> tuple[str, ...]:
        wanted = ""
        if self.target is not None and self.ratios:
            met = self.target.is_met(statistics.median(self.ratios))
            wanted = f"{self.target} {'met' if met else 'MISSED'}"
        return (
            self.measure,
            _spread(self.ours),
            self.peer,
            _spread(self.theirs),
            _spread(self.ratios),
            wanted,
        )


def compare(
    title: str, peer: str, ours: Samples, theirs: Samples, targets: dict[str, Target | None]
) -> list[Row]:
    """A row for every figure named in `targets`, with what is wanted of its ratio."""
    return [
        Row(
            f"{title}, {figure}",
            peer,
            tuple(sample[figure] for sample in ours),
            tuple(sample[figure] for sample in theirs),
            target,
        )
        for figure, target in targets.items()
    ]


def markdown(rows: Iterable[Row], foreign_cores_max: float, versions: str) -> str:
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}, {versions}. "
        f"Median [least – most] of the repetitions; ratios are Ropewalk : peer, repetition by repetition. "
        f"Other processes used up to {foreign_cores_max:.2f} cores during a run.",
        "",
        "| measure | Ropewalk | peer | peer's | ratio | wanted |",
        "|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def machine() -> str:
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} CPUs, {memory_gib:.0f} GiB, Linux {platform.release()}, load and brokers on the same CPUs"


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{figure(statistics.median(values))} [{figure(min(values))} – {figure(max(values))}]"
