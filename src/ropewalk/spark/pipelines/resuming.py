"""Where a job begins to read: decided in `beginnings.py`, and carried out here.

What a reader could get wrong
    The beginning is written down before the query is started, and after what was left half written is finished. If this process
    dies in between, the next one finds the same output and comes to the same answer.
"""

import json
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

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
from ropewalk.spark.pipelines.kept import has_progress, write_kept
from ropewalk.spark.pipelines.outputs import Batch, Output
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.pipelines.query_shape import Shape
from ropewalk.spark.pipelines.rereading import BOUNDS, SUBSCRIPTIONS, once_more, without
from ropewalk.spark.pipelines.session import SHUFFLE_PARTITIONS
from ropewalk.spark.pipelines.sql_query import SqlQuery
from ropewalk.spark.ranges import Progress, to_json
from ropewalk.spark.refusals import WrongUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = structlog.get_logger()


def begin(
    work: Work,
    source: SourceOptions,
    query: SqlQuery,
    output: Output,
    definition: Definition,
    shape: Shape,
    kept: Kept | None,
) -> Progress:
    """Where the query began, or is to begin, in every partition."""
    progress = has_progress(work.spark, work.checkpoint)
    shuffle_partitions = int(work.spark.conf.get(SHUFFLE_PARTITIONS, "200") or 200)
    with Brokers(source) as brokers:
        partitions, topic_ids = brokers.look()
        if output.topic is not None:
            _refuse_missing(brokers, output.topic)
        decided = decide(
            definition,
            kept,
            has_progress=progress,
            resumption=None
            if progress
            else output.resumption(partitions, topic_ids, on_new_topic=source.on_new_topic),
            shape=shape,
        )
        match decided:
            case Continue(beginning):
                if kept is not None and kept.shuffle_partitions not in (None, shuffle_partitions):
                    _log.warning(
                        "the checkpoint goes on with the shuffle partitions that it began with",
                        began_with=kept.shuffle_partitions,
                        asked_for=shuffle_partitions,
                    )
                return beginning
            case Begin():
                began = Progress(brokers.resolve(source.starting, partitions, is_start=True), topic_ids)
            case Resume(unfinished, reached, known_ids):
                topic_ids |= known_ids
                output.take_over()
                if unfinished is not None:
                    batch = Batch(f"resumed {uuid4()}", 0, unfinished, definition.fingerprint(), topic_ids)
                    rows = once_more(work.spark, work.bootstrap, work.source, unfinished, topic_ids)
                    output.write(query.over(rows), batch)
                began = Progress(with_newcomers(reached, partitions), topic_ids)
    write_kept(
        work.spark,
        work.checkpoint,
        Kept(definition, began.to_json(), shuffle_partitions, sink_of(work, kept)),
    )
    return began


def sink_of(work: Work, kept: Kept | None) -> str:
    """Under which name the job writes to topics: as its checkpoint says, if there is one."""
    if kept is not None:
        return kept.sink or work.name
    return work.sink or work.name


def _refuse_missing(brokers: Brokers, topic: str) -> None:
    view = brokers.wait(brokers.client.metadata((topic,)))
    if not any(each.name == topic and each.partitions for each in view.topics):
        raise WrongUse(
            f"there is no topic {topic} to write to; create it first, with as many partitions as it is to have"
        )


def stream_from(work: Work, topic: str | None, beginning: Progress | None = None) -> "DataFrame":
    """A topic, or all that the job reads, from where it says or from a beginning that was decided."""
    options = dict(work.source)
    if topic is not None:
        options = {**without(options, SUBSCRIPTIONS), "subscribe": topic}
    if beginning is not None:
        mine = {each: offset for each, offset in beginning.offsets.items() if topic in (None, each.topic)}
        starting = tuple(f"starting{bound}" for bound in BOUNDS)
        options = {**without(options, starting), "startingOffsets": json.dumps(to_json(mine, beginning.ids))}
    return (
        work.spark.readStream.format("ropewalk").option("bootstrap", work.bootstrap).options(**options).load()
    )
