"""Tables of every kind, without Spark: what is committed once is there once, and what was not committed is not seen."""

import contextlib
import os
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.advance import decide_advance
from ropewalk.spark.lake.delta import STATISTICS
from ropewalk.spark.lake.joining import here
from ropewalk.spark.lake.keeping import Kept, keep_up
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.shaping import partition_columns, raw_schema, with_times
from ropewalk.spark.lake.table import Commit, LakeTable, TableSpec, Target, Upkeep, WrittenFile
from ropewalk.spark.lake.writing import FileWriter, write_all
from ropewalk.spark.ranges import FROM_THE_START, Range
from ropewalk.spark.refusals import NotOurs, Overtaken, WrongUse

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
DAY_MS = 86_400_000
KINDS: list[Kind] = ["delta", "iceberg", "parquet"]
NEVER = Upkeep(compact_at=0, file_bytes_target=1 << 27, keep_hours=1)


def spec(path: Path, **changes: Any) -> TableSpec:
    wanted: dict[str, Any] = {
        "address": str(path),
        "owner": "nightly",
        "schema": raw_schema("date"),
        "partition_columns": partition_columns("date", several_topics=False),
    }
    return TableSpec(**(wanted | changes))


def topic_rows(
    first: int,
    count: int,
    *,
    partition: int = 0,
    topic: str = "orders",
    start_ms: int = 0,
    step_ms: int = 1000,
) -> pa.RecordBatch:
    """As the source gives them, in the time zone of some session."""
    numbers = range(first, first + count)
    times = pa.array(
        [(start_ms + number * step_ms) * 1000 for number in numbers], pa.timestamp("us", tz="Asia/Tokyo")
    )
    schema = raw_schema("date")
    return pa.record_batch(
        {
            "key": [b"k%d" % number for number in numbers],
            "value": [b"v%d" % number for number in numbers],
            "topic": [topic] * count,
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": list(numbers),
            "timestamp": times,
            "timestampType": pa.array([0] * count, pa.int32()),
            "headers": pa.array(
                [[{"key": "n", "value": b"%d" % number}] if number % 2 else None for number in numbers],
                schema.field("headers").type,
            ),
        }
    )


def write(
    table: LakeTable, *batches: pa.RecordBatch, file_bytes_target: int = 1 << 27
) -> tuple[WrittenFile, ...]:
    writer = FileWriter(table.target, table.schema, file_bytes_target=file_bytes_target)
    return tuple(write_all(writer, (with_times(each, table.schema) for each in batches)))


def kept_up(kind: Kind, wanted: TableSpec, upkeep: Upkeep, *, now_ms: int | None = None) -> str:
    """What a run does for a table, in this process."""
    return keep_up(Kept(kind, wanted, upkeep), here, now_ms=now_ms or int(time.time() * 1000))


def iceberg_rows(path: Path) -> pa.Table:
    """By the newest metadata there is, without the catalog."""
    metadata = max((path / "metadata").glob("*.metadata.json"), key=lambda each: each.stat().st_mtime_ns)
    return StaticTable.from_metadata(str(metadata)).scan().to_arrow()


