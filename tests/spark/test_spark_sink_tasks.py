"""Tasks of the sink against a node, without Spark around them: what they do when others write under their name, or come again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from ropewalk.client.errors import RecordTooLarge
from ropewalk.spark.columns import Column, all_columns, schema_of
from ropewalk.spark.refusals import MarkerLost, NotWritten, ReplayDiffers, WrongUse
from ropewalk.spark.sink.incoming import check_columns
from ropewalk.spark.sink.marker import Decision
from ropewalk.spark.sink.options import SinkOptions, parse_sink
from ropewalk.spark.sink.transaction import recover, write_once
from ropewalk.spark.sink.writing import write
from ropewalk.testing import Cluster
from tests.spark.conftest import Node

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

COLUMNS = (Column.KEY, Column.VALUE)


@pytest.fixture(autouse=True)
def every_piece_is_sent_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the few rows here would wait until the task ends."""
    monkeypatch.setattr("ropewalk.spark.sink.incoming.GATHERED_BYTES", 1)


def options_for(node: Node, topic: str, more: dict[str, str]) -> SinkOptions:
    return parse_sink({"bootstrap": node.bootstrap, "topic": topic, **more}, streaming=True)


def once(node: Node, topic: str, tasks: int = 1, more: dict[str, str] | None = None) -> SinkOptions:
    needed = {"exactlyOnce": "true", "name": topic, "tasks": str(tasks)}
    return options_for(node, topic, {**needed, **(more or {})})


def rows(*numbers: int) -> pa.RecordBatch:
    texts = [str(number).encode() for number in numbers]
    return pa.record_batch([pa.array(texts, pa.binary()), pa.array(texts, pa.binary())], ["key", "value"])


def committed(node: Node, topic: str, partitions: int = 2, isolation: str = "read_committed") -> list[int]:
    """Sorted, and so often as they are there."""
    return sorted(int(each.value() or b"") for each in node.read(topic, partitions, isolation=isolation))


def task(
    options: SinkOptions, batch: int, *some: pa.RecordBatch, number: int = 0, query: str = "q"
) -> Decision:
    _, decision = write_once(options, COLUMNS, iter(some), task=number, query=query, batch=batch)
    return decision


def test_a_task_writes_many_batches_in_order(node: Node) -> None:
    topic = node.create("tasks-order", partitions=1)
    options = options_for(node, topic, {"kafka.batch.size": "2000", "kafka.buffer.memory": "20000"})
    assert (
        write(options, COLUMNS, (rows(*range(first, first + 100)) for first in range(0, 5000, 100))) == 5000
    )
    assert committed(node, topic, 1) == list(range(5000))


def test_a_replayed_batch_is_skipped_and_another_one_refused(node: Node) -> None:
    topic = node.create("tasks-replay")
    options = once(node, topic)
    assert task(options, 0, rows(1, 2), rows(3)) is Decision.WRITE
    assert task(options, 0, rows(3), rows(2, 1)) is Decision.SKIP, "in whatever order they come"
    with pytest.raises(ReplayDiffers, match="other rows"):
        task(options, 0, rows(1, 2, 4))
    assert task(options, 1) is Decision.WRITE
    assert task(options, 2, rows(4)) is Decision.WRITE
    with pytest.raises(MarkerLost, match="no trace of batch 2"):
        task(once(node, topic, tasks=2), 3, rows(5), number=1)
    with pytest.raises(WrongUse, match="repartition"):
        task(options, 3, number=1)
    assert committed(node, topic) == [1, 2, 3, 4]


@pytest.mark.parametrize("count", [1, 3])
def test_in_a_first_batch_that_was_half_written_the_number_of_tasks_may_not_change_either(
    node: Node, count: int
) -> None:
    """The task that comes has no marker of its own, and would write rows that another one has written."""
    topic = node.create(f"tasks-count-{count}")
    assert task(once(node, topic, tasks=2), 0, rows(1, 3), number=1) is Decision.WRITE
    with pytest.raises(ReplayDiffers, match="tasks=2"):
        task(once(node, topic, tasks=count), 0, rows(1), number=0 if count == 1 else 2)
    assert task(once(node, topic, tasks=2), 0, rows(2), number=0) is Decision.WRITE
    assert committed(node, topic) == [1, 2, 3]


