"""Each record is in exactly one of two tables, whatever dies in between and whatever a later attempt thinks of it. Without Spark: a session
that runs tasks here, and records that were never in a topic."""

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from pyiceberg.catalog import load_catalog

from ropewalk.base.ids import TopicPartition
from ropewalk.spark import fail_points
from ropewalk.spark.lake.dead_letters import is_paid, note_of, settle
from ropewalk.spark.lake.judging import ERROR, dead_letter_schema, value_schema
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import Landing
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Commit, TableSpec, Upkeep
from ropewalk.spark.ranges import Range, TopicIds, split
from ropewalk.spark.refusals import DataLost
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, open_reader
from ropewalk.spark.values.schemas import SchemaText
from tests.spark.test_spark_lake_tables import KINDS, ONE, ZERO, iceberg_rows, kept_up, topic_rows, write

LENGTH = 12
"""Records of each of two partitions. Of three in turn, one is broken, one lacks a field that a strict schema wants, one is fine."""

VALUES = [b"broken", b'{"id": 1}', b'{"id": 1, "more": 2}']
PLACES = ["archive files written", "archive committed"]


class Died(BaseException):
    """As a process dies: nothing on the way may catch it."""


def schema_of(*required: str) -> ResolvedFormat:
    text = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "more": {"type": "integer"}},
        "required": list(required),
    }
    return ResolvedFormat(ValueFormat(format="json", schema="given"), SchemaText("json", json.dumps(text)))


LAX, STRICT = schema_of("id"), schema_of("id", "more")


