"""A topic that was deleted and made anew under its name is another topic: offsets of the one mean nothing in the other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from structlog.testing import capture_logs

from ropewalk.base.ids import format_id
from ropewalk.spark.checkpoints import parse_offsets
from ropewalk.spark.columns import Column
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.table import Commit
from ropewalk.spark.options import parse_source
from ropewalk.spark.ranges import IDS, Json, Progress, Range, all_between, between, progress_in, to_json
from ropewalk.spark.readers import BatchReader, ReadTask, StreamReader
from ropewalk.spark.reading import read
from ropewalk.spark.refusals import DataLost
from ropewalk.testing import Cluster
from tests.spark.conftest import Node
from tests.spark.test_spark_lake_tables import KINDS, ONE, ZERO, offsets, spec, topic_rows, write

OLD, NEW = format_id(b"the former topic"), format_id(b"the latter topic")


@pytest.fixture
def node() -> Iterator[Node]:
    with Cluster() as cluster:
        yield Node(cluster.bootstrap)


def renew(node: Node, topic: str, count: int) -> None:
    node.delete(topic)
    node.create(topic)
    node.write(topic, count, first=1000)


def stream(node: Node, **given: str) -> StreamReader:
    options = {"bootstrap": node.bootstrap, "startingOffsets": "earliest", **given}
    return StreamReader(parse_source(options, streaming=True), (Column.OFFSET, Column.VALUE))


def values(reader: StreamReader, start: Json, end: Json) -> list[str]:
    return sorted(
        value.decode()
        for task in reader.partitions(start, end)
        for rows in reader.read(task)
        for value in rows.column("value").to_pylist()
    )


def numbered(first: int, count: int) -> list[str]:
    return sorted(f"v{number}" for number in range(first, first + count))


def test_progress_says_which_topic_a_name_meant() -> None:
    written = to_json({ZERO: 5, ONE: 7}, {"orders": OLD, "unread": NEW})
    assert written == {"orders": {"0": 5, "1": 7}, IDS: {"orders": OLD}}
    assert progress_in(json.loads(json.dumps(written))) == Progress({ZERO: 5, ONE: 7}, {"orders": OLD})
    assert progress_in({"orders": {"0": 5}}) == Progress({ZERO: 5})
    assert parse_offsets(f"v1\n{{}}\n{json.dumps(written)}", "offsets/0") == [written]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"orders": OLD}, {"orders": OLD}, [Range(ZERO, 3, 5, OLD)], id="the same"),
        pytest.param({"orders": OLD}, {"orders": NEW}, [Range(ZERO, -2, 5, NEW)], id="made anew"),
        pytest.param({}, {"orders": NEW}, [Range(ZERO, 3, 5, NEW)], id="written without ids"),
        pytest.param({"orders": OLD}, {}, [Range(ZERO, 3, 5)], id="brokers without ids"),
    ],
)
def test_a_topic_made_anew_is_read_from_its_start(
    before: dict[str, str], after: dict[str, str], expected: list[Range]
) -> None:
    start, end = Progress({ZERO: 3}, before), Progress({ZERO: 5}, after)
    assert between(start, end) == expected
    assert all_between(start, Progress({ZERO: 5, ONE: 0}, after))[0] == expected[0]


@pytest.mark.parametrize("count", [30, 20, 4], ids=["longer", "equal", "shorter"])
def test_a_stream_tells_a_topic_made_anew_by_its_id(node: Node, count: int) -> None:
    node.create("orders")
    node.write("orders", 20)
    reader = stream(node, subscribe="orders")
    start = reader.initialOffset()
    reached = reader.latestOffset(start, ReadAllAvailable())
    assert values(reader, start, reached) == numbered(0, 20)
    renew(node, "orders", count)
    again = stream(node, subscribe="orders")
    with pytest.raises(DataLost, match="deleted and made anew") as told:
        again.latestOffset(reached, ReadAllAvailable())
    assert str(reached[IDS]["orders"]) in str(told.value)
    assert str(again._latest().ids["orders"]) in str(told.value)


@pytest.mark.parametrize("count", [30, 20, 4], ids=["longer", "equal", "shorter"])
@pytest.mark.parametrize("option", [{"failOnDataLoss": "false"}, {"onNewTopic": "append"}])
def test_who_may_goes_on_at_the_new_topics_start(node: Node, count: int, option: dict[str, str]) -> None:
    node.create("orders")
    node.write("orders", 20)
    first = stream(node, subscribe="orders")
    reached = first.latestOffset(first.initialOffset(), ReadAllAvailable())
    renew(node, "orders", count)
    reader = stream(node, subscribe="orders", **option)
    with capture_logs() as logged:
        read_values: list[str] = []
        for _ in range(20):
            end = reader.latestOffset(reached, ReadMaxRows(7))
            read_values += values(reader, reached, end)
            if end == reached:
                break
            reached = end
    assert sorted(read_values) == numbered(1000, count)
    (said,) = [each for each in logged if "made anew" in each["event"]]
    assert said["offsets"] == count


@pytest.mark.parametrize("count", [30, 10, 4], ids=["longer", "equal", "shorter"])
def test_of_a_pattern_the_other_topics_go_on(node: Node, count: int) -> None:
    for topic in ("logs-a", "logs-b"):
        node.create(topic)
        node.write(topic, 10)
    reader = stream(node, subscribePattern="logs-.*")
    reached = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    renew(node, "logs-a", count)
    node.write("logs-b", 4, first=10)
    with capture_logs() as logged:
        end = reader.latestOffset(reached, ReadAllAvailable())
        assert values(reader, reached, end) == numbered(10, 4)
        later = reader.latestOffset(end, ReadAllAvailable())
    assert later == end
    assert [each["topic"] for each in logged if "made anew and is left out" in each["event"]] == ["logs-a"]
    lenient = stream(node, subscribePattern="logs-.*", onNewTopic="append")
    last = lenient.latestOffset(end, ReadAllAvailable())
    assert values(lenient, end, last) == numbered(1000, count), "from its start, and the other goes on"


@pytest.mark.parametrize("count", [30, 20, 4], ids=["longer", "equal", "shorter"])
@pytest.mark.parametrize("subscription", [{"subscribe": "logs-a,logs-b"}, {"subscribePattern": "logs-.*"}])
def test_a_stream_does_not_read_another_topic_in_a_batch_that_was_begun(
    node: Node, count: int, subscription: dict[str, str]
) -> None:
    for topic in ("logs-a", "logs-b"):
        node.create(topic)
        node.write(topic, 20)
    reader = stream(node, **subscription)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    renew(node, "logs-a", count)
    for each in (
        reader,
        stream(node, **subscription),
    ):  # by the query that planned it, and by the one that plans it again
        with pytest.raises(DataLost, match="deleted and made anew"):
            values(each, start, end)
    lenient = stream(node, **subscription, onNewTopic="append")
    with capture_logs() as logged:
        assert values(lenient, start, end) == numbered(0, 20), "of the other topic"
    lost = sorted(each["lost"] for each in logged if "made anew before it was read" in each["event"])
    assert [each.partition(" are gone")[0] for each in lost] == [
        "offsets 0 to 10 of logs-a-0",
        "offsets 0 to 10 of logs-a-1",
    ]


@pytest.mark.parametrize("count", [30, 20, 4], ids=["longer", "equal", "shorter"])
def test_a_task_does_not_read_another_topic_than_was_planned(node: Node, count: int) -> None:
    """Made anew between the two steps of a batch, or during a batch of a stream."""
    node.create("orders")
    node.write("orders", 20)
    given = {"bootstrap": node.bootstrap, "subscribe": "orders"}
    planned = BatchReader(parse_source(given, streaming=False), (Column.VALUE,)).partitions()
    ranges = [each.wanted for each in planned if isinstance(each, ReadTask)]
    renew(node, "orders", count)
    with pytest.raises(DataLost, match="deleted and made anew"):
        list(read(parse_source(given, streaming=False), (Column.VALUE,), ranges[0]))
    lenient = parse_source({**given, "failOnDataLoss": "false"}, streaming=False)
    assert list(read(lenient, (Column.VALUE,), ranges[0])) == []


@pytest.mark.parametrize("count", [30, 20, 4], ids=["longer", "equal", "shorter"])
def test_offsets_that_were_given_are_of_the_topic_that_was_named_with_them(node: Node, count: int) -> None:
    """As a job has them that goes on by what its output says, and one that reads a batch once more."""
    node.create("orders")
    node.write("orders", 20)
    looked = stream(node, subscribe="orders").initialOffset()
    old_id = str(looked[IDS]["orders"])
    renew(node, "orders", count)
    given = {
        "bootstrap": node.bootstrap,
        "subscribe": "orders",
        "startingOffsets": json.dumps({"orders": {"0": 3, "1": 4}, IDS: {"orders": old_id}}),
    }
    batch = BatchReader(parse_source(given, streaming=False), (Column.VALUE,))
    with pytest.raises(DataLost, match="deleted and made anew"):
        [list(batch.read(each)) for each in batch.partitions()]
    began = stream(node, **given)
    start = began.initialOffset()
    assert start == {"orders": {"0": 3, "1": 4}, IDS: {"orders": old_id}}
    with pytest.raises(DataLost, match="deleted and made anew"):
        began.latestOffset(start, ReadAllAvailable())
    lenient = stream(node, **given, onNewTopic="append")
    assert values(lenient, start, lenient.latestOffset(start, ReadAllAvailable())) == numbered(1000, count)


def test_a_beginning_behind_the_end_is_told_with_both_offsets(node: Node) -> None:
    node.create("orders")
    node.write("orders", 20)
    reader = stream(node, subscribe="orders", startingOffsets='{"orders":{"0":3,"1":700}}')
    start = reader.initialOffset()
    with pytest.raises(
        DataLost, match=r"orders-1 at 10, and it goes on at 700\. .*startingOffsets lie behind its end"
    ):
        reader.latestOffset(start, ReadAllAvailable())


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_keeps_apart_topics_that_had_one_name(kind: Any, tmp_path: Path) -> None:
    table = open_table(kind, spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 3)), {ZERO: 3, ONE: 9}))
    assert open_table(kind, spec(tmp_path)).topic_ids(["orders"]) == {}, "written without ids"
    table = open_table(kind, spec(tmp_path))
    table.commit(Commit((), {ZERO: 4}, {}, {"orders": OLD}))
    taken_over = open_table(kind, spec(tmp_path))
    assert taken_over.topic_ids(["orders", "others"]) == {"orders": OLD}
    assert taken_over.next_offsets([ZERO, ONE]) == {ZERO: 4, ONE: 9}
    taken_over.commit(Commit((), {ZERO: 2}, {}, {"orders": NEW}))
    renewed = open_table(kind, spec(tmp_path))
    assert renewed.topic_ids(["orders"]) == {"orders": NEW}
    assert renewed.next_offsets([ZERO, ONE]) == {ZERO: 2}, "what the former topic had more is forgotten"
    renewed.commit(Commit((), {ZERO: 5, ONE: 1}, {}, {"orders": NEW}))
    third = open_table(kind, spec(tmp_path))
    assert third.next_offsets([ZERO, ONE]) == {ZERO: 5, ONE: 1}
    third.commit(Commit((), {ONE: 0}, {}, {"orders": OLD}))
    assert open_table(kind, spec(tmp_path)).next_offsets([ZERO, ONE]) == {ONE: 0}
    assert offsets(kind, tmp_path) == [0, 1, 2]
