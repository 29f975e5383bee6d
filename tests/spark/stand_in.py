"""As much of a Spark session as an archive uses, without Java: streams in micro-batches with a checkpoint, and jobs whose tasks run here.

    spark = StandIn()
    query = Archive.start(work_with(spark)).query
    query.awaitTermination()

It writes down where a batch ends before it begins it, and that it is done afterwards, in the files that Spark has. The source is the real one.
Nothing of a frame can be asked for but its session: whoever wants rows needs Spark.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from ropewalk.spark.columns import all_columns
from ropewalk.spark.options import parse_source
from ropewalk.spark.ranges import Json
from ropewalk.spark.readers import StreamReader


class StandIn:
    def __init__(self, before_batch: Callable[[int], None] = lambda _: None) -> None:
        self.before_batch = before_batch
        """Called when a batch is written down and not begun yet."""
        self.sparkContext = _Context()

    @property
    def readStream(self) -> "_Given":  # noqa: N802  Spark's name
        return _Given(self)

    def range(self, start: int, end: int, step: int, count: int) -> "_Rows":
        assert (step, count) == (1, end - start), "a task for each number"
        return _Rows([pa.record_batch({"id": pa.array([number])}) for number in range(start, end)])


class _Context:
    defaultParallelism = 2  # noqa: N815  Spark's name

    def setJobDescription(self, description: str) -> None:  # noqa: N802  Spark's name
        assert "batch" in description


class _Rows:
    """Each batch is that of a task of its own."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = batches

    def mapInArrow(self, task: Callable[[Iterator[pa.RecordBatch]], Any], _: str) -> "_Rows":  # noqa: N802
        return _Rows([handed for batch in self._batches for handed in task(iter([batch]))])

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for batch in self._batches for row in batch.to_pylist()]


class _Given:
    """A reader, then a frame, then a writer: what was said so far."""

    def __init__(self, spark: StandIn) -> None:
        self.sparkSession = spark
        self._options: dict[str, str] = {}
        self._function: Callable[[Any, int], None] | None = None
        self._once = False

    def format(self, name: str) -> Self:
        assert name == "ropewalk"
        return self

    def options(self, **options: str) -> Self:
        self._options |= options
        return self

    def load(self) -> "_Given":
        written = _Given(self.sparkSession)
        written._reader = StreamReader(
            parse_source(self._options, streaming=True), all_columns(with_headers=True)
        )
        return written

    @property
    def writeStream(self) -> Self:  # noqa: N802  Spark's name
        return self

    def queryName(self, _: str) -> Self:  # noqa: N802  Spark's name
        return self

    def option(self, name: str, value: str) -> Self:
        self._options[name] = value
        return self

    def trigger(self, **when: Any) -> Self:
        self._once = when.get("availableNow", False)
        return self

    def foreachBatch(self, function: Callable[[Any, int], None]) -> Self:  # noqa: N802  Spark's name
        self._function = function
        return self

    _reader: StreamReader

    def start(self) -> "Query":
        assert self._function is not None
        return Query(
            self, self._reader, self._function, Path(self._options["checkpointLocation"]), once=self._once
        )


class Query:
    """Runs when it is asked to."""

    def __init__(
        self,
        frame: _Given,
        reader: StreamReader,
        function: Callable[[Any, int], None],
        checkpoint: Path,
        *,
        once: bool,
    ) -> None:
        self._frame, self._reader, self._function = frame, reader, function
        self._offsets, self._commits = checkpoint / "offsets", checkpoint / "commits"
        for each in (self._offsets, self._commits):
            each.mkdir(parents=True, exist_ok=True)
        if once:
            reader.prepareForTriggerAvailableNow()

    def awaitTermination(self, _: float | None = None) -> bool:  # noqa: N802  Spark's name
        """Everything that is there; raises what a batch did."""
        while self.step():
            pass
        return True

    def step(self) -> bool:
        """The batch that was begun and not ended, or else the next one; whether there was one."""
        begun, done = _newest(self._offsets), _newest(self._commits)
        number = done + 1
        if begun == done:
            start = self._reader.initialOffset() if done < 0 else self._end(done)
            end = json.loads(json.dumps(self._reader.latestOffset(start, self._reader.getDefaultReadLimit())))
            if end == start and number:
                return False
            (self._offsets / str(number)).write_text(f"v1\n{{}}\n{json.dumps(end)}")
        self._frame.sparkSession.before_batch(number)
        self._function(self._frame, number)
        (self._commits / str(number)).write_text("v1\n{}")
        return True

    def _end(self, batch: int) -> Json:
        found: Json = json.loads((self._offsets / str(batch)).read_text().splitlines()[2])
        return found


def _newest(directory: Path) -> int:
    return max((int(each.name) for each in directory.iterdir()), default=-1)