class Frame:
    """As much of a frame as a landing uses. Each batch is that of a task of its own."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = batches

    @property
    def sparkSession(self) -> type["Session"]:  # noqa: N802  # Spark's name for it
        return Session

    def mapInArrow(self, task: Any, _: str) -> "Frame":  # noqa: N802
        return Frame([handed for batch in self._batches for handed in task(iter([batch]))])

    def collect(self) -> list[tuple[bytes]]:
        return [(row["file"],) for batch in self._batches for row in batch.to_pylist()]


class Context:
    @staticmethod
    def setJobDescription(description: str) -> None:  # noqa: N802  Spark's name
        assert "batch" in description


class Session:
    sparkContext = Context()  # noqa: N815  Spark's name

    @staticmethod
    def range(start: int, end: int, step: int, count: int) -> Frame:
        assert (step, count) == (1, end - start), "a task for each number"
        return Frame([pa.record_batch({"id": pa.array([number])}) for number in range(start, end)])


class Made:
    """Records that are made when they are read."""

    def split(self, ranges: list[Range]) -> list[Range]:
        return split(ranges, 3)

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        return {}

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        for start in range(max(0, wanted.start), wanted.end, 2):
            yield records(wanted.partition.partition, start, min(start + 2, wanted.end))


def records(partition: int, start: int, end: int) -> pa.RecordBatch:
    rows = topic_rows(start, end - start, partition=partition)
    values = pa.array([VALUES[(offset + partition) % 3] for offset in range(start, end)], pa.binary())
    return rows.set_column(rows.schema.get_field_index("value"), "value", values)


class Lake:
    """Two tables in a directory, and attempts at batches that may die."""

    def __init__(self, kind: Kind, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        raw = raw_schema("date")
        columns = value_schema(raw, open_reader(LAX).schema())
        self.spec = TableSpec(
            address=str(directory / "lake"), owner="job", schema=columns, partition_columns=("date",)
        )
        self.letters = structs.replace(
            self.spec, address=str(directory / "dead"), schema=dead_letter_schema(raw)
        )
        self._attempts = 0

    def attempt(
        self,
        start: dict[TopicPartition, int],
        end: dict[TopicPartition, int],
        values: ResolvedFormat,
        dies_at: str | None = None,
    ) -> None:
        """One batch of a query with a checkpoint of its own."""
        self._attempts += 1
        checkpoint = self.directory / f"checkpoint-{self._attempts}"
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(as_json(end))}")
        is_raw = values.settings.format == "raw"
        landing = Landing(
            records=Made(),
            kind=self.kind,
            spec=structs.replace(self.spec, schema=raw_schema("date")) if is_raw else self.spec,
            letters=None if is_raw else self.letters,
            values=values,
            checkpoint=str(checkpoint),
            starting=as_json(start),
        )

        def reach(place: str) -> None:
            if place == dies_at:
                raise Died

        before, fail_points.reach = fail_points.reach, reach
        try:
            landing(Frame([]), 0)  # type: ignore[arg-type]  # as much of a frame as it uses
            for spec in (landing.spec, landing.letters):
                if spec is not None:
                    kept_up(self.kind, spec, Upkeep(compact_at=2, file_bytes_target=1 << 20, keep_hours=0))
        except Died:
            pass
        finally:
            fail_points.reach = before

    def reached(self) -> dict[TopicPartition, int]:
        stored = open_table(self.kind, self.spec).next_offsets([ZERO, ONE])
        return {ZERO: 0, ONE: 0} | stored

    def rows(self, spec: TableSpec) -> list[dict[str, Any]]:
        path = Path(spec.address)
        match self.kind:
            case "delta":
                found = DeltaTable(str(path)).to_pyarrow_table()
            case "iceberg":
                found = iceberg_rows(path)
            case "parquet":
                found = ds.dataset(
                    path, schema=open_table(self.kind, spec).schema, partitioning="hive"
                ).to_table()
        return sorted(found.to_pylist(), key=lambda row: (row["partition"], row["offset"]))

    def places(self, spec: TableSpec) -> list[tuple[int, int]]:
        return [(row["partition"], row["offset"]) for row in self.rows(spec)]


def as_json(offsets: dict[TopicPartition, int]) -> dict[str, dict[str, int | str]]:
    return {"orders": {str(each.partition): offset for each, offset in offsets.items()}}


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def test_a_row_is_in_one_table_with_all_that_is_known_of_it(lake: Lake) -> None:
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 3, ONE: 0}, STRICT)
    (good,) = lake.rows(lake.spec)
    assert (good["offset"], good["value"]) == (2, {"id": 1, "more": 2})
    broken, lacking = lake.rows(lake.letters)
    assert (broken["key"], broken["value"], broken["topic"], broken["partition"], broken["offset"]) == (
        b"k0",
        b"broken",
        "orders",
        0,
        0,
    )
    assert broken["error"].startswith("is not JSON")
    assert lacking["error"] == "does not fit the schema: Object missing required field `more`"
    assert lacking["headers"] == [{"key": "n", "value": b"1"}]


@pytest.mark.parametrize("place", PLACES)
def test_what_an_attempt_decided_stays_whatever_the_next_one_thinks(lake: Lake, place: str) -> None:
    """The strict schema's verdict counts if the table got it, and the lax one's otherwise."""
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 6, ONE: 6}, STRICT, dies_at=place)
    assert lake.places(lake.letters) == []
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 9, ONE: 6}, LAX)
    letters = lake.places(lake.letters)
    everything = sorted([(0, offset) for offset in range(9)] + [(1, offset) for offset in range(6)])
    assert sorted(lake.places(lake.spec) + letters) == everything
    was_decided = place == "archive committed"
    assert ((0, 1) in letters) is was_decided  # it lacks a field
    assert (0, 7) not in letters
    assert (0, 0) in letters


def test_a_debt_is_paid_though_nothing_else_comes(lake: Lake) -> None:
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 3, ONE: 3}, LAX, dies_at="archive committed")
    assert lake.places(lake.letters) == []
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 3, ONE: 3}, LAX)
    assert lake.places(lake.letters) == [(0, 0), (1, 2)]


def test_dead_letters_may_be_deleted(lake: Lake) -> None:
    for dies_at in (None, "archive committed"):
        start = lake.reached()
        lake.attempt(start, {each: offset + 3 for each, offset in start.items()}, LAX, dies_at)
        shutil.rmtree(lake.letters.address)
    start = lake.reached()
    lake.attempt(start, {each: offset + 3 for each, offset in start.items()}, LAX)
    assert lake.places(lake.letters) == [(0, 6), (1, 8)]
    assert len(lake.places(lake.spec)) == 12


def test_values_that_are_taken_as_they_are_need_no_second_table(lake: Lake) -> None:
    lake.spec = structs.replace(lake.spec, schema=raw_schema("date"))
    raw = ResolvedFormat(ValueFormat())
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 3, ONE: 0}, raw, "archive committed")
    lake.attempt({ZERO: 0, ONE: 0}, {ZERO: 3, ONE: 2}, raw)
    assert lake.places(lake.spec) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert [row["value"] for row in lake.rows(lake.spec)][:3] == VALUES
    assert not Path(lake.letters.address).exists()


_ATTEMPTS = st.lists(
    st.tuples(
        st.fixed_dictionaries({ZERO: st.integers(0, LENGTH), ONE: st.integers(0, LENGTH)}),
        st.fixed_dictionaries({ZERO: st.integers(0, LENGTH), ONE: st.integers(0, LENGTH)}),
        st.sampled_from([LAX, STRICT]),
        st.sampled_from([None, *PLACES]),
    ),
    max_size=6,
)


@settings(max_examples=30, deadline=None)
@given(_ATTEMPTS)
def test_any_attempts_leave_each_record_in_one_table(
    attempts: list[tuple[dict[TopicPartition, int], dict[TopicPartition, int], ResolvedFormat, str | None]],
) -> None:
    """Attempts begin anywhere at or before the table's end, as replays with other bounds do, and die anywhere."""
    directory = Path(mkdtemp())
    try:
        lake = Lake("parquet", directory)
        for back, length, values, dies_at in attempts:
            start = {each: max(0, offset - back[each]) for each, offset in lake.reached().items()}
            end = {each: min(LENGTH, offset + length[each]) for each, offset in start.items()}
            lake.attempt(start, end, values, dies_at)
            good, letters = lake.places(lake.spec), lake.places(lake.letters)
            assert len({*good, *letters}) == len(good) + len(letters)
        lake.attempt(lake.reached(), {ZERO: LENGTH, ONE: LENGTH}, LAX)
        assert sorted(lake.places(lake.spec) + lake.places(lake.letters)) == [
            (partition, offset) for partition in (0, 1) for offset in range(LENGTH)
        ]
    finally:
        shutil.rmtree(directory)


