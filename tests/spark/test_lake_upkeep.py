"""Tables that last: what upkeep decides, and what it leaves of tables of every kind."""

import json
import os
import threading
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from bench.lake_remains import unnamed
from ropewalk.spark.lake import delta, iceberg
from ropewalk.spark.lake.delta_forgotten import forgotten_files
from ropewalk.spark.lake.iceberg import METADATA_VERSIONS_MAX, OWN_TABLE
from ropewalk.spark.lake.iceberg_upkeep import Replacement
from ropewalk.spark.lake.joining import Joined, JoinTask, here
from ropewalk.spark.lake.keeping import Keeper, Kept, keep_up
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.places import Place
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Commit, LiveFile, TableSpec, Upkeep, WrittenFile
from ropewalk.spark.lake.terms import day_column
from ropewalk.spark.lake.upkeep import INTERVAL_MS, Due, Schedule, State, joins, over, superseded
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.storage import Storage
from tests.spark.test_lake_iceberg import own_catalog
from tests.spark.test_spark_lake_tables import DAY_MS, ZERO, kept_up, offsets, spec, topic_rows, write

JOINED: list[Kind] = ["delta", "iceberg"]
MONDAY, TUESDAY = (("date", "2026-11-16"),), (("date", "2026-11-17"),)
UPKEEP = Upkeep(compact_at=3, file_bytes_target=1000, keep_hours=1)
HOUR_MS = 3_600_000


def live(*sizes: int, values: Any = MONDAY, joinable: bool = True) -> list[LiveFile]:
    return [LiveFile(f"{values}-{at}", size, 1, values, joinable) for at, size in enumerate(sizes)]


def sizes(files: list[LiveFile]) -> list[list[int]]:
    return [[each.size_bytes for each in join.files] for join in joins(files, UPKEEP)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(live(9, 9), [], id="few are left until they are more"),
        pytest.param(live(9, 9, 9), [[9, 9, 9]], id="as many as was said"),
        pytest.param(
            live(9, 9, 9, 54), [[9, 9, 9, 54]], id="a larger one when the smaller are half as much together"
        ),
        pytest.param(live(9, 9, 9, 55), [[9, 9, 9]], id="and not sooner"),
        pytest.param(live(9, 9, 499), [], id="a large one is not written anew for a few"),
        pytest.param(live(9, 9, 9, 500), [[9, 9, 9]], id="what is large enough stays"),
        pytest.param(live(400, 400, 400), [[400, 400]], id="not more than one file's worth"),
        pytest.param(
            live(9, 9, 9, values=MONDAY) + live(9, 9, values=TUESDAY), [[9, 9, 9]], id="by directory"
        ),
        pytest.param(live(9, 9, 9, values=(("date", None),)), [[9, 9, 9]], id="also without a date"),
        pytest.param(live(9, 9, 9, joinable=False), [], id="not what somebody has deleted rows of"),
    ],
)
def test_small_files_are_joined_like_digits_are_carried(
    files: list[LiveFile], expected: list[list[int]]
) -> None:
    assert sizes(files) == expected
    assert joins(files, Upkeep(compact_at=0, file_bytes_target=1000, keep_hours=1)) == []


@given(st.lists(st.integers(1, 400), min_size=1, max_size=300))
def test_a_directory_keeps_few_files_and_rows_are_written_anew_few_times(batches: list[int]) -> None:
    upkeep = Upkeep(compact_at=4, file_bytes_target=1 << 20, keep_hours=1)
    files: list[LiveFile] = []
    written = 0
    for number, size in enumerate(batches):
        files.append(LiveFile(f"batch-{number}", size << 10, 1, MONDAY))
        for join in joins(files, upkeep):
            whole = LiveFile(f"joined-{number}", sum(each.size_bytes for each in join.files), 1, MONDAY)
            assert whole.size_bytes <= upkeep.file_bytes_target
            files = [*(each for each in files if each not in join.files), whole]
            written += whole.size_bytes
    assert sum(each.size_bytes < upkeep.file_bytes_target // 2 for each in files) <= 4 * 5
    assert written <= 10 * sum(size << 10 for size in batches)


def test_days_go_as_a_whole_when_their_last_moment_is_old_enough() -> None:
    days = [(("date", day),) for day in ("2026-11-14", "2026-11-15", "2026-11-16", None)]
    files = [each for values in days for each in live(1, values=values)]
    noon_ms = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp() * 1000)
    kept = Upkeep(compact_at=0, file_bytes_target=1000, keep_hours=1, keep_rows_days=2)
    assert [each.values for each in over(files, "date", kept, noon_ms)] == [days[0]]
    assert [each.values for each in over(files, "date", kept, noon_ms + DAY_MS)] == days[:2]
    assert over(files, "date", UPKEEP, noon_ms) == []


