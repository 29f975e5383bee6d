"""How far a job has come, from what Spark reports of its query. Told what was reported; asks nobody.

What a reader could get wrong
    Spark reports a trigger that found nothing as well; that is no batch. It keeps the last hundred reports, and they are handed over again
    and again: those that were taken already are passed over.
    The lag is what the source knew when it made the batch, so between batches it is not of this moment.
    Of a partition that nothing was read of yet no lag is known before it was seen.
    Where tasks read records themselves Spark counts none, and offsets are counted in their place; what compaction and transactions
    leave empty is among them. Spark does not say where the first batch of a query begins, so whoever started it does.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import IDS, Offsets


class PartitionLag(Struct, frozen=True):
    topic: str
    partition: int
    lag: int


class Snapshot(Struct, frozen=True, kw_only=True):
    """What is known of a job at one moment."""

    batches: int = 0
    """Of this run."""
    rows: int = 0
    """Read in this run."""
    batch: int | None = None
    """The number of the last batch, counted from the job's first run on."""
    batch_rows: int = 0
    batch_seconds: float = 0.0
    batch_at: str | None = None
    """When the last batch began, as Spark writes it."""
    rows_per_second: float = 0.0
    """Of the last batch."""
    busy_seconds: float = 0.0
    """All batches together."""
    lag: int | None = None
    """Records there that are not read, over all partitions; None before anything is known."""
    lags: tuple[PartitionLag, ...] = ()


class Progress:
    __slots__ = ("_counted_from", "_last", "_snapshot")

    def __init__(self, counted_from: Offsets | None = None) -> None:
        """`counted_from`: where the first batch begins, if offsets are to be counted; None if Spark counts rows."""
        self._counted_from = counted_from
        self._last = ("", -1)
        self._snapshot = Snapshot()

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def take(self, reports: Iterable[Mapping[str, Any]]) -> list[Snapshot]:
        """The reports as Spark's JSON has them, oldest first. Answers with one snapshot for each batch that ended since."""
        ended = []
        for report in reports:
            key = (str(report["timestamp"]), int(report["batchId"]))
            if key <= self._last:
                continue
            self._last = key
            is_batch = "addBatch" in report.get("durationMs", {})
            if is_batch:
                self._snapshot = _after(self._snapshot, report, self._rows(report))
                ended.append(self._snapshot)
            else:
                self._snapshot = _idle(self._snapshot, report)
        return ended

    def _rows(self, report: Mapping[str, Any]) -> int:
        return _rows(report) if self._counted_from is None else _covered(report, self._counted_from)


def _after(before: Snapshot, report: Mapping[str, Any], rows: int) -> Snapshot:
    lags = _lags(report) or before.lags
    seconds = report["durationMs"].get("triggerExecution", report.get("batchDuration", 0)) / 1000
    return Snapshot(
        batches=before.batches + 1,
        rows=before.rows + rows,
        batch=int(report["batchId"]),
        batch_rows=rows,
        batch_seconds=seconds,
        batch_at=str(report["timestamp"]),
        rows_per_second=rows / seconds if seconds > 0 else 0.0,
        busy_seconds=before.busy_seconds + seconds,
        lag=sum(each.lag for each in lags) if lags else before.lag,
        lags=lags,
    )


def _idle(before: Snapshot, report: Mapping[str, Any]) -> Snapshot:
    lags = _lags(report)
    if not lags:
        return before
    changed = {"lag": sum(each.lag for each in lags), "lags": lags}
    return Snapshot(**{name: getattr(before, name) for name in before.__struct_fields__} | changed)


def _lags(report: Mapping[str, Any]) -> tuple[PartitionLag, ...]:
    found: dict[tuple[str, int], int] = {}
    for source in report.get("sources", ()):
        reached, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if not isinstance(reached, dict) or not isinstance(latest, dict):
            continue  # another kind of source, or one that has not said
        for topic, partitions in latest.items():
            for index, end in partitions.items():
                behind = max(0, end - max(0, reached.get(topic, {}).get(index, 0)))
                # A topic may be read by two sources of a query; what is further behind is what is not done.
                key = (topic, int(index))
                found[key] = max(behind, found.get(key, 0))
    return tuple(PartitionLag(topic, index, lag) for (topic, index), lag in sorted(found.items()))


def _rows(report: Mapping[str, Any]) -> int:
    """A Connect server leaves out the sum, and tells the rows of each source."""
    if "numInputRows" in report:
        return max(0, int(report["numInputRows"]))
    return sum(max(0, int(source.get("numInputRows", 0))) for source in report.get("sources", ()))


def _covered(report: Mapping[str, Any], counted_from: Offsets) -> int:
    """How many offsets the batch goes over."""
    count = 0
    for source in report.get("sources", ()):
        began, reached = _offsets(source.get("startOffset")), _offsets(source.get("endOffset"))
        if not isinstance(reached, dict):
            continue
        for topic, partitions in reached.items():
            for index, end in partitions.items():
                if isinstance(began, dict):  # a partition that is not in it came into being since
                    start = began.get(topic, {}).get(index, 0)
                else:
                    start = counted_from.get(TopicPartition(topic, int(index)), 0)
                count += max(0, end - max(0, start))
    return count


def _offsets(said: object) -> object:
    """Either as they are or as text that holds them, as sources report them to Spark."""
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except json.JSONDecodeError:
            return said
    return {topic: each for topic, each in said.items() if topic != IDS} if isinstance(said, dict) else said
