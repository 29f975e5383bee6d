"""How far a job has come, from what Spark reports of its query. Told what was reported; asks nobody.

What a reader could get wrong
    Spark reports a trigger that found nothing as well; that is no batch. It keeps the last hundred reports, and they are handed over again
    and again: those that were taken already are passed over.
    The lag is what the source knew when it made the batch, so between batches it is not of this moment.
    Of a partition that nothing was read of yet no lag is known before it was seen.
    Rows that were read are as tasks have counted them, where they do (`figures.py`). Where Spark counts, it counts a row as often as it is looked at,
    which a query with two branches does twice: so never more of them than the batch has offsets. Where nobody has counted, offsets are
    counted, those that compaction and transactions leave empty among them. Spark does not say where the first batch of a query begins, so whoever started it does.
    Rows that came too late are as Spark counts them, unless who started the query counts them: Spark drops them after it has taken rows
    of one group together, and counts each group once.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.figures import Tally
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
    written_rows: int | None = None
    """Written in this run, and so are the bytes and files; None if that was not counted where this is told."""
    written_bytes: int | None = None
    written_files: int | None = None
    dead_letters: int | None = None
    """Rows of this run that went to the table of dead letters."""
    unreadable_rows: int | None = None
    """Rows of this run that could not be read, whatever became of them."""
    late_rows: int = 0
    """Rows of this run that came too late to be counted."""
    state_rows: int | None = None
    """Rows that Spark keeps for batches to come; None for queries that take every row for itself."""


class Progress:
    __slots__ = ("_counted_from", "_counts_late_rows", "_last", "_reads_by_itself", "_snapshot", "_tally")

    def __init__(
        self,
        counted_from: Offsets | None = None,
        tally: Tally | None = None,
        *,
        reads_by_itself: bool = False,
        counts_late_rows: bool = False,
    ) -> None:
        """As `Started` has them."""
        self._counted_from = counted_from
        self._tally = tally
        self._reads_by_itself = reads_by_itself
        self._counts_late_rows = counts_late_rows
        self._last = ("", -1)
        self._snapshot = Snapshot()

    @property
    def snapshot(self) -> Snapshot:
        """Figures are of this moment: what a batch has written counts although Spark does not know yet that it is over."""
        if self._tally is None:
            return self._snapshot
        total = self._tally.total
        return replace(
            self._snapshot,
            written_rows=total.written_rows,
            written_bytes=total.written_bytes,
            written_files=total.written_files,
            dead_letters=total.dead_letters,
            unreadable_rows=total.unreadable_rows,
            late_rows=total.late_rows if self._counts_late_rows else self._snapshot.late_rows,
        )

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
                ended.append(self.snapshot)
            else:
                self._snapshot = _idle(self._snapshot, report)
        return ended

    def _rows(self, report: Mapping[str, Any]) -> int:
        figures = None if self._tally is None else self._tally.take(int(report["batchId"]))
        covered = None if self._counted_from is None else _covered(report, self._counted_from)
        if self._reads_by_itself:
            return figures.read_rows if figures is not None else covered or 0
        return _rows(report) if covered is None else min(covered, _rows(report))


def _after(before: Snapshot, report: Mapping[str, Any], rows: int) -> Snapshot:
    lags = _lags(report) or before.lags
    seconds = report["durationMs"].get("triggerExecution", report.get("batchDuration", 0)) / 1000
    operators = report.get("stateOperators") or ()
    return Snapshot(
        late_rows=before.late_rows + sum(int(each.get("numRowsDroppedByWatermark", 0)) for each in operators),
        state_rows=sum(int(each.get("numRowsTotal", 0)) for each in operators) if operators else None,
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
    return replace(before, lag=sum(each.lag for each in lags), lags=lags)


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
    """How many offsets the batch goes over. A topic that two sources of the query read counts once."""
    counts: dict[tuple[str, str], int] = {}
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
                counts[topic, index] = max(counts.get((topic, index), 0), end - max(0, start))
    return sum(counts.values())


def _offsets(said: object) -> object:
    """Either as they are or as text that holds them, as sources report them to Spark."""
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except json.JSONDecodeError:
            return said
    return {topic: each for topic, each in said.items() if topic != IDS} if isinstance(said, dict) else said