def offsets(kind: Kind, path: Path) -> list[int]:
    """As a reader sees them who knows the kind of table and nothing of us."""
    if kind == "delta":
        return sorted(DeltaTable(str(path)).to_pyarrow_table(columns=["offset"])["offset"].to_pylist())
    if kind == "iceberg":
        return sorted(iceberg_rows(path)["offset"].to_pylist())
    return sorted(
        ds.dataset(path, schema=raw_schema("date"), partitioning="hive")
        .to_table(columns=["offset"])["offset"]
        .to_pylist()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_offsets_become_visible_together(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "lake"
    table = open_table(kind, spec(path))
    assert table.next_offsets([ZERO, ONE]) == {}
    files = write(table, topic_rows(0, 5, step_ms=DAY_MS // 2), topic_rows(0, 3, partition=1))
    assert sorted((each.partition_values for each in files), key=str) == [
        {"date": f"1970-01-0{day}"} for day in (1, 2, 3)
    ]
    before = open_table(kind, spec(path))
    assert before.next_offsets([ZERO, ONE]) == {}
    table.commit(Commit(files, {ZERO: 5, ONE: 3}, {"batch": "0"}))
    after = open_table(kind, spec(path))
    assert after.next_offsets([ZERO, ONE, TopicPartition("other", 0)]) == {ZERO: 5, ONE: 3}
    assert offsets(kind, path) == [0, 0, 1, 1, 2, 2, 3, 4]
    after.commit(Commit(write(after, topic_rows(5, 2)), {ZERO: 7}))
    assert open_table(kind, spec(path)).next_offsets([ZERO, ONE]) == {ZERO: 7, ONE: 3}
    assert offsets(kind, path) == [0, 0, 1, 1, 2, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_on_one_state_the_second_is_refused(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "lake"
    first, second = open_table(kind, spec(path)), open_table(kind, spec(path))
    rows = topic_rows(0, 4)
    first.commit(Commit(write(first, rows), {ZERO: 4}))
    with pytest.raises(Overtaken, match="nothing of this batch was committed"):
        second.commit(Commit(write(second, rows), {ZERO: 4}))
    assert offsets(kind, path) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_are_added_hide_no_commit_of_another(kind: Kind, tmp_path: Path) -> None:
    open_table(kind, spec(tmp_path))
    first, second = open_table(kind, spec(tmp_path)), open_table(kind, spec(tmp_path))
    first.commit(Commit(write(first, topic_rows(0, 4)), {ZERO: 4}))
    with contextlib.suppress(Overtaken):
        second.widen(second.schema.append(pa.field("city", pa.string())))
    if second.next_offsets([ZERO]) != {ZERO: 4}:
        rows = topic_rows(0, 4).append_column("city", pa.nulls(4, pa.string()))
        with pytest.raises(Overtaken):
            second.commit(Commit(write(second, rows), {ZERO: 4}))
    assert offsets(kind, tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_another_job_is_refused(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "lake"
    open_table(kind, spec(path))
    with pytest.raises(
        NotOurs, match=r"belongs to the job 'nightly', and this is 'hourly'.*run it as 'nightly'"
    ):
        open_table(kind, spec(path, owner="hourly"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_the_way_is_not_touched(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(NotOurs, match=r"holds thesis.txt"):
        open_table(kind, spec(tmp_path))
    with pytest.raises(WrongUse, match="is no directory"):
        open_table(kind, spec(tmp_path / "thesis.txt"))
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_delta_table_that_somebody_else_made_is_refused(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "theirs"), pa.table({"offset": [1]}))
    with pytest.raises(NotOurs, match="was not made by Ropewalk"):
        open_table("delta", spec(tmp_path / "theirs"))


@pytest.mark.parametrize("kind", KINDS)
def test_layout_and_types_of_columns_stay_as_they_began(kind: Kind, tmp_path: Path) -> None:
    open_table(kind, spec(tmp_path))
    with pytest.raises(
        WrongUse, match="is partitioned by date, not by nothing; leave partition_by as it was"
    ):
        open_table(kind, spec(tmp_path, partition_columns=()))
    open_table(kind, spec(tmp_path, partition_columns=("topic", "date")))  # a topic more keeps the layout
    other = pa.schema([pa.field("offset", pa.string()), pa.field("date", pa.date32())])
    with pytest.raises(
        WrongUse, match=r"column 'offset' is int64, and string is to be written, in the table in"
    ):
        open_table(kind, spec(tmp_path, schema=other))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_added_and_are_empty_in_what_was_there(kind: Kind, tmp_path: Path) -> None:
    table = open_table(kind, spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 2)), {ZERO: 2}))
    table = open_table(kind, spec(tmp_path))
    wider = table.schema.append(pa.field("city", pa.string()))
    table.widen(wider)
    rows = topic_rows(2, 2)
    rows = rows.append_column("city", pa.array(["Berlin", None]))
    table.commit(Commit(write(table, rows), {ZERO: 4}))
    assert "city" in open_table(kind, spec(tmp_path)).schema.names
    with pytest.raises(WrongUse, match="column 'city'"):
        open_table(kind, spec(tmp_path)).widen(wider.set(len(wider) - 1, pa.field("city", pa.int64())))
    if kind == "delta":
        found = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("offset")
        assert found["city"].to_pylist() == [None, None, "Berlin", None]


@pytest.mark.parametrize("kind", KINDS)
def test_fields_inside_columns_are_added_too(kind: Kind, tmp_path: Path) -> None:
    def of(value: list[tuple[str, pa.DataType]]) -> pa.Schema:
        schema = raw_schema("date")
        return schema.set(schema.get_field_index("value"), pa.field("value", pa.struct(value)))

    def rows(first: int, value: dict[str, object]) -> pa.RecordBatch:
        raw = topic_rows(first, 1)
        return raw.set_column(raw.schema.get_field_index("value"), "value", pa.array([value]))

    first = [("a", pa.int64()), ("lines", pa.list_(pa.field("element", pa.struct([("sku", pa.string())]))))]
    table = open_table(kind, spec(tmp_path, schema=of(first)))
    table.commit(Commit(write(table, rows(0, {"a": 1, "lines": [{"sku": "x"}]})), {ZERO: 1}))
    line = pa.struct([("count", pa.int64()), ("sku", pa.string())])
    grown = [("b", pa.string()), ("lines", pa.list_(pa.field("element", line))), ("a", pa.int64())]
    table = open_table(kind, spec(tmp_path, schema=of(grown)))
    table.widen(of(grown))
    table.commit(
        Commit(write(table, rows(1, {"b": "y", "lines": [{"count": 2, "sku": "z"}], "a": 3})), {ZERO: 2})
    )
    table = open_table(kind, spec(tmp_path, schema=of(first)))
    match kind:
        case "delta":
            found = DeltaTable(str(tmp_path)).to_pyarrow_table()
        case "iceberg":
            found = iceberg_rows(tmp_path)
        case "parquet":
            found = ds.dataset(tmp_path, schema=table.schema, partitioning="hive").to_table()
    assert found.sort_by("offset")["value"].to_pylist() == [
        {"a": 1, "lines": [{"sku": "x", "count": None}], "b": None},
        {"a": 3, "lines": [{"sku": "z", "count": 2}], "b": "y"},
    ]
    with pytest.raises(WrongUse, match=r"column 'value' is struct.*, and binary is to be written"):
        open_table(kind, spec(tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_commits_note_is_found_again(kind: Kind, tmp_path: Path) -> None:
    table = open_table(kind, spec(tmp_path))
    assert table.last_note() == {}
    table.commit(Commit(write(table, topic_rows(0, 1)), {ZERO: 1}, {"batch": "0", "more": "x"}))
    table = open_table(kind, spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(1, 1)), {ZERO: 2}, {"batch": "1"}))
    if kind == "delta":  # what others commit is not ours
        DeltaTable(str(tmp_path)).optimize.compact()
        DeltaTable(str(tmp_path)).alter.set_table_description("seen")
    assert open_table(kind, spec(tmp_path)).last_note() == {"batch": "1"}


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_failed_attempts_are_never_seen_and_deleted_when_old(kind: Kind, tmp_path: Path) -> None:
    table = open_table(kind, spec(tmp_path))
    failed = write(table, topic_rows(0, 9))
    table.commit(Commit(write(table, topic_rows(0, 9)), {ZERO: 9}))
    assert offsets(kind, tmp_path) == list(range(9))
    left = Path(table.target.root) / failed[0].path
    kept_up(kind, spec(tmp_path), NEVER)
    assert left.exists()  # it may be of a batch that is about to be committed
    os.utime(left, (0, 0))
    kept_up(kind, spec(tmp_path), NEVER)
    assert not left.exists()
    assert offsets(kind, tmp_path) == list(range(9))


def test_compaction_keeps_rows_and_offsets(tmp_path: Path) -> None:
    for batch in range(10):
        table = open_table("delta", spec(tmp_path))
        table.commit(Commit(write(table, topic_rows(batch * 3, 3)), {ZERO: batch * 3 + 3}))
    before = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("offset")
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 10
    told = kept_up("delta", spec(tmp_path), Upkeep(8, 1 << 27, keep_hours=0))
    assert told.startswith("10 small files joined, 10 files that nobody needs deleted")
    after = DeltaTable(str(tmp_path))
    assert len(after.file_uris()) == 1
    assert after.to_pyarrow_table().sort_by("offset") == before
    assert open_table("delta", spec(tmp_path)).next_offsets([ZERO]) == {ZERO: 30}
    assert not [each for each in tmp_path.rglob("*.parquet") if "date=" in str(each)][1:]


def test_an_archiver_that_was_compacted_under_goes_on(tmp_path: Path) -> None:
    """Somebody compacts a table by hand while a batch is written: that moves no offset, so nothing is in the way."""
    for batch in range(3):
        table = open_table("delta", spec(tmp_path))
        table.commit(Commit(write(table, topic_rows(batch * 3, 3)), {ZERO: batch * 3 + 3}))
    table = open_table("delta", spec(tmp_path))
    DeltaTable(str(tmp_path)).optimize.compact()
    table.commit(Commit(write(table, topic_rows(9, 1)), {ZERO: 10}))
    assert offsets("delta", tmp_path) == list(range(10))


def test_a_commit_of_a_directory_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    table = open_table("parquet", spec(tmp_path))
    files = write(table, topic_rows(0, 4, step_ms=DAY_MS))
    table.commit(Commit(files, {ZERO: 4}))
    for file in files[1:]:  # as if the driver had died after the first
        (tmp_path / file.path).rename(Path(table.target.root) / file.path)
    assert offsets("parquet", tmp_path) == [0]
    open_table("parquet", spec(tmp_path))
    assert offsets("parquet", tmp_path) == [0, 1, 2, 3]


def test_commits_of_a_directory_are_forgotten_but_for_the_last(tmp_path: Path) -> None:
    for batch in range(3):
        table = open_table("parquet", spec(tmp_path))
        table.commit(Commit(write(table, topic_rows(batch, 1)), {ZERO: batch + 1}))
    log = tmp_path / "_ropewalk" / "log"
    for path in log.iterdir():
        os.utime(path, (0, 0))
    kept_up("parquet", spec(tmp_path), NEVER)
    assert [path.name for path in log.iterdir()] == [f"{3:020}.json"]
    assert open_table("parquet", spec(tmp_path)).next_offsets([ZERO]) == {ZERO: 3}


def test_who_was_overtaken_long_ago_is_refused_after_commits_are_forgotten(tmp_path: Path) -> None:
    open_table("parquet", spec(tmp_path))
    asleep = open_table("parquet", spec(tmp_path))
    for first in range(3):
        table = open_table("parquet", spec(tmp_path))
        table.commit(Commit(write(table, topic_rows(first, 1)), {ZERO: first + 1}))
    kept_up("parquet", spec(tmp_path), Upkeep(compact_at=0, file_bytes_target=1 << 27, keep_hours=0))
    with pytest.raises(Overtaken, match="another archiver"):
        asleep.commit(Commit(write(asleep, topic_rows(0, 3)), {ZERO: 3}))
    assert offsets("parquet", tmp_path) == [0, 1, 2]
    assert open_table("parquet", spec(tmp_path)).next_offsets([ZERO]) == {ZERO: 3}


def test_plain_directories_need_a_file_system_that_renames() -> None:
    with pytest.raises(WrongUse, match="use table=delta for object stores"):
        open_table("parquet", TableSpec(address="s3://bucket/x", owner="a", schema=raw_schema("date")))


def test_a_task_holds_no_more_than_its_share_of_memory_and_splits_large_files(tmp_path: Path) -> None:
    target = Target(str(tmp_path), ("date",), keeps_partition_columns=False)
    schema = raw_schema("date")
    writer = FileWriter(target, schema, file_bytes_target=4000, memory_bytes=20_000)
    for first in range(0, 4000, 100):
        writer.write(with_times(topic_rows(first, 100, step_ms=40_000), schema))
        assert writer._waiting_bytes <= 20_000
    files = writer.finish()
    assert len({each.path for each in files}) == len(files) > 4
    assert sum(each.row_count for each in files) == 4000
    found = ds.dataset(tmp_path, partitioning="hive").to_table().sort_by("offset")
    assert found["offset"].to_pylist() == list(range(4000))
    for file in files:
        rows = ds.dataset(tmp_path / file.path).to_table()
        assert (file.offset_min, file.offset_max) == (
            min(rows["offset"].to_pylist()),
            max(rows["offset"].to_pylist()),
        )
        assert file.size_bytes == (tmp_path / file.path).stat().st_size


def test_statistics_let_readers_pass_over_files(tmp_path: Path) -> None:
    table = open_table("delta", spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 6, step_ms=DAY_MS)), {ZERO: 6}))
    found = DeltaTable(str(tmp_path))
    assert len(found.file_uris()) == 6
    pruned = found.to_pyarrow_dataset().get_fragments(filter=ds.field("offset") > 4)
    assert len(list(pruned)) == 1
    actions = pa.table(found.get_add_actions(flatten=True))
    assert actions["max.timestamp"].to_pylist()[0] == datetime(
        1970, 1, int(actions["max.offset"][0].as_py()) + 1, tzinfo=UTC
    )


@pytest.mark.parametrize("far_ms", [0, 3_000_000_000_000_000], ids=["dated", "without a date"])
def test_statistics_hide_no_row(tmp_path: Path, far_ms: int) -> None:
    """Whichever column a reader chooses by."""
    table = open_table("delta", spec(tmp_path, partition_columns=()))
    table.commit(Commit(write(table, topic_rows(0, 3), topic_rows(3, 1, start_ms=far_ms)), {ZERO: 4}))
    rows = DeltaTable(str(tmp_path)).to_pyarrow_dataset()
    first = rows.head(1).to_pylist()[0]
    for name in ("topic", "partition", "offset", "timestamp", "timestampType", "date", "key", "value"):
        assert 0 in rows.to_table(filter=ds.field(name) == first[name])["offset"].to_pylist(), name


def test_upkeep_mends_statistics_of_tables_that_do_not_say_what_they_have(tmp_path: Path) -> None:
    table = open_table("delta", spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 3)), {ZERO: 3}))
    DeltaTable(str(tmp_path)).alter.set_table_properties({STATISTICS: ""}, raise_if_not_exists=False)
    kept_up("delta", spec(tmp_path), NEVER)
    rows = DeltaTable(str(tmp_path)).to_pyarrow_dataset()
    assert rows.to_table(filter=ds.field("partition") == 0).num_rows == 3


def test_dates_are_those_of_utc_and_nonsense_has_none() -> None:
    schema = raw_schema("hour")
    midnight = with_times(topic_rows(0, 2, start_ms=-1, step_ms=1), schema)
    assert midnight["date"].to_pylist() == [date(1969, 12, 31), date(1970, 1, 1)]
    assert midnight["hour"].to_pylist() == [23, 0]
    microseconds_by_mistake = with_times(topic_rows(0, 1, start_ms=1_700_000_000_000_000), schema)
    assert microseconds_by_mistake["date"].to_pylist() == [None]


def test_rows_without_a_date_are_archived_all_the_same(tmp_path: Path) -> None:
    table = open_table("delta", spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 2, start_ms=1_700_000_000_000_000)), {ZERO: 2}))
    assert offsets("delta", tmp_path) == [0, 1]