def test_an_attempt_that_dies_leaves_nothing_and_the_next_one_writes(node: Node) -> None:
    topic = node.create("tasks-death")
    options = once(node, topic)

    def dying() -> Iterator[pa.RecordBatch]:
        yield rows(1, 2)
        raise RuntimeError("the executor is gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_once(options, COLUMNS, dying(), task=0, query="q", batch=0)
    assert task(options, 0, rows(1, 2)) is Decision.WRITE
    assert committed(node, topic) == [1, 2]


_ATTEMPT = """
import sys
from tests.spark.test_spark_sink_tasks import attempt
attempt(*sys.argv[1:])
"""


def attempt(bootstrap: str, topic: str) -> None:
    """Batch 0, in a process that may be killed."""
    given = {"bootstrap": bootstrap, "topic": topic, "exactlyOnce": "true", "name": topic, "tasks": "1"}
    options = parse_sink(given, streaming=True)
    write_once(options, COLUMNS, iter([rows(1, 2), rows(3)]), task=0, query="q", batch=0)


@pytest.mark.parametrize(
    ("place", "next_decision"),
    [("sink before commit", Decision.WRITE), ("sink committed", Decision.SKIP)],
)
def test_a_process_killed_around_the_commit_has_written_all_or_nothing(
    node: Node, place: str, next_decision: Decision
) -> None:
    topic = node.create(place.replace(" ", "-"))
    died = subprocess.run(
        [sys.executable, "-c", _ATTEMPT, node.bootstrap, topic],
        env={**os.environ, "ROPEWALK_SPARK_DIE_AT": place},
        cwd=Path(__file__).parent.parent.parent,
        check=False,
        timeout=100,
    )
    assert died.returncode == -signal.SIGKILL
    assert task(once(node, topic), 0, rows(3, 2, 1)) is next_decision
    assert committed(node, topic) == [1, 2, 3]


def test_an_attempt_that_is_slow_is_fenced_by_the_next(node: Node) -> None:
    """The first has sent its rows and is about to commit when the second begins, finishes, and is replayed."""
    topic = node.create("tasks-zombie")
    options = once(node, topic, more={"kafka.batch.size": "1"})

    def slow() -> Iterator[pa.RecordBatch]:
        yield rows(1, 2)
        assert task(options, 0, rows(1, 2)) is Decision.WRITE
        yield rows(3)

    with pytest.raises(NotWritten, match="one query per name"):
        write_once(options, COLUMNS, slow(), task=0, query="q", batch=0)
    assert task(options, 0, rows(1, 2)) is Decision.SKIP
    assert committed(node, topic) == [1, 2]


def test_after_a_lost_checkpoint_the_half_written_batch_is_finished_and_the_former_query_shut_out(
    node: Node,
) -> None:
    topic = node.create("tasks-recovery")

    def reading(start: int, end: int) -> SinkOptions:
        return once(node, topic, tasks=2, more={"ranges": json.dumps({"in": {"0": [start, end]}})})

    assert recover(once(node, topic, tasks=2)) is None
    for number in (0, 1):
        assert task(reading(0, 4), 0, rows(number, number + 2), number=number) is Decision.WRITE
    assert task(reading(4, 6), 1, rows(4), number=0) is Decision.WRITE  # and then everything ends

    resumed = recover(once(node, topic, tasks=2))
    assert resumed is not None
    (partition,) = resumed.ends
    assert (resumed.unfinished, resumed.ends) == ({partition: (4, 6)}, {partition: 6})
    with pytest.raises(ReplayDiffers, match="taken over"):
        task(reading(4, 6), 1, rows(5), number=1)
    assert task(reading(4, 6), 0, rows(4), number=0, query="r") is Decision.SKIP
    assert task(reading(4, 6), 0, rows(5), number=1, query="r") is Decision.WRITE
    for number in (0, 1):
        assert task(reading(6, 8), 1, rows(6 + number), number=number, query="r") is Decision.WRITE
    assert committed(node, topic) == list(range(8))


def table(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), list(columns))


@pytest.mark.parametrize(
    ("given", "options", "told"),
    [
        (table(value=pa.array([b"a"])), {"topic": "nowhere"}, "no topic nowhere; create it first"),
        (table(value=pa.array([b"a"]), topic=pa.array([None], pa.string())), {}, "null for a topic"),
        (table(value=pa.array([b"a"]), partition=pa.array([2])), {"topic": "tasks-bad"}, "partition 2 of tasks-bad, which has 2"),
        (table(value=pa.array([b"a"]), partition=pa.array([-1])), {"topic": "tasks-bad"}, "partition -1 of tasks-bad"),
        (table(value=pa.array([bytes(5000)])), {"topic": "tasks-bad", "kafka.max.request.size": "4000"}, "a row of 5036 bytes"),
        (table(value=pa.array([bytes(5000)])), {"topic": "tasks-bad"}, r"max\.message\.bytes"),
    ],
)  # fmt: skip
def test_what_brokers_would_not_take_is_told_with_what_to_do(
    node: Node, given: pa.RecordBatch, options: dict[str, str], told: str
) -> None:
    if "tasks-bad" not in node.topics():
        node.create("tasks-bad", max_message_bytes="2000")
    parsed = parse_sink({"bootstrap": node.bootstrap, **options}, streaming=False)
    with pytest.raises((WrongUse, NotWritten, RecordTooLarge), match=told):
        write(parsed, tuple(map(Column, given.schema.names)), iter([given]))


