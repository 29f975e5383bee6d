"""What is Delta's own about its tables: others that change the table between a batch's look and its commit."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from ropewalk.spark.lake import delta
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.table import Commit
from ropewalk.spark.refusals import Overtaken
from tests.spark.test_spark_lake_tables import ONE, ZERO, offsets, spec, topic_rows, write

EXTRA = Field("extra", PrimitiveType("string"), nullable=True)
Neighbour = Callable[[DeltaTable], object]

NEIGHBOURS: dict[str, tuple[Neighbour, list[int]]] = {
    "joins files": (lambda table: table.optimize.compact(), [0, 1, 2, 3]),
    "deletes rows": (lambda table: table.delete("offset = 1"), [0, 2, 3]),
    "changes rows": (
        lambda table: table.update(updates={"key": "X'00'"}, predicate="offset = 2"),
        [0, 1, 2, 3],
    ),
    "adds a column": (
        lambda table: table.alter.add_columns([EXTRA]),
        [0, 1, 2, 3],
    ),
    "sets a property": (
        lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}),
        [0, 1, 2, 3],
    ),
    "adds rows": (
        lambda table: write_deltalake(
            table, table.to_pyarrow_table().sort_by("offset").slice(0, 1), mode="append"
        ),
        [0, 0, 1, 2, 3],
    ),
}


def three_batches(path: Path) -> None:
    for number in range(3):
        table = open_table("delta", spec(path))
        table.commit(Commit(write(table, topic_rows(number, 1)), {ZERO: number + 1}))


@pytest.mark.parametrize("what", NEIGHBOURS)
def test_who_does_not_move_our_offsets_is_no_rival(what: str, tmp_path: Path) -> None:
    act, expected = NEIGHBOURS[what]
    three_batches(tmp_path)
    table = open_table("delta", spec(tmp_path))
    files = write(table, topic_rows(3, 1))
    act(DeltaTable(str(tmp_path)))
    table.commit(Commit(files, {ZERO: 4}, {"batch": "3"}))
    assert offsets("delta", tmp_path) == expected
    again = open_table("delta", spec(tmp_path))
    assert again.next_offsets([ZERO]) == {ZERO: 4}
    assert again.last_note() == {"batch": "3"}


def test_who_moves_our_offsets_among_others_that_do_not_is_a_rival(tmp_path: Path) -> None:
    three_batches(tmp_path)
    table = open_table("delta", spec(tmp_path))
    files = write(table, topic_rows(3, 1))
    rival = open_table("delta", spec(tmp_path))
    rival.commit(Commit(write(rival, topic_rows(3, 1)), {ZERO: 4}))
    DeltaTable(str(tmp_path)).delete("offset = 1")
    with pytest.raises(Overtaken, match="nothing of this batch was committed"):
        table.commit(Commit(files, {ZERO: 4}))
    assert offsets("delta", tmp_path) == [0, 2, 3]


def test_who_puts_the_table_back_is_a_rival(tmp_path: Path) -> None:
    """Offsets stay as they are when rows are taken back."""
    three_batches(tmp_path)
    table = open_table("delta", spec(tmp_path))
    files = write(table, topic_rows(3, 1))
    DeltaTable(str(tmp_path)).restore(1)
    with pytest.raises(Overtaken, match="nothing of this batch was committed"):
        table.commit(Commit(files, {ZERO: 4}))
    assert offsets("delta", tmp_path) == [0]


def test_who_moves_other_partitions_only_is_no_rival(tmp_path: Path) -> None:
    three_batches(tmp_path)
    table = open_table("delta", spec(tmp_path))
    other = open_table("delta", spec(tmp_path))
    other.commit(Commit(write(other, topic_rows(0, 1, partition=1)), {ONE: 1}))
    DeltaTable(str(tmp_path)).delete("partition = 0 and offset = 1")
    table.commit(Commit(write(table, topic_rows(3, 1)), {ZERO: 4}))
    assert offsets("delta", tmp_path) == [0, 0, 2, 3]


def test_a_commit_that_is_always_overtaken_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_batches(tmp_path)
    table = open_table("delta", spec(tmp_path))
    files = write(table, topic_rows(3, 1))
    looks = []
    plain_open = delta.DeltaLake.open

    def open_and_be_overtaken(wanted: object) -> delta.DeltaLake:
        opened = plain_open(wanted)  # type: ignore[arg-type]
        looks.append(1)
        DeltaTable(str(tmp_path)).alter.set_table_properties(
            {"delta.checkpointInterval": str(10 + len(looks))}
        )
        return opened

    monkeypatch.setattr(delta.DeltaLake, "open", staticmethod(open_and_be_overtaken))
    DeltaTable(str(tmp_path)).delete("offset = 1")
    with pytest.raises(Overtaken, match="nothing of this batch was committed"):
        table.commit(Commit(files, {ZERO: 4}))
    assert len(looks) == delta.COMMITS_MAX
    assert offsets("delta", tmp_path) == [0, 2]


def test_columns_are_added_again_when_somebody_changed_the_table(tmp_path: Path) -> None:

    three_batches(tmp_path)
    table = open_table("delta", spec(tmp_path))
    DeltaTable(str(tmp_path)).alter.add_columns([EXTRA])
    table.widen(table.schema.append(pa.field("city", pa.string())))
    assert table.schema.names[-2:] == ["extra", "city"]