def test_tables_that_do_not_belong_together_are_not_written_to() -> None:
    assert is_paid({ZERO: 5, ONE: 3}, {ZERO: 5, ONE: 3})
    assert not is_paid({ZERO: 5, ONE: 3}, {ZERO: 4})
    for reached in ({ZERO: 6, ONE: 3}, {ZERO: 5, ONE: 2}):
        with pytest.raises(DataLost, match="was put back to an earlier state"):
            is_paid({ZERO: 5, ONE: 3}, reached)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_owed_outlives_a_clean_up_of_the_history_by_others(kind: Kind, tmp_path: Path) -> None:
    raw = raw_schema("date")
    spec = TableSpec(address=str(tmp_path / "lake"), owner="job", schema=raw, partition_columns=("date",))
    letters_spec = structs.replace(spec, address=str(tmp_path / "letters"), schema=dead_letter_schema(raw))
    for _ in range(2):  # what was paid is not paid again
        first = open_table(kind, spec).next_offsets([ZERO]).get(ZERO, 0)
        table, letters = open_table(kind, spec), open_table(kind, letters_spec)
        owed = write(letters, topic_rows(first + 3, 2).append_column(ERROR, pa.array(["bad"] * 2)))
        moves = {ZERO: first + 5}
        table.commit(Commit(write(table, topic_rows(first, 3)), moves, note_of(owed, moves, {})))
        _forget_history(kind, tmp_path / "lake")
        assert settle(open_table(kind, spec), open_table(kind, letters_spec)) == 2
        assert settle(open_table(kind, spec), open_table(kind, letters_spec)) == 0
    plain = open_table(kind, spec)
    plain.commit(Commit((), {ZERO: 11}, {"batch": "2"}))
    _forget_history(kind, tmp_path / "lake")
    assert settle(open_table(kind, spec), open_table(kind, letters_spec)) == 0


def test_notes_of_debts_that_were_paid_are_deleted_when_they_are_a_day_old(tmp_path: Path) -> None:
    raw = raw_schema("date")
    spec = TableSpec(address=str(tmp_path / "lake"), owner="job", schema=raw, partition_columns=("date",))
    letters_spec = structs.replace(spec, address=str(tmp_path / "letters"), schema=dead_letter_schema(raw))
    notes = tmp_path / "lake" / "_ropewalk" / "owed"
    at_once = Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=0)
    for first in (0, 5):
        table, letters = open_table("delta", spec), open_table("delta", letters_spec)
        owed = write(letters, topic_rows(first, 2).append_column(ERROR, pa.array(["bad"] * 2)))
        table.commit(Commit((), {ZERO: first + 5}, note_of(owed, {ZERO: first + 5}, {})))
    earlier, newest = sorted(notes.iterdir(), key=lambda each: each.stat().st_mtime_ns)
    kept_up("delta", spec, at_once)
    assert earlier.exists(), "a commit under way may be about to name it"
    for each in (earlier, newest):
        os.utime(each, (time.time() - 25 * 3600,) * 2)
    kept_up("delta", spec, at_once)
    assert list(notes.iterdir()) == [newest]
    assert settle(open_table("delta", spec), open_table("delta", letters_spec)) == 2


def _forget_history(kind: Kind, path: Path) -> None:
    """As others do it who know nothing of us."""
    if kind == "delta":
        table = DeltaTable(str(path))
        table.alter.set_table_properties({"delta.appendOnly": "false"})
        table.create_checkpoint()
        for each in (path / "_delta_log").glob("*.json"):
            if int(each.stem) < table.version():
                each.unlink()
    elif kind == "iceberg":
        catalog = load_catalog("ropewalk", type="sql", uri=f"sqlite:///{path}/_ropewalk/catalog.db")
        opened = catalog.load_table("ropewalk.archive")
        opened.append(opened.scan(limit=0).to_arrow())  # of somebody else's
        opened.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()
