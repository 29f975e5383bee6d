"""What is Iceberg's own about its tables: the catalog, conflicts with those who tidy up, wider columns, snapshots that expire."""

import tomllib
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

import pyarrow as pa
from packaging.requirements import Requirement
from packaging.version import Version
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from bench.lake_remains import unnamed
from ropewalk.spark.figures import Figures
from ropewalk.spark.lake import iceberg
from ropewalk.spark.lake.iceberg import OFFSETS, OWN_TABLE, RETRIES
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.own_catalog import OwnCatalog
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Commit, Upkeep
from ropewalk.spark.refusals import NotOurs, Overtaken, WrongUse
from tests.spark.test_spark_lake_tables import ONE, ZERO, kept_up, offsets, spec, topic_rows, write


def own_catalog(path: Path) -> Catalog:
    return load_catalog("ropewalk", type="sql", uri=f"sqlite:///{path}/_ropewalk/catalog.db")


def test_who_tidies_up_is_no_rival(tmp_path: Path) -> None:
    """pyiceberg would make an overtaken commit again by itself, and not look at offsets."""
    table = open_table("iceberg", spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 2)), {ZERO: 2}))
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    with theirs.transaction() as change, change.update_snapshot().fast_append():
        pass
    table.commit(Commit(write(table, topic_rows(2, 2)), {ZERO: 4}))
    assert offsets("iceberg", tmp_path) == [0, 1, 2, 3]
    assert open_table("iceberg", spec(tmp_path)).next_offsets([ZERO]) == {ZERO: 4}


def test_what_a_batch_came_to_is_in_its_snapshot(tmp_path: Path) -> None:
    table = open_table("iceberg", spec(tmp_path))
    figures = Figures(read_rows=3, written_rows=2, dead_letters=1)
    table.commit(Commit(write(table, topic_rows(0, 2)), {ZERO: 3}, figures=figures.noted()))
    snapshot = own_catalog(tmp_path).load_table(OWN_TABLE).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    told = {
        name: snapshot.summary[f"ropewalk.{name}"] for name in ("read-rows", "written-rows", "dead-letters")
    }
    assert told == {"read-rows": "3", "written-rows": "2", "dead-letters": "1"}


def test_a_rival_is_refused_even_if_nothing_is_added(tmp_path: Path) -> None:
    open_table("iceberg", spec(tmp_path))
    theirs = own_catalog(tmp_path).load_table(OWN_TABLE)
    with theirs.transaction() as change:
        change.set_properties({RETRIES: "4"})
    first, second = open_table("iceberg", spec(tmp_path)), open_table("iceberg", spec(tmp_path))
    first.commit(Commit((), {ZERO: 4}))
    for partition in (ZERO, ONE):
        with pytest.raises(Overtaken, match="nothing of this batch was committed"):
            second.commit(Commit((), {partition: 4}))
    assert open_table("iceberg", spec(tmp_path)).next_offsets([ZERO, ONE]) == {ZERO: 4}


def test_a_table_that_nothing_was_ever_added_to_can_be_kept_up(tmp_path: Path) -> None:
    """What an archive of an empty topic leaves: snapshots without a manifest, which pyiceberg's own list of files cannot take."""
    table = open_table("iceberg", spec(tmp_path))
    table.commit(Commit((), {ZERO: 0}))
    assert kept_up(
        "iceberg", spec(tmp_path), Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=0)
    ).endswith("0 files that nobody needs deleted")
    table = open_table("iceberg", spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 2)), {ZERO: 2}))
    kept_up("iceberg", spec(tmp_path), Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=0))
    assert offsets("iceberg", tmp_path) == [0, 1]


def test_a_column_becomes_wider(tmp_path: Path) -> None:
    def of(type_: pa.DataType) -> pa.Schema:
        schema = raw_schema("date")
        return schema.set(schema.get_field_index("value"), pa.field("value", pa.struct([("n", type_)])))

    def rows(first: int, number: int) -> pa.RecordBatch:
        raw = topic_rows(first, 1)
        return raw.set_column(raw.schema.get_field_index("value"), "value", pa.array([{"n": number}]))

    table = open_table("iceberg", spec(tmp_path, schema=of(pa.int32())))
    table.commit(Commit(write(table, rows(0, 1)), {ZERO: 1}))
    table = open_table("iceberg", spec(tmp_path, schema=of(pa.int64())))
    table.widen(of(pa.int64()))
    table.commit(Commit(write(table, rows(1, 2**40)), {ZERO: 2}))
    scan = own_catalog(tmp_path).load_table(OWN_TABLE).scan().to_arrow().sort_by("offset")
    assert scan["value"].to_pylist() == [{"n": 1}, {"n": 2**40}]
    with pytest.raises(WrongUse, match="column 'value' is struct"):
        open_table("iceberg", spec(tmp_path))


def test_offsets_outlive_snapshots(tmp_path: Path) -> None:
    for batch in range(3):
        table = open_table("iceberg", spec(tmp_path))
        table.commit(Commit(write(table, topic_rows(batch, 1)), {ZERO: batch + 1}, {"batch": str(batch)}))
    table = open_table("iceberg", spec(tmp_path))
    said = kept_up("iceberg", spec(tmp_path), Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=0))
    assert said == "0 small files joined, 2 snapshots expired, 2 files that nobody needs deleted"
    again = open_table("iceberg", spec(tmp_path))
    assert again.next_offsets([ZERO]) == {ZERO: 3}
    assert again.last_note() == {"batch": "2"}
    assert offsets("iceberg", tmp_path) == [0, 1, 2]
    (snapshot,) = own_catalog(tmp_path).load_table(OWN_TABLE).snapshots()
    assert snapshot.summary is not None
    assert snapshot.summary[OFFSETS] == '{"orders":{"0":3}}'