def test_states_are_kept_by_age_and_by_number() -> None:
    upkeep = Upkeep(compact_at=0, file_bytes_target=1000, keep_hours=100, keep_states=20)
    now_ms = 1_000 * HOUR_MS
    every_minute = [State(number, now_ms - number * 60_000) for number in range(12_000)]
    gone = {each.id for each in superseded(every_minute, upkeep, now_ms)}
    kept = [each for each in every_minute if each.id not in gone]
    assert len(kept) <= 21
    assert [each.id for each in kept[:10]] == list(range(10))  # the newest
    assert max(later.id - each.id for each, later in pairwise(kept)) <= 2 * 600  # and one for every ten hours
    assert kept[-1].id <= 100 * 60
    assert kept[-1].id >= 80 * 60
    again = superseded([each for each in every_minute if each.id not in gone], upkeep, now_ms)
    assert again == []


@pytest.mark.parametrize("every_ms", [1_000, 60_000, 3_600_000])
def test_a_table_has_about_as_many_states_at_any_time(every_ms: int) -> None:
    """Also while it is young: each commit writes of all of them, and would take longer before they are forgotten than afterwards."""
    upkeep = Upkeep(compact_at=0, file_bytes_target=1000, keep_hours=168, keep_states=100)
    states: list[State] = []
    counts: list[int] = []
    for number in range(1_000):
        now_ms = 1_000 * HOUR_MS + number * every_ms
        states.append(State(number, now_ms))
        gone = {each.id for each in superseded(states, upkeep, now_ms)}
        states = [each for each in states if each.id not in gone]
        counts.append(len(states))
        assert [each.id for each in states[-50:]] == list(range(max(0, number - 49), number + 1))
    assert min(counts[100:]) >= 100
    assert max(counts) <= 126


def test_states_go_together_and_the_newest_never() -> None:
    upkeep = Upkeep(compact_at=0, file_bytes_target=1000, keep_hours=10, keep_states=20)
    now_ms = 1_000 * HOUR_MS
    just_over = [State(1, now_ms), State(2, now_ms - 10 * HOUR_MS - 1)]
    assert superseded(just_over, upkeep, now_ms) == []
    assert superseded(just_over, upkeep, now_ms + HOUR_MS) == just_over[1:]
    assert superseded(just_over[1:], upkeep, now_ms + 99 * HOUR_MS) == []
    assert superseded([], upkeep, now_ms) == []


def test_upkeep_is_due_by_need_by_number_and_by_time() -> None:
    file = WrittenFile("a", 1, 1, {"date": "2026-11-16"}, 0)
    schedule = Schedule(batches_max=5, compact_at=3)
    assert schedule.on_batch([], 0) == Due(thorough=True)  # nobody knows what was before
    schedule.on_begun(Due(thorough=True), 0)
    assert schedule.on_batch([file, file], 1) is None
    assert schedule.on_batch([file], 2) == Due(thorough=False)
    schedule.on_begun(Due(thorough=False), 2)
    other = [WrittenFile("a", 1, 1, {"date": f"2026-11-{day}"}, 0) for day in (1, 2, 3)]
    assert schedule.on_batch(other, 3) is None
    assert [schedule.on_batch([], 4) for _ in range(4)] == [None, None, None, Due(thorough=False)]
    schedule.on_begun(Due(thorough=False), 4)
    assert schedule.on_batch([], 4 + INTERVAL_MS) == Due(thorough=False)
    assert schedule.on_batch([], 4 + 10 * INTERVAL_MS) == Due(thorough=True)
    never = Schedule(batches_max=0, compact_at=1)
    assert never.on_batch([file], 0) is None