def test_nobody_at_the_address_is_told() -> None:
    given = {"bootstrap": "127.0.0.1:1", "topic": "t", "kafka.max.block.ms": "50"}
    options = parse_sink({**given, "kafka.retry.backoff.max.ms": "10"}, streaming=False)
    with pytest.raises(WrongUse, match="no broker answers at 127"):
        write(options, COLUMNS, iter([]))


def test_a_transaction_longer_than_brokers_allow_is_told(node: Node) -> None:
    topic = node.create("tasks-long")
    with pytest.raises(WrongUse, match=r"lower it to what a task needs"):
        task(once(node, topic, more={"kafka.transaction.timeout.ms": "900001"}), 0, rows(1))


def test_a_node_that_starts_anew_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is away when a task begins, and again between two pieces of its rows."""
    with Cluster() as cluster:
        node = Node(cluster.bootstrap)
        topic = node.create("tasks-patience")
        options = once(node, topic)
        assert task(options, 0, rows(1)) is Decision.WRITE
        pauses: list[float] = []

        def meanwhile(seconds: float) -> None:
            pauses.append(seconds)
            cluster.restart()

        cluster.kill()
        with monkeypatch.context() as patching:
            patching.setattr("ropewalk.spark.sink.writing.time.sleep", meanwhile)
            assert task(options, 0, rows(1)) is Decision.SKIP
        assert len(pauses) == 1

        def interrupted() -> Iterator[pa.RecordBatch]:
            yield rows(2, 3)
            cluster.kill()
            cluster.restart()
            yield rows(4)

        assert write_once(options, COLUMNS, interrupted(), task=0, query="q", batch=1) == (3, Decision.WRITE)
        assert committed(node, topic) == [1, 2, 3, 4]


TEXT = StructField("value", StringType())


@pytest.mark.parametrize(
    ("fields", "topic", "told"),
    [
        ([TEXT], None, r'option\("topic"'),
        ([StructField("key", StringType())], "t", 'no column "value"'),
        ([StructField("value", IntegerType())], "t", "'value' is int, must be string or binary"),
        ([TEXT, StructField("partition", StringType())], "t", "'partition' is string, must be int"),
        ([TEXT, StructField("headers", StringType())], "t", "'headers' is string, must be array"),
        ([TEXT, StructField("extra", StringType())], "t", "no column 'extra'"),
    ],
)  # fmt: skip
def test_columns_that_no_record_has_are_refused(
    fields: list[StructField], topic: str | None, told: str
) -> None:
    with pytest.raises(WrongUse, match=told):
        check_columns(StructType(fields), topic)


def test_what_the_source_gives_can_be_written_back() -> None:
    found = check_columns(schema_of(all_columns(with_headers=True)), "t")
    assert found == (Column.KEY, Column.VALUE, Column.PARTITION, Column.TIMESTAMP, Column.HEADERS)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "say where brokers are"),
        ({"bootstrap": "b:1", "topic": " "}, "topic is empty"),
        ({"bootstrap": "b:1", "colour": "red"}, "unknown option: colour"),
        ({"bootstrap": "b:1", "kafka.acks": "1"}, "leave kafka.acks"),
        ({"bootstrap": "b:1", "kafka.colour": "red"}, "kafka.colour is not a setting"),
        ({"bootstrap": "b:1", "kafka.batch.size": "many"}, "batch_size"),
        ({"bootstrap": "b:1", "kafka.security.protocol": "TLS"}, "must be one of"),
        ({"bootstrap": "b:1", "name": "n"}, "exactlyOnce=true alone"),
        ({"bootstrap": "b:1", "exactlyOnce": "true", "topic": "t"}, "needs a name"),
        ({"bootstrap": "b:1", "exactlyOnce": "true", "topic": "t", "name": "n"}, "number of tasks"),
        ({"bootstrap": "b:1", "exactlyOnce": "true", "tasks": "2", "name": "n"}, "writes to one topic"),
        ({"bootstrap": "b:1", "exactlyOnce": "true", "tasks": "2", "name": "n", "topic": "t", "batch": "1"}, "query and batch together"),
        ({"bootstrap": "b:1", "exactlyOnce": "true", "tasks": "2", "name": "n", "topic": "t", "ranges": "x"}, "must be JSON"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(WrongUse, match=told):
        parse_sink(options, streaming=False)
