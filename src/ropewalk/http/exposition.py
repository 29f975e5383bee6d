"""Prometheus's text format, version 0.0.4.

The format is a dozen rules; the official client library takes a tenth of a second to import and ten times as long for a
page. Its parser checks ours in the tests.
"""

from collections.abc import Callable
from typing import Final

from ropewalk.base.durations import BOUNDS_MS, Durations
from ropewalk.base.metrics import METRICS, Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_BOUNDS: Final = tuple(f"{bound_ms / 1000:g}" for bound_ms in BOUNDS_MS)


class Exposition:
    """A `Sheet`. All lines of a metric stand together, whatever the order in which they were added."""

    def __init__(self, *, per_partition: bool) -> None:
        """Without `per_partition`, metrics that have a line for every partition are left out."""
        self.per_partition = per_partition
        self._lines: dict[Metric, list[str]] = {}
        self._settled: dict[Metric, list[bytes]] = {}
        self._rows: dict[tuple[Metric, ...], list[tuple[str, Callable[[str], None]]]] = {}
        """How each metric of a row begins its lines, and where they go: a page has thousands of the same rows."""

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        if not self.per_partition and metric.is_per_partition:
            return
        written = _labels(metric.labels, labels)
        braced = f"{{{written}}}" if written else ""
        self._lines_of(metric).append(f"{metric.name}{braced} {value}\n")

    def add_row(self, row: tuple[Metric, ...], values: tuple[float, ...], *labels: str) -> None:
        if not self.per_partition and row[0].is_per_partition:
            return
        written = _labels(row[0].labels, labels) + "} "
        places = self._rows.get(row)
        if places is None:
            places = self._rows[row] = [(f"{metric.name}{{", self._lines_of(metric).append) for metric in row]
        for (start, append), value in zip(places, values, strict=True):
            append(f"{start}{written}{value}\n")

    def add_durations(self, metric: Metric, durations: Durations, *labels: str) -> None:
        written = _labels(metric.labels, labels)
        before = f"{written}," if written else ""
        braced = f"{{{written}}}" if written else ""
        lines = self._lines_of(metric)
        count = 0
        for bound, in_bucket in zip(_BOUNDS, durations.counts, strict=False):
            count += in_bucket
            lines.append(f'{metric.name}_bucket{{{before}le="{bound}"}} {count}\n')
        lines.append(f'{metric.name}_bucket{{{before}le="+Inf"}} {durations.count}\n')
        lines.append(f"{metric.name}_sum{braced} {durations.total_ms / 1000}\n")
        lines.append(f"{metric.name}_count{braced} {durations.count}\n")

    def settle(self) -> None:
        """Turn what has been added into bytes, so that the work is spread over the slices."""
        for metric, lines in self._lines.items():
            if lines:
                self._settled.setdefault(metric, []).append("".join(lines).encode())
                lines.clear()

    def chunks(self) -> list[bytes]:
        """The page. Metrics that nobody added are left out."""
        self.settle()
        page: list[bytes] = []
        for metric in METRICS:
            settled = self._settled.get(metric)
            if settled is not None:
                help_text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
                page.append(
                    f"# HELP {metric.name} {help_text}\n# TYPE {metric.name} {metric.kind.value}\n".encode()
                )
                page += settled
        return page

    def _lines_of(self, metric: Metric) -> list[str]:
        lines = self._lines.get(metric)
        if lines is None:
            lines = self._lines[metric] = []
        return lines


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)])


def _escaped(value: str) -> str:
    if value.isalnum():
        return value
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