def batches(kind: Kind, path: Path, count: int, **changes: Any) -> None:
    wanted = spec(path, **changes)
    for number in range(count):
        table = open_table(kind, wanted)
        reached = table.next_offsets([ZERO]).get(ZERO, 0)
        table.commit(
            Commit(write(table, topic_rows(reached, 1)), {ZERO: reached + 1}, {"batch": str(number)})
        )


def rows(kind: Kind, path: Path) -> pa.Table:
    if kind == "delta":
        return DeltaTable(str(path)).to_pyarrow_table().sort_by("offset")
    return own_catalog(path).load_table(OWN_TABLE).scan().to_arrow().sort_by("offset")


@pytest.mark.parametrize("kind", JOINED)
def test_joined_files_hold_the_same_rows_and_move_no_offset(kind: Kind, tmp_path: Path) -> None:
    batches(kind, tmp_path, 9)
    before = rows(kind, tmp_path)
    said = kept_up(kind, spec(tmp_path), Upkeep(8, 1 << 27, keep_hours=0))
    assert said.startswith("9 small files joined")
    table = open_table(kind, spec(tmp_path))
    (file,) = table.files()
    assert (file.row_count, file.values) == (9, (("date", "1970-01-01"),))
    assert rows(kind, tmp_path) == before
    assert table.next_offsets([ZERO]) == {ZERO: 9}
    assert table.last_note() == {"batch": "8"}
    assert unnamed(kind, tmp_path) == []
    batches(kind, tmp_path, 1)
    assert offsets(kind, tmp_path) == list(range(10))


@pytest.mark.parametrize("kind", JOINED)
def test_batches_and_upkeep_are_no_rivals(kind: Kind, tmp_path: Path) -> None:
    """Upkeep commits between a batch's look and its commit, and a batch between upkeep's look and its commit."""
    batches(kind, tmp_path, 4)

    def with_a_batch(task: JoinTask) -> list[Joined]:
        batches(kind, tmp_path, 1)
        return here(task)

    table = open_table(kind, spec(tmp_path))
    reached = table.next_offsets([ZERO])[ZERO]
    files = write(table, topic_rows(reached + 1, 1))
    kept = Kept(kind, spec(tmp_path), Upkeep(4, 1 << 27, keep_hours=1))
    said = keep_up(kept, with_a_batch, now_ms=int(time.time() * 1000))
    assert said.startswith("4 small files joined")
    late = open_table(kind, spec(tmp_path))
    keep_up(
        Kept(kind, spec(tmp_path), Upkeep(2, 1 << 27, keep_hours=1)), here, now_ms=int(time.time() * 1000)
    )
    late.commit(Commit(files, {ZERO: reached + 2}))
    assert offsets(kind, tmp_path) == list(range(reached + 2))


