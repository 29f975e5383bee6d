"""How Spark reads: which tasks a read comes to, and how far a stream has come.

What a reader could get wrong
    Readers are pickled and sent to executors, so they hold options and numbers and no connection.
    Spark asks `partitions(start, end)` again when it replays a batch after a failure; the answer depends on nothing else.
    A reader class that has `pushFilters` fails every read where push-down is off, so there are two. Spark pushes filters down in a
    worker of its own that does nothing else; only there the one that takes them is made.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import structlog
from msgspec.structs import replace
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.brokers import Brokers
from ropewalk.spark.columns import Column, chosen_columns
from ropewalk.spark.connector_options import tell_meaningless
from ropewalk.spark.options import EARLIEST, LATEST, AtOffsets, SourceOptions, parse_source
from ropewalk.spark.ranges import (
    EVER,
    Json,
    Offsets,
    Progress,
    Range,
    TopicIds,
    between,
    limited,
    made_anew,
    progress_in,
    split,
    to_json,
)
from ropewalk.spark.refusals import DataLost, said_of_made_anew
from ropewalk.spark.weights import Weights, within_bytes


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


_WEIGHED_MS: Final = 60_000
"""How long it is taken for true what brokers have said of sizes."""

_PUSH_DOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_log = structlog.get_logger()


def batch_reader(given: Mapping[str, str], schema: StructType) -> DataSourceReader:
    made = PushDownReader if _pushes_down() else BatchReader
    options = parse_source(given, streaming=False)
    if made is BatchReader:
        tell_meaningless(options.meaningless)
    return made(options, chosen_columns(schema))


def stream_reader(given: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    options = parse_source(given, streaming=True)
    tell_meaningless(options.meaningless)
    return StreamReader(options, chosen_columns(schema))


class ReadTask(InputPartition):
    """One range, for one task."""

    def __init__(self, wanted: Range, times: tuple[int, int] = EVER) -> None:
        super().__init__(None)
        self.wanted = wanted
        self.times = times


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        return [ReadTask(each) for each in _tasks(self._ranges(), self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ReadTask):
            return iter(())  # Spark's way of saying that there is nothing to read: one task, with no range
        return _reading()(self._options, self._columns, partition.wanted, partition.times)

    def _ranges(self) -> list[Range]:
        with Brokers(self._options) as brokers:
            partitions, ids = brokers.look()
            start = brokers.resolve(self._options.starting, partitions, is_start=True)
            end = brokers.resolve(self._options.ending, partitions, is_start=False)
        if not self._options.takes_new_topics:
            _refuse_another_topic(self._options.topic_ids, ids)
        if self._options.fails_on_data_loss:
            _refuse_backward(start, end)
        ids |= self._options.topic_ids  # of a topic that is gone nothing is found, and its readers say so
        return between(Progress(start, ids), Progress(end, ids))


class PushDownReader(BatchReader):
    """As `BatchReader`, and reads only what filters on offset, timestamp and partition leave."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        super().__init__(options, columns)
        self._offsets = EVER
        self._times = EVER
        self._partition: int | None = None
        self._topic: str | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Those that Spark still has to apply."""
        return [each for each in filters if not self._takes(each)]

    def partitions(self) -> Sequence[InputPartition]:
        first, end = self._offsets
        ranges = [
            replace(each, start=max(each.start, first), end=min(each.end, end))
            for each in self._ranges()
            if self._partition in (None, each.partition.partition)
            and self._topic in (None, each.partition.topic)
        ]
        ranges = [each for each in ranges if each.end > each.start]
        return [ReadTask(each, self._times) for each in _tasks(ranges, self._options)]

    def _takes(self, pushed: Filter) -> bool:
        attribute = getattr(pushed, "attribute", None)
        if attribute is None or len(attribute) != 1:
            return False
        match attribute[0], pushed:
            case "offset" | "timestamp" | "partition" | "topic", IsNotNull():
                return True  # they never are
            case "offset", _:
                bounds = _bounds(pushed, lambda value: value if type(value) is int else None)
                self._offsets = _narrowed(self._offsets, bounds)
                return bounds is not None
            case "timestamp", _:
                # A timestamp has milliseconds here, and a literal may fall between two of them.
                bounds = _bounds(pushed, _milliseconds)
                self._times = _narrowed(self._times, bounds)
                return bounds is not None
            case "partition", EqualTo(_, int(value)):
                taken = self._partition in (None, value)
                self._partition = value if taken else -1
                return True
            case "topic", EqualTo(_, str(value)):
                if self._topic not in (None, value):
                    return False
                self._topic = value
                return True
        return False


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self,
        options: SourceOptions,
        columns: tuple[Column, ...],
        now_ms: Callable[[], int] = _steady_ms,
    ) -> None:
        self._options = options
        self._columns = columns
        self._target: Progress | None = None
        """Where a query ends that reads what is available now."""
        self._seen = Progress({})
        """The ends of the partitions when they were last looked at."""
        self._told: set[str] = set()
        """Ids of topics that have taken another's place and were spoken of."""
        self._now_ms = now_ms
        self._batch_at_ms: int | None = None
        """When the last batch was given something; None before the first."""
        self._weights = Weights()
        self._weighed_at_ms: int | None = None

    def initialOffset(self) -> Json:  # noqa: N802
        with Brokers(self._options) as brokers:
            partitions, ids = brokers.look()
            offsets = brokers.resolve(self._options.starting, partitions, is_start=True)
        return Progress(offsets, {**ids, **self._options.topic_ids}).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        count = self._options.offsets_per_trigger_max
        return ReadAllAvailable() if count is None else ReadMaxRows(count)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._latest()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802
        available = self._target if self._target is not None else self._latest()
        reached, available = self._told_apart(progress_in(start), available)
        self._check(reached.offsets, available.offsets)
        ids = {**reached.ids, **available.ids}
        # What is gone by now stays where it was: an offset never goes backwards.
        ends = {
            **reached.offsets,
            **{each: max(end, reached.offsets.get(each, 0)) for each, end in available.offsets.items()},
        }
        least = self._options.offsets_per_trigger_min
        bytes_max = self._options.bytes_per_trigger_max
        if least is None and bytes_max is None and not isinstance(limit, ReadMaxRows):
            return to_json(ends, ids)
        begin = {**reached.offsets, **self._earliest(sorted(set(ends) - set(reached.offsets)))}
        if least is not None and self._waits_for_more(begin, ends, least):
            return start
        if isinstance(limit, ReadMaxRows):
            ends = limited(begin, ends, limit.max_rows)
        if bytes_max is not None and any(end > max(0, begin.get(each, 0)) for each, end in ends.items()):
            ends = within_bytes(begin, ends, self._weighed(list(available.offsets)), bytes_max)
        return to_json(ends, ids)

    def _weighed(self, partitions: list[TopicPartition]) -> Weights:
        now_ms = self._now_ms()
        is_known = set(partitions) <= self._weights.bytes_per_offset.keys()
        if self._weighed_at_ms is None or not is_known or now_ms - self._weighed_at_ms >= _WEIGHED_MS:
            with Brokers(self._options) as brokers:
                self._weights = brokers.weights(partitions)
            self._weighed_at_ms = now_ms
        return self._weights

    def _told_apart(self, reached: Progress, available: Progress) -> tuple[Progress, Progress]:
        """Without what belongs to a topic whose name another has by now: as read, so that the other is read from its start, or, where
        that is not allowed, as there, so that it stays where it was."""
        names = made_anew(reached.ids, available.ids)
        if not names:
            return reached, available
        goes_on = self._options.takes_new_topics
        if not goes_on and self._options.subscription.pattern is None:
            raise DataLost(said_of_made_anew(names[0], reached.ids[names[0]], available.ids[names[0]]))
        for name in names:
            if available.ids[name] not in self._told:
                self._told.add(available.ids[name])
                count = sum(end for each, end in available.offsets.items() if each.topic == name)
                what = (
                    "read from its start"
                    if goes_on
                    else "left out; onNewTopic=append reads it from its start"
                )
                _log.warning(
                    f"a topic was made anew and is {what}",
                    topic=name,
                    read_id=reached.ids[name],
                    found_id=available.ids[name],
                    offsets=count,
                )
        return (reached.without(names), available) if goes_on else (reached, available.without(names))

    def _waits_for_more(self, begin: Offsets, available: Offsets, least: int) -> bool:
        """A query that reads what is available now never waits: to bring nothing would end it."""
        count = sum(max(0, end - begin.get(each, 0)) for each, end in available.items())
        now_ms = self._now_ms()
        delay_ms = self._options.trigger_delay_max_ms
        is_early = self._batch_at_ms is not None and now_ms - self._batch_at_ms < delay_ms
        if count < least and is_early and self._target is None:
            return True
        if count:
            self._batch_at_ms = now_ms
        return False

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        return to_json(self._seen.offsets) if self._seen.offsets else None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        ranges = between(progress_in(start), progress_in(end))
        return [ReadTask(each) for each in _tasks(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ReadTask):
            return iter(())
        return _reading()(self._options, self._columns, partition.wanted)

    def _latest(self) -> Progress:
        with Brokers(self._options) as brokers:
            partitions, ids = brokers.look()
            self._seen = Progress(brokers.resolve(AtOffsets(LATEST), partitions, is_start=False), ids)
        return self._seen

    def _earliest(self, newcomers: list[TopicPartition]) -> Offsets:
        """Shares are of what is there. A batch that ended where nothing is left would have the next one look for what is gone."""
        if not newcomers:
            return {}
        with Brokers(self._options) as brokers:
            return brokers.resolve(AtOffsets(EARLIEST), newcomers, is_start=True)

    def _check(self, reached: Offsets, available: Offsets) -> None:
        shorter = sorted(each for each, offset in reached.items() if available.get(each, offset) < offset)
        if shorter and self._options.fails_on_data_loss:
            first = shorter[0]
            raise DataLost(
                f"{_names(shorter)} ends before the offset where the query goes on: {first} at {available[first]}, and it goes on at"
                f" {reached[first]}. The topic was made anew, or startingOffsets lie behind its end. Start over with another checkpoint at"
                " offsets that there are, or say failOnDataLoss=false"
            )


def _tasks(ranges: Iterable[Range], options: SourceOptions) -> list[Range]:
    return split(ranges, options.partitions_min, records_max=options.records_per_partition_max)


def _refuse_another_topic(asked: TopicIds, found: TopicIds) -> None:
    """Offsets of the one mean nothing in the other, whichever is longer."""
    for name in made_anew(asked, found):
        raise DataLost(said_of_made_anew(name, asked[name], found[name]))


def _refuse_backward(start: Offsets, end: Offsets) -> None:
    backward = sorted(each for each, offset in start.items() if offset > end[each])
    if backward:
        first = backward[0]
        raise DataLost(
            f"{_names(backward)} ends before the start: {first} at {end[first]}, and {start[first]} was asked for."
            " Name other offsets, or say failOnDataLoss=false to read nothing of it"
        )


def _reading() -> Callable[..., Iterator[pa.RecordBatch]]:
    """Imported by tasks alone: Spark starts several processes that only look at the source, and compiled loops load slowly."""
    from ropewalk.spark.reading import read

    return read


def _pushes_down() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSH_DOWN_WORKER in sys.modules or (main is not None and main.name == _PUSH_DOWN_WORKER)


def _bounds(pushed: Filter, as_number: Any) -> tuple[int, int] | None:
    """First and end, the end not included; None where the filter is another kind or the literal no such number."""
    number = as_number(getattr(pushed, "value", None))
    if number is None:
        return None
    match pushed:
        case EqualTo():
            return number, number + 1
        case GreaterThan():
            return number + 1, EVER[1]
        case GreaterThanOrEqual():
            return number, EVER[1]
        case LessThan():
            return EVER[0], number
        case LessThanOrEqual():
            return EVER[0], number + 1
    return None


def _narrowed(range_: tuple[int, int], bounds: tuple[int, int] | None) -> tuple[int, int]:
    return range_ if bounds is None else (max(range_[0], bounds[0]), min(range_[1], bounds[1]))


def _milliseconds(literal: object) -> int | None:
    """None for what is no whole millisecond: Spark then compares itself."""
    if not isinstance(literal, datetime):
        return None
    aware = literal if literal.tzinfo is not None else literal.astimezone()
    since = aware - _EPOCH
    return None if since % timedelta(milliseconds=1) else since // timedelta(milliseconds=1)


def _names(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
