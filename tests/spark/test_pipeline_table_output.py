"""What tasks of a transform write into a table, without Spark."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.table import Commit, TableSpec, WrittenFile
from ropewalk.spark.pipelines.table_output import WriteTask


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