@pytest.mark.parametrize("kind", JOINED)
def test_upkeep_that_comes_too_late_changes_nothing(kind: Kind, tmp_path: Path) -> None:
    batches(kind, tmp_path, 4)

    def after_another(task: JoinTask) -> list[Joined]:
        kept_up(kind, spec(tmp_path), Upkeep(4, 1 << 27, keep_hours=1))
        return here(task)

    kept = Kept(kind, spec(tmp_path), Upkeep(4, 1 << 27, keep_hours=1))
    said = keep_up(kept, after_another, now_ms=int(time.time() * 1000))
    assert said.startswith("0 small files joined")
    assert offsets(kind, tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("rival", ["joins", "deletes"])
@pytest.mark.parametrize("kind", JOINED)
def test_files_that_another_took_between_look_and_commit_are_not_replaced(
    kind: Kind, rival: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs would make the commit again without a look, and every row would be there twice."""
    batches(kind, tmp_path, 4)
    upkeep = Upkeep(4, 1 << 27, keep_hours=1)
    armed = [True]

    def before_the_commit() -> None:
        if armed:
            armed.clear()
            table = open_table(kind, spec(tmp_path))
            (join,) = joins(table.files(), upkeep)
            task = JoinTask(
                target=table.target, schema=table.schema, joins=(join,), file_bytes_target=1 << 27
            )
            added = here(task)[0].files if rival == "joins" else ()
            assert table.exchange(join.files, added)

    if kind == "delta":
        plain = delta.DeltaLake._exchange

        def exchange(self: delta.DeltaLake, removed: Any, added: Any) -> None:
            before_the_commit()
            plain(self, removed, added)

        monkeypatch.setattr(delta.DeltaLake, "_exchange", exchange)
    else:

        class Late(Replacement):
            def __init__(self, *args: Any, **named: Any) -> None:
                before_the_commit()
                super().__init__(*args, **named)

        monkeypatch.setattr(iceberg, "Replacement", Late)
    assert kept_up(kind, spec(tmp_path), upkeep).startswith("0 small files joined")
    assert offsets(kind, tmp_path) == ([0, 1, 2, 3] if rival == "joins" else [])


@pytest.mark.parametrize("kind", JOINED)
def test_values_in_columns_and_columns_that_came_later_are_joined_too(kind: Kind, tmp_path: Path) -> None:
    def of(value: list[tuple[str, pa.DataType]]) -> pa.Schema:
        schema = raw_schema("date")
        return schema.set(schema.get_field_index("value"), pa.field("value", pa.struct(value)))

    tags = ("tags", pa.map_(pa.string(), pa.list_(pa.int64())))
    narrow, wide = [("a", pa.int64()), tags], [("b", pa.string()), tags, ("a", pa.int64())]
    for number in range(4):
        columns = of(wide if number > 1 else narrow)
        table = open_table(kind, spec(tmp_path, schema=columns))
        table.widen(columns)
        value = {"a": number, "tags": [("x", [1, number])], **({"b": "y"} if number > 1 else {})}
        raw = topic_rows(number, 1)
        at = raw.schema.get_field_index("value")
        made = raw.set_column(at, "value", pa.array([value], columns.field("value").type))
        table.commit(Commit(write(table, made), {ZERO: number + 1}))
    before = rows(kind, tmp_path).to_pylist()
    said = kept_up(kind, spec(tmp_path, schema=of(wide)), Upkeep(2, 1 << 27, keep_hours=1))
    assert said.startswith("4 small files joined")
    assert rows(kind, tmp_path).to_pylist() == before
    assert before[0]["value"] == {"a": 0, "b": None, "tags": [("x", [1, 0])]}


def test_what_a_column_meant_before_it_was_renamed_is_not_mixed_up(tmp_path: Path) -> None:
    """Somebody gives `key` another name, and a new column the name that it had."""
    batches("iceberg", tmp_path, 3)
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    with theirs.update_schema() as update:
        update.rename_column("key", "old_key")
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    with theirs.update_schema() as update:
        from pyiceberg.types import BinaryType

        update.add_column("key", BinaryType())
    before = rows("iceberg", tmp_path)
    assert before["old_key"].to_pylist() == [b"k0", b"k1", b"k2"]
    said = kept_up("iceberg", spec(tmp_path), Upkeep(2, 1 << 27, keep_hours=1))
    assert said.startswith("0 small files joined")
    assert rows("iceberg", tmp_path) == before


def test_a_time_filter_passes_over_files_of_iceberg(tmp_path: Path) -> None:
    table = open_table("iceberg", spec(tmp_path, partition_columns=()))
    for day in range(20):
        table = open_table("iceberg", spec(tmp_path, partition_columns=()))
        table.commit(Commit(write(table, topic_rows(day, 1, step_ms=DAY_MS)), {ZERO: day + 1}))
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    late = theirs.scan(row_filter="timestamp >= '1970-01-19T00:00:00+00:00'")
    assert len(list(theirs.scan().plan_files())) == 20
    assert len(list(late.plan_files())) == 2
    assert sorted(late.to_arrow()["offset"].to_pylist()) == [18, 19]
    assert len(list(theirs.scan(row_filter="offset = 7 and partition = 0").plan_files())) == 1
    assert len(list(theirs.scan(row_filter="partition = 3").plan_files())) == 0
    kept_up("iceberg", spec(tmp_path, partition_columns=()), Upkeep(8, 1 << 27, keep_hours=0))
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    assert theirs.scan(row_filter="timestamp >= '1970-01-19T00:00:00+00:00'").to_arrow().num_rows == 2


def test_columns_of_iceberg_files_have_their_numbers(tmp_path: Path) -> None:
    batches("iceberg", tmp_path, 1)
    (path,) = (tmp_path / "data").rglob("*.parquet")
    found = pq.read_schema(path)
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE).schema()
    assert len(found) == len(theirs.columns)
    for field in found:
        assert int(field.metadata[b"PARQUET:field_id"]) == theirs.find_field(field.name).field_id


def test_metadata_of_iceberg_is_bounded_and_nothing_is_left(tmp_path: Path) -> None:
    upkeep = Upkeep(4, 1 << 27, keep_hours=1, keep_states=10)
    for _ in range(10):
        batches("iceberg", tmp_path, 4)
        kept_up("iceberg", spec(tmp_path), upkeep)
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    assert len(theirs.snapshots()) <= 10 + 10 // 4 + 1
    assert len(list((tmp_path / "metadata").glob("*.metadata.json"))) == METADATA_VERSIONS_MAX + 1
    current = theirs.current_snapshot()
    assert current is not None
    assert len(current.manifests(theirs.io)) <= 8 + 3
    assert unnamed("iceberg", tmp_path) == []
    assert offsets("iceberg", tmp_path) == list(range(40))
    for snapshot in theirs.snapshots():  # every state that is kept can be read
        assert theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows <= 40


def test_tables_made_before_metadata_was_bounded_are_taken_over(tmp_path: Path) -> None:
    """Files without field numbers, no bounds in the manifests, no bound on metadata."""
    batches("iceberg", tmp_path, 1)
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    with theirs.transaction() as change:
        change.remove_properties("write.metadata.delete-after-commit.enabled")
    for number in range(1, 4):
        path = tmp_path / "data" / "date=1970-01-01" / f"part-old-{number}.parquet"
        made = topic_rows(number, 1).append_column("date", pa.array([0], pa.int32()).cast(pa.date32()))
        columns = {
            name: made[name].cast(raw_schema("date").field(name).type) for name in raw_schema("date").names
        }
        pq.write_table(pa.table(columns), path)
        own_catalog(tmp_path).load_table(OWN_TABLE).add_files([f"file://{path}"])
    assert kept_up("iceberg", spec(tmp_path), Upkeep(2, 1 << 27, keep_hours=1)).startswith(
        "4 small files joined"
    )
    assert offsets("iceberg", tmp_path) == [0, 1, 2, 3]
    properties = own_catalog(tmp_path).load_table(OWN_TABLE).properties
    assert properties["write.metadata.delete-after-commit.enabled"] == "true"


def test_the_log_of_delta_is_bounded_and_kept_versions_can_be_read(tmp_path: Path) -> None:
    upkeep = Upkeep(4, 1 << 27, keep_hours=168, keep_states=10)
    for _ in range(12):
        batches("delta", tmp_path, 4)
        kept_up("delta", spec(tmp_path), upkeep)
    table = DeltaTable(str(tmp_path))
    log = [each.name for each in (tmp_path / "_delta_log").glob("*.json")]
    assert len(log) <= 10 + 2 * 10 // 4 + 4
    for version in range(table.version() - 10, table.version() + 1):
        table.load_as_version(version)
        assert table.to_pyarrow_table(columns=["offset"]).num_rows > 30
    assert open_table("delta", spec(tmp_path)).next_offsets([ZERO]) == {ZERO: 48}
    assert offsets("delta", tmp_path) == list(range(48))
    assert unnamed("delta", tmp_path) == [], "checkpoints name what was removed, too"


def test_files_that_came_back_are_not_deleted_with_the_versions_that_removed_them(tmp_path: Path) -> None:
    batches("delta", tmp_path, 4)
    kept_up("delta", spec(tmp_path), Upkeep(4, 1 << 27, keep_hours=168))
    DeltaTable(str(tmp_path)).restore(4)  # from before they were joined
    for _ in range(12):
        batches("delta", tmp_path, 4)
        kept_up("delta", spec(tmp_path), Upkeep(0, 1 << 27, keep_hours=168, keep_states=10))
    assert len(list((tmp_path / "_delta_log").glob("*.json"))) < 30, "their commits are forgotten"
    assert offsets("delta", tmp_path) == list(range(52))


@pytest.mark.parametrize(
    ("commits", "live", "expected"),
    [
        pytest.param(["-a", "", ""], [], ["a"], id="removed by a commit that is forgotten"),
        pytest.param(["", "-a", ""], [], ["a"], id="removed by the first version that can be read"),
        pytest.param(["", "", "-a"], ["a"], [], id="an earlier version that is kept has it"),
        pytest.param(["-a", "", "+a"], [], [], id="it came back later"),
        pytest.param(["-a +a", "", ""], ["a"], [], id="it came back before"),
        pytest.param(["+a", "", ""], [], [], id="never removed: perhaps of a commit that is under way"),
        pytest.param(["-a%2520b -c%20d", "", ""], [], ["a%20b", "c d"], id="quoted like a URL"),
        pytest.param(["-../a -s3://b/c -/d", "", ""], [], [], id="not of this table"),
    ],
)
def test_files_are_deleted_that_only_forgotten_versions_have(
    commits: list[str], live: list[str], expected: list[str], tmp_path: Path
) -> None:
    kinds = {"+": "add", "-": "remove"}
    for number, text in enumerate(commits):
        lines = [json.dumps({kinds[each[0]]: {"path": f"{each[1:]}.parquet"}}) for each in text.split()]
        (tmp_path / f"{number}.json").write_text(
            "\n".join([*lines, '{"commitInfo": {"operation": "WRITE"}}'])
        )
    found = forgotten_files(
        Place(str(tmp_path), Storage()),
        ["0.json"],
        ["1.json", "2.json"],
        [f"{each}.parquet" for each in live],
    )
    assert found == [f"{each}.parquet" for each in expected]


def test_what_was_never_committed_is_what_nothing_names(tmp_path: Path) -> None:
    batches("delta", tmp_path, 2)
    DeltaTable(str(tmp_path)).create_checkpoint()  # of a table from which nothing was removed
    assert unnamed("delta", tmp_path) == []
    (failed,) = write(open_table("delta", spec(tmp_path)), topic_rows(2, 1))
    assert unnamed("delta", tmp_path) == [str(tmp_path / failed.path)]


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_rows_are_deleted_by_whole_days_and_offsets_stay(kind: Kind, tmp_path: Path) -> None:
    table = open_table(kind, spec(tmp_path))
    files = write(table, topic_rows(0, 12, step_ms=DAY_MS // 2), topic_rows(12, 1, start_ms=3 * 10**15))
    table.commit(Commit(files, {ZERO: 13}))
    batches(kind, tmp_path, 1)
    table = open_table(kind, spec(tmp_path))
    table.commit(Commit((), {ZERO: 14}))  # files of the last commit of a directory may still be on their way
    kept = Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=1, keep_rows_days=2)
    now_ms = 5 * DAY_MS + 1  # the last day of six
    said = kept_up(kind, spec(tmp_path), kept, now_ms=now_ms)
    assert "files of days that are over deleted" in said
    assert offsets(kind, tmp_path) == [6, 7, 8, 9, 10, 11, 12]
    assert open_table(kind, spec(tmp_path)).next_offsets([ZERO]) == {ZERO: 14}
    untouched = [each.path for each in files if each.partition_values["date"] in ("1970-01-04", "1970-01-05")]
    assert {each.path for each in open_table(kind, spec(tmp_path)).files()} >= set(untouched)
    kept_up(kind, spec(tmp_path), kept, now_ms=now_ms)
    assert offsets(kind, tmp_path) == [6, 7, 8, 9, 10, 11, 12]


def test_days_are_deleted_only_where_there_is_a_directory_for_each() -> None:
    schema = raw_schema("hour")
    assert day_column(schema, ("topic", "date", "hour")) == "date"
    for columns in ((), ("topic",), ("hour",)):
        with pytest.raises(WrongUse, match="keep_rows_days deletes whole days"):
            day_column(schema, columns)


@pytest.mark.parametrize("kind", JOINED)
def test_what_no_state_names_is_deleted_when_it_is_a_day_old(kind: Kind, tmp_path: Path) -> None:
    batches(kind, tmp_path, 2)
    failed = write(open_table(kind, spec(tmp_path)), topic_rows(0, 9))
    left = [Path(open_table(kind, spec(tmp_path)).target.root) / each.path for each in failed]
    if kind == "iceberg":
        left.append(tmp_path / "metadata" / "of-a-commit-that-failed-m0.avro")
        left[-1].write_bytes(b"x")
    at_once = Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=0)
    kept_up(kind, spec(tmp_path), at_once)
    assert all(each.exists() for each in left)  # a batch under way may be about to commit it
    for each in left:
        os.utime(each, (time.time() - 25 * 3600,) * 2)
    kept_up(kind, spec(tmp_path), at_once)
    assert not any(each.exists() for each in left)
    assert offsets(kind, tmp_path) == [0, 1]


class Session:
    """As much of Spark as a keeper uses: tasks are run by the thread that asks."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.began = threading.Event()

    @property
    def sparkContext(self) -> Any:  # noqa: N802  # Spark's name for it
        return type("Context", (), {"defaultParallelism": 2})

    def range(self, start: int, end: int, step: int, count: int) -> "Session":
        del start, step, count
        self._numbers = pa.record_batch({"id": list(range(end))})
        return self

    def mapInArrow(self, task: JoinTask, schema: str) -> "Session":  # noqa: N802
        del schema
        self._task = task
        return self

    def collect(self) -> list[tuple[bytes]]:
        self.began.set()
        assert self.go_on.wait(30)
        return [(each.column(0)[0].as_py(),) for each in self._task(iter([self._numbers]))]


def test_a_batch_never_waits_for_upkeep(tmp_path: Path) -> None:
    wanted: TableSpec = spec(tmp_path)
    keeper = Keeper([Kept("delta", wanted, Upkeep(3, 1 << 27, keep_hours=1))], batches_max=100)
    keeper = cloudpickle.loads(cloudpickle.dumps(keeper))  # type: ignore[no-untyped-call]  # as it comes to a Connect server
    spark: Any = Session()
    batches("delta", tmp_path, 3)
    keeper.after_batch(spark, ())
    assert spark.began.wait(30)
    for _ in range(3):  # while files are joined
        batches("delta", tmp_path, 1)
        keeper.after_batch(spark, ())
    spark.go_on.set()
    keeper.wait()
    assert len(open_table("delta", wanted).files()) == 4
    assert offsets("delta", tmp_path) == list(range(6))


def test_upkeep_that_goes_wrong_is_said_and_ends_no_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keeper = Keeper(
        [Kept("delta", spec(tmp_path, owner="another"), Upkeep(3, 1 << 27, keep_hours=1))], batches_max=1
    )
    batches("delta", tmp_path, 1)
    spark: Any = Session()
    for _ in range(2):
        keeper.after_batch(spark, ())
        keeper.wait()
    told = capsys.readouterr()
    assert "upkeep is left for the next time" in told.out + told.err
    assert "belongs to the job 'nightly'" in told.out + told.err


def test_a_joined_file_of_delta_changes_no_data_for_who_follows_the_table(tmp_path: Path) -> None:
    batches("delta", tmp_path, 3)
    kept_up("delta", spec(tmp_path), Upkeep(3, 1 << 27, keep_hours=1))
    last = max((tmp_path / "_delta_log").glob("*.json"))
    assert '"dataChange":true' not in last.read_text()
    pruned = DeltaTable(str(tmp_path)).to_pyarrow_dataset().get_fragments(filter=ds.field("offset") > 4)
    assert list(pruned) == []  # the bounds are there