def test_the_history_that_is_kept_follows_the_setting(tmp_path: Path) -> None:
    kept_up("delta", spec(tmp_path, keep_hours=168), NEVER)
    kept = DeltaTable(str(tmp_path)).metadata().configuration
    assert (
        kept["delta.logRetentionDuration"] == kept["delta.deletedFileRetentionDuration"] == "interval 1 hours"
    )
    version = DeltaTable(str(tmp_path)).version()
    kept_up("delta", spec(tmp_path), NEVER)
    assert DeltaTable(str(tmp_path)).version() == version


attempts = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 8), st.sampled_from(["ends", "dies early", "dies late"])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(attempts)
def test_any_attempts_leave_each_record_once(
    tmp_path_factory: pytest.TempPathFactory, tried: list[tuple[int, int, str]]
) -> None:
    """Batches begin up to some records before what is stored, cover anything, and die before the commit or within it."""
    path = tmp_path_factory.mktemp("lake")
    stored = 0
    for back, count, fate in tried:
        table = open_table("parquet", spec(path))
        assert table.next_offsets([ZERO]) == ({ZERO: stored} if stored else {})
        start = max(0, stored - back)
        covered = Range(ZERO, start if stored else FROM_THE_START, start + count)
        advance = decide_advance(table.next_offsets([ZERO]), [covered])
        if not advance.next_offsets:
            continue
        (new,) = advance.ranges
        files = write(table, topic_rows(max(0, new.start), new.count, step_ms=DAY_MS // 3))
        if fate == "dies early":
            continue
        table.commit(Commit(files, advance.next_offsets))
        stored = start + count
        if fate == "dies late":
            left = Path(table.target.root) / files[-1].path
            (path / files[-1].path).rename(left)
    open_table("parquet", spec(path))
    assert offsets("parquet", path) == list(range(stored))


def test_files_in_places_that_only_fsspec_knows() -> None:
    fsspec = pytest.importorskip("fsspec")
    schema = raw_schema("date")
    writer = FileWriter(
        Target("memory://lake", ("date",), keeps_partition_columns=False), schema, file_bytes_target=1 << 20
    )
    (file,) = write_all(writer, [with_times(topic_rows(0, 7), schema)])
    with fsspec.filesystem("memory").open(f"/lake/{file.path}") as found:
        assert pq.read_table(found)["offset"].to_pylist() == list(range(7))
    assert file.size_bytes == fsspec.filesystem("memory").size(f"/lake/{file.path}")
    with pytest.raises(WrongUse, match="nothing here writes to gopher://"):
        FileWriter(
            Target("gopher://lake", (), keeps_partition_columns=False), schema, file_bytes_target=1 << 20
        )
