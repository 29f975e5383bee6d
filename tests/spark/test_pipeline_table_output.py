"""What tasks of a transform write into a table, and where the next batch begins, without Spark."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from ropewalk.base.ids import TopicPartition, format_id
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import stored_of
from ropewalk.spark.lake.table import Commit, TableSpec, WrittenFile
from ropewalk.spark.options import EARLIEST, OnNewTopic
from ropewalk.spark.pipelines.table_output import TableOutput, WriteTask
from ropewalk.spark.pipelines.table_progress import counter, is_new, moved
from ropewalk.spark.refusals import DataLost, ReplayDiffers
from ropewalk.spark.sink.recovery import Resumption

ORDERS, RETURNS = TopicPartition("orders", 0), TopicPartition("returns", 0)
FORMER_ID, LATTER_ID = format_id(b"the former topic"), format_id(b"the latter topic")
OLD = {"orders": FORMER_ID, "returns": format_id(b"of the other one")}
NEW = {**OLD, "orders": LATTER_ID}
KINDS: list[Kind] = ["delta", "iceberg"]


def written(path: Path, rows: pa.RecordBatch) -> ds.Dataset:
    table = open_table("delta", TableSpec(address=str(path), owner="job", schema=rows.schema))
    task = WriteTask(table.target, table.schema, 1 << 20)
    files = tuple(
        msgspec.json.decode(handed.column(0)[0].as_py(), type=WrittenFile) for handed in task(iter([rows]))
    )
    table.commit(Commit(files, {TopicPartition("orders", 0): 2}))
    return DeltaTable(str(path)).to_pyarrow_dataset()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("timestamp", pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", tz="UTC"))),
        ("timestamp", pa.array(["today", None])),
        ("timestamp", pa.array([date(2026, 1, 1), None])),
        ("timestamp", pa.array([1_760_000_000_000, None])),
        ("offset", pa.array([7, None])),
        ("offset", pa.array(["7", None])),
        ("offset", pa.array([7.5, None])),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else value,
)
def test_columns_that_are_called_like_a_topics_may_be_anything(
    name: str, values: pa.Array, tmp_path: Path
) -> None:
    rows = written(tmp_path / "lake", pa.record_batch({"item": ["a", "b"], name: values}))
    assert rows.to_table(filter=ds.field(name) == values[0])["item"].to_pylist() == ["a"]
    assert rows.to_table(filter=ds.field(name).is_null())["item"].to_pylist() == ["b"]


def output(kind: Kind, path: Path) -> TableOutput:
    """Into which a query has written a batch of two topics."""
    spec = TableSpec(address=str(path), owner="job", schema=pa.schema([("value", pa.string())]))
    batch = moved("q", 0, {ORDERS: (0, 20), RETURNS: (0, 5)})
    open_table(kind, spec).commit(Commit((), batch, {}, OLD))
    return TableOutput(kind, spec)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("on_new_topic", "expected"),
    [
        ("append", Resumption(None, {RETURNS: 5}, {})),
        ("leave_out", Resumption(None, {ORDERS: 20, RETURNS: 5}, {"orders": FORMER_ID})),
    ],
)
def test_a_lost_checkpoint_of_a_topic_made_anew_goes_on_in_the_topics_that_are_there(
    kind: Kind, on_new_topic: OnNewTopic, expected: Resumption, tmp_path: Path
) -> None:
    made = output(kind, tmp_path / "lake")
    with pytest.raises(DataLost, match=f"orders was deleted and made anew.*{FORMER_ID}.*{LATTER_ID}"):
        made.resumption([ORDERS, RETURNS], NEW, on_new_topic="refuse")
    assert made.resumption([ORDERS, RETURNS], NEW, on_new_topic=on_new_topic) == expected
    same = Resumption(None, {ORDERS: 20, RETURNS: 5}, {})
    assert made.resumption([ORDERS, RETURNS], OLD, on_new_topic="refuse") == same


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [30, 20, 4], ids=["longer", "equal", "shorter"])
def test_a_batch_of_a_topic_made_anew_is_written_once(kind: Kind, end: int, tmp_path: Path) -> None:
    """By the query that is there, and by the next one."""
    made = output(kind, tmp_path / "lake")
    ranges = {ORDERS: (EARLIEST, end), RETURNS: (5, 6)}
    for query, number in (("q", 1), ("another", 0)):
        table = open_table(kind, made.spec)
        stored = stored_of(table, [*ranges, counter(query)], NEW)
        assert is_new(stored, query, number, ranges)
        with pytest.raises(ReplayDiffers, match="orders-0 is to be read from 0 on"):
            is_new(stored_of(table, [*ranges, counter(query)], OLD), query, number, ranges)
    table.commit(Commit((), moved("q", 1, ranges), {}, NEW))
    table = open_table(kind, made.spec)
    assert not is_new(stored_of(table, [*ranges, counter("q")], NEW), "q", 1, ranges)
    with pytest.raises(ReplayDiffers, match=f"the table has it up to {end}"):
        is_new(stored_of(table, [*ranges, counter("another")], NEW), "another", 0, ranges)
