"""Rows that tasks of a transform read, and those that they set apart, without Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from deltalake import DeltaTable

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.columns import all_columns
from ropewalk.spark.lake.judging import dead_letter_schema
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.landing import Into
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Commit, TableSpec
from ropewalk.spark.pipelines.judging import Found, JudgeTask, Late
from ropewalk.spark.pipelines.late_rows import Windows
from ropewalk.spark.pipelines.row_reading import BadRows, ReadTask, RowReading, Unreadable
from ropewalk.spark.pipelines.table_output import refuse_partition_columns
from ropewalk.spark.ranges import Range
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat
from ropewalk.spark.values.schemas import SchemaText

SCHEMA = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}},
}
JSON = ResolvedFormat(ValueFormat(format="json"), SchemaText("json", json.dumps(SCHEMA)))
VALUES = [
    b'{"n": 1, "at": "2026-03-01T10:00:10Z"}',
    b"{",
    b'{"n": 2}',
    None,
    b'{"n": 3, "at": "2026-03-01T10:05:00Z"}',
]


def reading(bad_rows: BadRows = "dead_letters", **more: Any) -> RowReading:
    return RowReading(values=JSON, event_time="at", bad_rows=bad_rows, **more)


def topic_rows(values: list[bytes | None], keys: list[bytes | None] | None = None) -> pa.RecordBatch:
    count = len(values)
    columns: dict[str, list[Any]] = {
        "key": keys or [None] * count,
        "value": values,
        "topic": ["orders"] * count,
        "partition": [1] * count,
        "offset": list(range(7, 7 + count)),
        "timestamp": [1_772_000_000_000_000] * count,
        "timestampType": [0] * count,
        "headers": [None] * count,
    }
    return pa.record_batch(
        {
            each.value: pa.array(columns[each.value], each.arrow_type)
            for each in all_columns(with_headers=True)
        }
    )


def test_a_view_has_the_columns_of_values_and_none_of_the_rows_that_cannot_be_read() -> None:
    (seen,) = ReadTask(reading())(iter([topic_rows(VALUES)]))
    assert seen.column("n").to_pylist() == [1, 3]
    assert seen.column("value").to_pylist() == [VALUES[0], VALUES[4]]
    (everything,) = ReadTask(reading("null"))(iter([topic_rows(VALUES)]))
    assert everything.column("n").to_pylist() == [1, None, 2, None, 3]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"{", "orders-1 offset 8 is not JSON: .*mend what writes it, or say bad_rows=dead_letters"),
        (b'{"n": "x"}', "orders-1 offset 8 does not fit the schema"),
        (b'{"n": 2}', "orders-1 offset 8 has no event time in at"),
        (None, "orders-1 offset 8 has no event time in at"),
    ],
)
def test_a_row_that_cannot_be_read_stops_the_job_if_it_is_to(value: bytes | None, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        list(ReadTask(reading("stop"))(iter([topic_rows([VALUES[0], value])])))


def test_keys_are_columns_inside_key_and_their_faults_are_told() -> None:
    keyed = reading("null", keys=JSON)
    rows = topic_rows([VALUES[0]] * 3, [b'{"n": 5}', b"?", None])
    (seen,) = ReadTask(keyed)(iter([rows]))
    assert [each and each["n"] for each in seen.column("key").to_pylist()] == [5, None, None]
    with pytest.raises(Unreadable, match="offset 8 the key is not JSON"):
        list(ReadTask(reading("stop", keys=JSON))(iter([rows])))


class Kept:
    """Records that are there."""

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        assert wanted.topic_id == "id"
        yield topic_rows(VALUES)


def test_what_a_view_leaves_out_is_set_apart_and_late_rows_are_counted_one_by_one(tmp_path: Path) -> None:
    spec = TableSpec(
        address=str(tmp_path / "letters"),
        owner="job",
        schema=dead_letter_schema(raw_schema("date")),
        partition_columns=("date",),
    )
    table = open_table("delta", spec)
    late = Late(Windows("at", 60_000_000), watermark_ms=1_772_359_260_000)  # 2026-03-01T10:01:00Z
    partition = TopicPartition("orders", 1)
    kept: Any = Kept()
    task = JudgeTask(reading(), kept, [Range(partition, 7, 12, "id")], Into(table.target, table.schema), late)
    found = [
        msgspec.json.decode(each.column(0)[0].as_py(), type=Found)
        for each in task(iter([pa.record_batch({"id": pa.array([0])})]))
    ]
    files = tuple(each.file for each in found if each.file is not None)
    assert found[-1] == Found(unreadable_rows=3, late_rows=1)
    table.commit(Commit(files, {partition: 12}))
    letters = DeltaTable(spec.address).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [(row["offset"], row["value"]) for row in letters] == [(8, b"{"), (9, b'{"n": 2}'), (10, None)]
    assert letters[1]["error"] == "has no event time in at"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["day"], "partition_by names day, and the SQL gives item, n, amount"),
        (["amount"], "which is double: .* cast it in the SQL"),
        (["item", "item"], "names a column twice"),
        (["item", "n", "amount"], "which is double"),
    ],
)
def test_columns_that_can_name_no_directory_are_refused(names: list[str], said: str) -> None:
    schema = pa.schema([("item", pa.string()), ("n", pa.int64()), ("amount", pa.float64())])
    with pytest.raises(WrongUse, match=said):
        refuse_partition_columns(names, schema)
    refuse_partition_columns(["item", "n"], schema)
    with pytest.raises(WrongUse, match="leave one for the files"):
        refuse_partition_columns(["item"], pa.schema([("item", pa.string())]))
