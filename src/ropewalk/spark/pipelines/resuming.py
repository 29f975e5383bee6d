"""Where a job begins to read: decided in `beginnings.py`, and carried out here.

What a reader could get wrong
    The beginning is written down before the query is started, and after what was left half written is finished. If this process
    dies in between, the next one finds the same output and comes to the same answer.
"""

import json
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ropewalk.spark.brokers import Brokers
from ropewalk.spark.options import SourceOptions
from ropewalk.spark.pipelines.beginnings import (
    Begin,
    Continue,
    Definition,
    Kept,
    Resume,
    decide,
    with_newcomers,
)
from ropewalk.spark.pipelines.kept import has_progress, read_kept, write_kept
from ropewalk.spark.pipelines.outputs import Batch, Output
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.pipelines.query_shape import Shape
from ropewalk.spark.pipelines.sql_query import SqlQuery
from ropewalk.spark.ranges import Offsets, to_json
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.marker import Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BOUNDS: Final = ("offsets", "timestamp", "offsetsbytimestamp")
_SUBSCRIPTIONS: Final = ("subscribe", "subscribepattern", "assign")


def begin(
    work: Work, source: SourceOptions, query: SqlQuery, output: Output, definition: Definition, shape: Shape
) -> Offsets:
    """Where the query began, or is to begin, in every partition."""
    progress = has_progress(work.spark, work.checkpoint)
    with Brokers(source) as brokers:
        partitions, topic_ids = brokers.look()
        if output.topic is not None:
            _refuse_missing(brokers, output.topic)
        decided = decide(
            definition,
            read_kept(work.spark, work.checkpoint),
            has_progress=progress,
            resumption=None
            if progress
            else output.resumption(partitions, topic_ids, takes_new_topics=source.takes_new_topics),
            shape=shape,
        )
        match decided:
            case Continue(beginning):
                return beginning
            case Begin():
                beginning = brokers.resolve(source.starting, partitions, is_start=True)
            case Resume(unfinished, reached):
                output.take_over()
                if unfinished is not None:
                    batch = Batch(f"resumed {uuid4()}", 0, unfinished, definition.fingerprint(), topic_ids)
                    output.write(query.over(_once_more(work, unfinished)), batch)
                beginning = with_newcomers(reached, partitions)
    write_kept(work.spark, work.checkpoint, Kept(definition, to_json(beginning)))
    return beginning


def _refuse_missing(brokers: Brokers, topic: str) -> None:
    view = brokers.wait(brokers.client.metadata((topic,)))
    if not any(each.name == topic and each.partitions for each in view.topics):
        raise WrongUse(
            f"there is no topic {topic} to write to; create it first, with as many partitions as it is to have"
        )


def stream_from(work: Work, topic: str | None, beginning: Offsets | None = None) -> "DataFrame":
    """A topic, or all that the job reads, from where it says or from a beginning that was decided."""
    options = dict(work.source)
    if topic is not None:
        options = {**_without(options, _SUBSCRIPTIONS), "subscribe": topic}
    if beginning is not None:
        mine = {each: offset for each, offset in beginning.items() if topic in (None, each.topic)}
        starting = tuple(f"starting{bound}" for bound in _BOUNDS)
        options = {**_without(options, starting), "startingOffsets": json.dumps(to_json(mine))}
    return (
        work.spark.readStream.format("ropewalk").option("bootstrap", work.bootstrap).options(**options).load()
    )


def _once_more(work: Work, ranges: Ranges) -> "DataFrame":
    """Exactly these records."""
    dropped = (*_SUBSCRIPTIONS, *(f"{side}{bound}" for side in ("starting", "ending") for bound in _BOUNDS))
    read = {each: bounds for each, bounds in ranges.items() if bounds[1] > max(bounds[0], 0)}
    assigned: dict[str, list[int]] = {}
    for each in sorted(read):
        assigned.setdefault(each.topic, []).append(each.partition)
    options = {
        **_without(work.source, dropped),
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(to_json({each: start for each, (start, _) in read.items()})),
        "endingOffsets": json.dumps(to_json({each: end for each, (_, end) in read.items()})),
    }
    return work.spark.read.format("ropewalk").option("bootstrap", work.bootstrap).options(**options).load()


def _without(options: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() not in names}
