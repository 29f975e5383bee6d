"""One task of a batch, exactly once: its rows and its marker in one transaction. Runs on executors.

1. The task's transactional id is taken over: whoever else writes under it, in another attempt or another driver, is fenced, and what
   that one left open is aborted.
2. The marker is read. It is an offset that a group of its own has committed, so that it can be part of the transaction.
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

from ropewalk.base.ids import TopicPartition
from ropewalk.client.blocking.producer import Producer
from ropewalk.client.errors import OutcomeUnknown
from ropewalk.client.group_offsets import OffsetToCommit
from ropewalk.spark.columns import Column
from ropewalk.spark.fail_points import reach
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.digest import RowsDigest
from ropewalk.spark.sink.incoming import by_topic, gathered
from ropewalk.spark.sink.marker import Decision, Marker, decide, digest_of, from_text, succeeding, to_text
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
    assert options.topic is not None
    if task >= exactly_once.tasks:
        raise WrongUse(
            f"task {task} has come, and tasks={exactly_once.tasks}: write .repartition({exactly_once.tasks}, …) before the sink"
        )
    ranges = exactly_once.ranges
    digest = None if ranges is None else digest_of(ranges, exactly_once.fingerprint)
    offered = Marker(query, batch, exactly_once.tasks, digest, ranges)
    with connected(options, transactional_id(exactly_once.name, task)) as producer:
        stored = read_marker(producer, exactly_once.name, task, options.topic)
        first = None
        if stored is None:
            # Not waiting for others who are about to commit: theirs may be a transaction that only their next attempt ends.
            first = _read(producer, first_group(exactly_once.name), options.topic, stable=False)
        decision = decide(stored, offered, first)
        if decision is Decision.SKIP:
            return 0, decision
        if decision is Decision.READ_FIRST:
            seen = RowsDigest()
            row_count = 0
            for rows in gathered(batches):
                _add(seen, rows, columns, options.topic)
                row_count += rows.num_rows
            return row_count, decide(stored, replace(offered, digest=seen.text))
        row_count = _write(producer, options, columns, batches, task, stored, offered)
    reach("sink committed")
    return row_count, decision


def recover(options: SinkOptions) -> Resumption | None:
    """Where to go on after the checkpoint was lost; None to begin anew. Afterwards no former query of the name can write.

    Fences whoever writes under the sink's name. Called once, before the query that is to go on is started.
    """
    assert options.exactly_once is not None
    found = fenced_markers(options)
    resumed = resumption(found)
    if resumed is not None:
        _release(options, options.exactly_once.name, released(found))
    return resumed


def fenced_markers(options: SinkOptions) -> list[Marker | None]:
    """Of all tasks in their order, when nobody who writes them can write any more. The query that wrote them may go on."""
    exactly_once = options.exactly_once
    assert exactly_once is not None
    assert options.topic is not None
    found: list[Marker | None] = []
    for task in range(exactly_once.tasks):
        with connected(options, transactional_id(exactly_once.name, task)) as producer:
            found.append(read_marker(producer, exactly_once.name, task, options.topic))
    return found


def transactional_id(name: str, task: int) -> str:
    return f"ropewalk-{name}-{task}"


def group(name: str, task: int) -> str:
    return f"ropewalk-sink-{name}-{task}"


def first_group(name: str) -> str:
    """Of all tasks: in their first batch each marks here, too."""
    return f"ropewalk-sink-{name}"


def read_marker(producer: Producer, name: str, task: int, topic: str) -> Marker | None:
    return _read(producer, group(name, task), topic, stable=True)


def _read(producer: Producer, marked: str, topic: str, *, stable: bool) -> Marker | None:
    place = TopicPartition(topic, 0)
    committed = producer.committed(marked, [place], stable=stable).get(place)
    return None if committed is None else from_text(committed.metadata)


def _write(
    producer: Producer,
    options: SinkOptions,
    columns: tuple[Column, ...],
    batches: Iterator[pa.RecordBatch],
    task: int,
    stored: Marker | None,
    offered: Marker,
) -> int:
    exactly_once = options.exactly_once
    assert exactly_once is not None
    assert options.topic is not None
    seen = RowsDigest()
    row_count = 0
    producer.begin_transaction()
    rows = RowSender(producer, options, columns)
    for batch in gathered(batches):
        if offered.digest is None:
            _add(seen, batch, columns, options.topic)
        rows.send(batch)
        row_count += batch.num_rows
    digest = seen.text if offered.digest is None else offered.digest
    marker = succeeding(stored, replace(offered, digest=digest))
    with telling_why(options):
        if stored is None:
            _mark(producer, first_group(exactly_once.name), options.topic, marker)
        _mark(producer, group(exactly_once.name, task), options.topic, marker)
        reach("sink before commit")
        _commit(producer)
    return row_count


def _mark(producer: Producer, marked: str, topic: str, marker: Marker) -> None:
    offset = OffsetToCommit(marker.batch + 1, metadata=to_text(marker))
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): offset}, marked)


def _commit(producer: Producer) -> None:
    for asked in range(1, COMMITS_ASKED_MAX + 1):
        try:
            producer.commit_transaction()
            return
        except OutcomeUnknown:
            if asked == COMMITS_ASKED_MAX:
                raise


def _release(options: SinkOptions, name: str, markers: Sequence[Marker]) -> None:
    assert options.topic is not None
    for task, marker in enumerate(markers):
        with connected(options, transactional_id(name, task)) as producer:
            producer.begin_transaction()
            _mark(producer, group(name, task), options.topic, marker)
            _commit(producer)


def _add(seen: RowsDigest, rows: pa.RecordBatch, columns: tuple[Column, ...], topic: str) -> None:
    for _, of_topic in by_topic(rows, columns, topic):
        seen.add(of_topic)
