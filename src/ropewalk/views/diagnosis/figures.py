"""The figures of one node, read from the page that Prometheus reads.

What a reader could get wrong
    A counter counts from when the node began, and so does a share taken from a histogram: it tells of the whole time, not of just now.
"""

import re
from collections.abc import Mapping
from typing import Final

from ropewalk.base.metrics import Metric

_LINE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")

Labels = Mapping[str, str]


class Figures:
    def __init__(self, page: str) -> None:
        """Lines that say nothing are left out, as are those that nobody can read."""
        self._rows: dict[str, list[tuple[Labels, float]]] = {}
        for line in page.splitlines():
            found = _LINE.fullmatch(line)
            if found is None:
                continue
            try:
                value = float(found[3])
            except ValueError:
                continue
            labels = {name: _plain(text) for name, text in _LABEL.findall(found[2] or "")}
            self._rows.setdefault(found[1], []).append((labels, value))

    def rows(self, metric: Metric) -> list[tuple[Labels, float]]:
        return self._rows.get(metric.name, [])

    def value(self, metric: Metric) -> float:
        """All its rows together; 0 where there is none."""
        return sum(value for _, value in self.rows(metric))

    def has(self, metric: Metric) -> bool:
        return metric.name in self._rows

    def count(self, metric: Metric) -> float:
        """Of a histogram: how often something was measured."""
        return sum(value for _, value in self._rows.get(f"{metric.name}_count", []))

    def share_above(self, metric: Metric, bound_s: float) -> float:
        """Of a histogram: which share of what was measured took longer than one of its bounds."""
        total = self.count(metric)
        within = sum(
            value
            for labels, value in self._rows.get(f"{metric.name}_bucket", [])
            if labels.get("le") == f"{bound_s:g}"
        )
        return (total - within) / total if total else 0.0


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)
