"""One task of a batch, exactly once: its rows and its marker in one transaction. Runs on executors.

1. The task's transactional id is taken over: whoever else writes under it, in another attempt or another driver, is fenced, and what
   that one left open is aborted.
2. The marker is read. It is a record of a compacted topic (`marker_store.py`), so that it can be part of the transaction and is never forgotten.
3. `marker.decide` says whether to write. If so: rows, then the marker, then the commit.

What a reader could get wrong
    Nothing here depends on who ran before: between 1 and the commit nobody else can commit under the id without fencing this task.
    A commit whose answer is lost is asked for again; a task that ends in between has written, and its next attempt reads so.
    A task without rows leaves a marker, too: the next batch must find the one before.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from ropewalk.client.blocking.producer import Producer
from ropewalk.client.errors import OutcomeUnknown
from ropewalk.spark.columns import Column
from ropewalk.spark.fail_points import reach
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.digest import RowsDigest
from ropewalk.spark.sink.incoming import by_topic, gathered
from ropewalk.spark.sink.marker import Decision, Marker, decide, digest_of, succeeding
from ropewalk.spark.sink.marker_store import MarkerStore
from ropewalk.spark.sink.options import SinkOptions
from ropewalk.spark.sink.recovery import Resumption, released, resumption
from ropewalk.spark.sink.writing import RowSender, connected, telling_why

COMMITS_ASKED_MAX: Final = 5
"""How often a commit is asked for whose answer does not come; each waits as long as `kafka.max.block.ms`."""


def write_once(
    options: SinkOptions,
    columns: tuple[Column, ...],
    batches: Iterator[pa.RecordBatch],
    *,
    task: int,
    query: str,
    batch: int,
) -> tuple[int, Decision]:
    """How many rows were written, or found written, and which. Raises as `decide` does."""
    exactly_once = options.exactly_once
    assert exactly_once is not None
    if task >= exactly_once.tasks:
        raise WrongUse(
            f"task {task} has come, and tasks={exactly_once.tasks}: write .repartition({exactly_once.tasks}, …) before the sink"
        )
    ranges = exactly_once.ranges
    digest = None if ranges is None else digest_of(ranges, exactly_once.fingerprint)
    offered = Marker(query, batch, exactly_once.tasks, digest, ranges, ids=exactly_once.topic_ids)
    with connected(options, transactional_id(exactly_once.name, task)) as producer:
        markers = MarkerStore(producer, options)
        stored = markers.read(task)
        decision = decide(stored, offered, markers.read_first() if stored is None else None)
        if decision is Decision.SKIP:
            return 0, decision
        if decision is Decision.READ_FIRST:
            seen = RowsDigest()
            row_count = 0
            for rows in gathered(batches):
                _add(seen, rows, columns, options)
                row_count += rows.num_rows
            return row_count, decide(stored, replace(offered, digest=seen.text))
        row_count = _write(producer, markers, options, columns, batches, task, stored, offered)
    reach("sink committed")
    return row_count, decision


def recover(options: SinkOptions) -> Resumption | None:
    """Where to go on after the checkpoint was lost; None to begin anew. Afterwards no former query of the name can write.

    Fences whoever writes under the sink's name. Called once, before the query that is to go on is started.
    """
    found = fenced_markers(options)
    resumed = resumption(found)
    if resumed is not None:
        _release(options, released(found))
    return resumed


def release(options: SinkOptions) -> None:
    """No former query of the name can write any more; another may go on from where the markers are."""
    _release(options, released(fenced_markers(options)))


def fenced_markers(options: SinkOptions) -> list[Marker | None]:
    """Of all tasks in their order, when nobody who writes them can write any more. The query that wrote them may go on."""
    exactly_once = options.exactly_once
    assert exactly_once is not None
    found: list[Marker | None] = []
    for task in range(exactly_once.tasks):
        with connected(options, transactional_id(exactly_once.name, task)) as producer:
            found.append(MarkerStore(producer, options).read(task))
    return found


def transactional_id(name: str, task: int) -> str:
    return f"ropewalk-{name}-{task}"


def _write(
    producer: Producer,
    markers: MarkerStore,
    options: SinkOptions,
    columns: tuple[Column, ...],
    batches: Iterator[pa.RecordBatch],
    task: int,
    stored: Marker | None,
    offered: Marker,
) -> int:
    seen = RowsDigest()
    row_count = 0
    producer.begin_transaction()
    rows = RowSender(producer, options, columns)
    for batch in gathered(batches):
        if offered.digest is None:
            _add(seen, batch, columns, options)
        rows.send(batch)
        row_count += batch.num_rows
    digest = seen.text if offered.digest is None else offered.digest
    marker = succeeding(stored, replace(offered, digest=digest))
    with telling_why(options):
        markers.refuse_another_topic()
        if stored is None:
            markers.write(None, marker)
        markers.write(task, marker)
        reach("sink before commit")
        _commit(producer)
    return row_count


def _commit(producer: Producer) -> None:
    for asked in range(1, COMMITS_ASKED_MAX + 1):
        try:
            producer.commit_transaction()
            return
        except OutcomeUnknown:
            if asked == COMMITS_ASKED_MAX:
                raise


def _release(options: SinkOptions, markers: Sequence[Marker]) -> None:
    exactly_once = options.exactly_once
    assert exactly_once is not None
    for task, marker in enumerate(markers):
        with connected(options, transactional_id(exactly_once.name, task)) as producer:
            producer.begin_transaction()
            MarkerStore(producer, options).write(task, marker)
            _commit(producer)


def _add(seen: RowsDigest, rows: pa.RecordBatch, columns: tuple[Column, ...], options: SinkOptions) -> None:
    for _, of_topic in by_topic(rows, columns, options.topic):
        seen.add(of_topic)