def test_upkeep_deletes_nothing_that_is_named_wherever_the_table_is(tmp_path: Path) -> None:
    path = tmp_path / "data" / "lake"
    table = open_table("iceberg", spec(path))
    table.commit(Commit(write(table, topic_rows(0, 3)), {ZERO: 3}))
    said = kept_up("iceberg", spec(path), Upkeep(compact_at=0, file_bytes_target=1 << 20, keep_hours=0))
    assert said == "0 small files joined, 0 snapshots expired, 0 files that nobody needs deleted"
    assert offsets("iceberg", path) == [0, 1, 2]


def test_a_table_whose_catalog_is_gone_is_not_written_to(tmp_path: Path) -> None:
    table = open_table("iceberg", spec(tmp_path))
    table.commit(Commit(write(table, topic_rows(0, 1)), {ZERO: 1}))
    (tmp_path / "_ropewalk" / "catalog.db").unlink()
    with pytest.raises(NotOurs, match="holds data"):
        open_table("iceberg", spec(tmp_path))


def test_timestamps_that_no_calendar_has_stop_nothing(tmp_path: Path) -> None:
    wanted = spec(tmp_path, partition_columns=("topic", "date"))
    table = open_table("iceberg", wanted)
    far = topic_rows(3, 1, start_ms=3_000_000_000_000_000)
    rows = [topic_rows(0, 3), far, topic_rows(0, 1, topic="other.x")]
    table.commit(Commit(write(table, *rows), {ZERO: 4}))
    found = (
        own_catalog(tmp_path)
        .load_table(OWN_TABLE)
        .scan(selected_fields=("topic", "offset", "date"))
        .to_arrow()
    )
    day = date(1970, 1, 1)
    assert sorted(map(tuple, (row.values() for row in found.to_pylist())), key=str) == [
        ("orders", 0, day),
        ("orders", 1, day),
        ("orders", 2, day),
        ("orders", 3, None),
        ("other.x", 0, day),
    ]


def test_a_catalog_of_the_users(tmp_path: Path) -> None:
    catalog = {
        "name": "lake",
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/mine.db",
        "warehouse": (tmp_path / "house").as_uri(),
    }

    def of(name: str, **more: Any) -> Any:
        return spec(tmp_path / name, catalog={**catalog, "table": f"sales.{name}"}, **more)

    for name in ("one", "two"):
        table = open_table("iceberg", of(name))
        table.commit(Commit(write(table, topic_rows(0, 2)), {ZERO: 2}))
    ours = load_catalog(**catalog)
    assert sorted(ours.list_tables("sales")) == [("sales", "one"), ("sales", "two")]
    assert ours.load_table("sales.one").scan().to_arrow().num_rows == 2
    assert not (tmp_path / "one" / "_ropewalk").exists()
    with pytest.raises(WrongUse, match=r"table=NAMESPACE\.NAME"):
        open_table("iceberg", spec(tmp_path / "three", catalog=catalog))
    with pytest.raises(WrongUse, match="cannot be used"):
        open_table("iceberg", spec(tmp_path / "three", catalog={"type": "nothing", "table": "a.b"}))
    with pytest.raises(WrongUse, match="where no catalog can be kept"):
        open_table("iceberg", spec(tmp_path, address="gs://bucket/lake"))


def test_files_of_anothers_attempt_may_vanish_while_a_commit_is_made_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep beside a batch deletes what it wrote for a commit that lost."""
    table = open_table("iceberg", spec(tmp_path))
    seen: Iterator[set[str]] = iter([set(), {"of-another-m0.avro"}])
    monkeypatch.setattr(iceberg, "_entries", lambda _: next(seen))
    table.commit(Commit(write(table, topic_rows(0, 2)), {ZERO: 2}))
    assert offsets("iceberg", tmp_path) == [0, 1]


def test_the_extra_takes_no_pyiceberg_that_was_not_tested() -> None:
    """Upkeep extends a class of it that is not public, which may be another in any release."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (said,) = (Requirement(each) for each in project["optional-dependencies"]["iceberg"])
    tested = Version(version("pyiceberg"))
    assert tested in said.specifier
    assert Version(f"{tested.major}.{tested.minor + 1}") not in said.specifier
    assert Version(f"{tested.major}.{tested.minor - 1}.9") not in said.specifier


def test_a_commit_that_is_overtaken_leaves_no_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version holds every state of the table, and upkeep and batches overtake each other often where batches are fast."""
    table = open_table("iceberg", spec(tmp_path))
    overtaken: list[str] = []
    write_metadata = OwnCatalog._write_metadata

    def be_slow(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        write_metadata(metadata, io, metadata_path)
        if not overtaken:
            overtaken.append(metadata_path)
            with own_catalog(tmp_path).load_table(OWN_TABLE).transaction() as change:
                change.set_properties({"by": "another"})

    monkeypatch.setattr(OwnCatalog, "_write_metadata", staticmethod(be_slow))
    table.commit(Commit(write(table, topic_rows(0, 3)), {ZERO: 3}))
    assert len(overtaken) == 1
    assert not Path(overtaken[0].removeprefix("file://")).exists()
    assert [each for each in unnamed("iceberg", tmp_path) if each.endswith(".json")] == []
    assert offsets("iceberg", tmp_path) == [0, 1, 2]
