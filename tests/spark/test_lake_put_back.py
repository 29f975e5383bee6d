"""A table that was put back to an earlier state is noticed at the next look, and goes on when somebody has said where."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from pyiceberg.catalog import load_catalog

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import stored_of
from ropewalk.spark.lake.reach import reach, reach_columns
from ropewalk.spark.lake.shaping import TOPIC_ID
from ropewalk.spark.lake.table import Commit
from ropewalk.spark.refusals import DataLost, Overtaken, WrongUse
from tests.spark.test_spark_lake_tables import KINDS, ONE, ZERO, offsets, spec, topic_rows, write

PUT_BACK: list[Kind] = ["delta", "iceberg"]


def fill(kind: Kind, path: Path, count: int) -> None:
    """Batches of one row each of partition 0, and of partition 1 from the third on."""
    for number in range(count):
        table = open_table(kind, spec(path))
        batches = [topic_rows(number, 1)]
        moves = {ZERO: number + 1}
        if number >= 2:
            batches.append(topic_rows(number - 2, 1, partition=1))
            moves[ONE] = number - 1
        table.commit(Commit(write(table, *batches), moves, {"batch": str(number)}))


def put_back(kind: Kind, path: Path, batch: int) -> None:
    """To the state after that batch, as others do it."""
    if kind == "delta":
        DeltaTable(str(path)).restore(batch + 1)
        return
    table = load_catalog("ropewalk", type="sql", uri=f"sqlite:///{path}/_ropewalk/catalog.db").load_table(
        "ropewalk.archive"
    )
    table.manage_snapshots().set_current_snapshot(snapshot_id=table.snapshots()[batch].snapshot_id).commit()


def stored(kind: Kind, path: Path) -> dict[TopicPartition, int]:
    return stored_of(open_table(kind, spec(path)), [ZERO, ONE], {})


@pytest.mark.parametrize("kind", PUT_BACK)
def test_it_is_refused_with_both_offsets_and_what_to_do(kind: Kind, tmp_path: Path) -> None:
    fill(kind, tmp_path, 4)
    assert stored(kind, tmp_path) == {ZERO: 4, ONE: 2}
    put_back(kind, tmp_path, 1)
    assert offsets(kind, tmp_path) == [0, 1]
    with pytest.raises(DataLost) as told:
        stored(kind, tmp_path)
    said = str(told.value)
    assert "rows of orders-0 reach to offset 2, and the offset that it keeps is 4" in said
    assert "ropewalk pipeline offsets nightly --from-table" in said


@pytest.mark.parametrize("kind", PUT_BACK)
def test_it_goes_on_when_the_offsets_are_moved(kind: Kind, tmp_path: Path) -> None:
    fill(kind, tmp_path, 4)
    put_back(kind, tmp_path, 2)
    table = open_table(kind, spec(tmp_path))
    reached = table.reach({})
    assert reached == {ZERO: 3, ONE: 1}
    table.commit(Commit((), reached, {"offsets": "moved"}))
    assert stored(kind, tmp_path) == {ZERO: 3, ONE: 1}
    again = open_table(kind, spec(tmp_path))
    again.commit(Commit(write(again, topic_rows(3, 1)), {ZERO: 4}))
    assert stored(kind, tmp_path) == {ZERO: 4, ONE: 1}
    assert offsets(kind, tmp_path) == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("kind", PUT_BACK)
def test_a_state_that_is_put_back_to_its_own_end_is_as_it_was(kind: Kind, tmp_path: Path) -> None:
    fill(kind, tmp_path, 3)
    if kind == "delta":
        DeltaTable(str(tmp_path)).delete()  # by mistake, and taken back
    put_back(kind, tmp_path, 2)
    assert stored(kind, tmp_path) == {ZERO: 3, ONE: 1}


def test_a_restore_of_a_restore_is_none_of_ours(tmp_path: Path) -> None:
    """The version that it goes back to keeps the later offsets itself."""
    fill("delta", tmp_path, 4)
    put_back("delta", tmp_path, 1)
    restored = DeltaTable(str(tmp_path)).version()
    DeltaTable(str(tmp_path)).delete()
    DeltaTable(str(tmp_path)).restore(restored)
    with pytest.raises(DataLost, match="reach to offset 2, and the offset that it keeps is 4"):
        stored("delta", tmp_path)


def test_a_version_that_is_forgotten_is_refused_too(tmp_path: Path) -> None:
    fill("delta", tmp_path, 4)
    put_back("delta", tmp_path, 1)
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
        if version == 0:
            DeltaTable(str(tmp_path)).create_checkpoint()
    with pytest.raises(DataLost, match="cannot be told any more, and the offset that it keeps is 4"):
        stored("delta", tmp_path)


@pytest.mark.parametrize("kind", PUT_BACK)
def test_what_others_do_besides_is_no_put_back(kind: Kind, tmp_path: Path) -> None:
    fill(kind, tmp_path, 3)
    if kind == "delta":
        table = DeltaTable(str(tmp_path))
        table.optimize.compact()
        table.delete("offset = 0", commit_properties=CommitProperties(custom_metadata={"by": "another"}))
    else:
        opened = load_catalog(
            "ropewalk", type="sql", uri=f"sqlite:///{tmp_path}/_ropewalk/catalog.db"
        ).load_table("ropewalk.archive")
        opened.delete("offset = 0")
    assert stored(kind, tmp_path) == {ZERO: 3, ONE: 1}


@pytest.mark.parametrize("kind", PUT_BACK)
def test_a_batch_that_is_under_way_meanwhile_is_not_committed(kind: Kind, tmp_path: Path) -> None:
    fill(kind, tmp_path, 4)
    table = open_table(kind, spec(tmp_path))
    files = write(table, topic_rows(4, 1))
    put_back(kind, tmp_path, 1)
    with pytest.raises(Overtaken):
        table.commit(Commit(files, {ZERO: 5}))
    assert offsets(kind, tmp_path) == [0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_tell_how_far_they_reach(kind: Kind, tmp_path: Path) -> None:
    fill(kind, tmp_path, 4)
    assert open_table(kind, spec(tmp_path)).reach({}) == {ZERO: 4, ONE: 2}


def test_of_topics_of_one_name_the_present_one_counts() -> None:
    def batch(*rows: tuple[str, int, int, str | None]) -> pa.RecordBatch:
        columns: list[Any] = list(zip(*rows, strict=True))
        schema = pa.schema(
            [
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                (TOPIC_ID.name, pa.string()),
            ]
        )
        return pa.record_batch(
            [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema
        )

    rows = [
        batch(("orders", 0, 99, "old"), ("orders", 0, 4, "new"), ("orders", 1, 7, None)),
        batch(("orders", 0, 6, "new"), ("orders", 0, 500, None), ("returns", 0, 2, None)),
    ]
    returns = TopicPartition("returns", 0)
    assert reach(rows, {"orders": "new"}) == {ZERO: 7, ONE: 8, returns: 3}
    with pytest.raises(WrongUse, match="no column partition, offset"):
        reach_columns(pa.schema([("topic", pa.string())]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_only_looked_at_is_not_made(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no table"):
        open_table(kind, spec(tmp_path / "nowhere", must_exist=True))
