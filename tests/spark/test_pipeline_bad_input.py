"""What kinds of pipelines cannot be told: one sentence each, before anything is read or made."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("fastavro")

from ropewalk.spark.options import parse_source
from ropewalk.spark.pipelines.archive import Archive
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Table, define
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.pipelines.transform_settings import TransformSettings
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.avro_schema import parse_schema
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.testing import Cluster
from tests.spark.stand_in import StandIn

SQL = ("--sql", "SELECT value FROM t")
OF_TABLES = [
    (("--keep-snapshots-hours", "99999999999999999999"), "keep_snapshots_hours is 99999999999999999999, must be at most 876000"),
    (("--keep-snapshots-hours", "-1"), "keep_snapshots_hours is -1, must be at least 0"),
    (("--keep-rows-days", "99999999999999999"), "must be at most 365000"),
    (("--keep-snapshots", "9"), "keep_snapshots is 9, must be at least 10"),
    (("--keep-snapshots", "many"), "keep_snapshots is 'many', must be a whole number"),
    (("--upkeep-batches", "1.5"), "upkeep_batches is '1.5', must be a whole number"),
    (("--prefix=maybe",), "prefix is 'maybe', must be true or false"),
    (("--dead-letters", "./lake/"), "dead_letters is './lake/', which is the table itself; name another"),
    (("--catalog", "type=sql"), "a catalog has no use for table delta; say table=iceberg, or leave it out"),
]  # fmt: skip


def tell(kind: str, *words: str) -> None:
    """As a run does before it asks anybody anything."""
    job = define(kind, {}, Table(topics=["t"]), list(words), settings_of=lambda name: pipeline(name).Settings)
    if isinstance(job.settings, TransformSettings):
        job.settings.check(parse_source({"bootstrap": "b:1", **job.source}, streaming=True).subscription)


@pytest.mark.parametrize(("words", "said"), OF_TABLES, ids=lambda value: str(value[0])[2:40])
@pytest.mark.parametrize("kind", ["archive", "transform"])
def test_a_setting_of_tables_is_refused_in_one_sentence(
    kind: str, words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongUse) as caught:
        tell(kind, "--to", "lake", *(SQL if kind == "transform" else ()), *words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_into_nothing_is_refused() -> None:
    with pytest.raises(WrongUse, match="to is empty; name a directory"):
        define(
            "archive",
            {},
            Table(topics=["t"], checkpoint="/p"),
            ["--to", " "],
            settings_of=lambda name: pipeline(name).Settings,
        )


def test_as_many_tasks_as_nobody_has_are_refused() -> None:
    settings = TransformSettings(sql=SQL[1], to_topic="copies", tasks=10**9)
    with pytest.raises(WrongUse, match="tasks is 1000000000, must be at most 10000"):
        settings.check(parse_source({"bootstrap": "b:1", "subscribe": "t"}, streaming=True).subscription)


@pytest.mark.compat
@pytest.mark.timeout(60)
def test_the_longest_times_that_can_be_said_are_kept(tmp_path: Path) -> None:
    """No calendar ends before them."""
    with Cluster() as cluster:
        cluster.create_topic("t")
        for kind in ("delta", "iceberg"):
            job = define(
                "archive",
                {},
                Table(topics=["t"], once=True),
                [
                    *("--to", str(tmp_path / kind), "--table", kind, "--keep-snapshots-hours", "876000"),
                    *("--keep-rows-days", "365000", "--keep-snapshots", "1000000"),
                ],
                settings_of=lambda name: pipeline(name).Settings,
                bootstrap=cluster.bootstrap,
            )
            work = Work(
                spark=StandIn(),  # type: ignore[arg-type]  # as much of it as is used
                name=job.name,
                bootstrap=job.bootstrap,
                source=job.source,
                checkpoint=job.checkpoint,
                once=True,
                interval="1 second",
                settings=job.settings,
            )
            Archive.start(work).query.awaitTermination()
            Archive.finish(work)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "it is not JSON: Expecting property name"),
        ("7", "put together in another way"),
        ("{}", "a type of it lacks 'type'"),
        ('{"type":"object"}', "there is no type"),
        ('{"type":"record","name":"A","fields":[{"name":"a","type":"nope"}]}', "there is no type 'nope'"),
        ('{"type":"record"}', '"name" is a required field missing'),
    ],
)
def test_what_is_no_schema_of_avro_is_said_without_names_of_exceptions(schema: str, said: str) -> None:
    with pytest.raises(WrongUse, match=f"^not a schema of Avro: .*{said}") as caught:
        parse_schema(SchemaText("avro", schema))
    assert "Error(" not in str(caught.value)
    assert "UnknownType" not in str(caught.value)
