"""Pipelines whose target is in an object store, told nothing but its address: where it is and the keys are in the environment."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Job, Table, define
from ropewalk.spark.pipelines.running import Report, Watching, carry_out, check_storage
from ropewalk.spark.pipelines.session import hand_storage
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.refusals import PipelineFailed, WrongUse
from tests.spark.conftest import Node
from tests.spark.s3_server import BUCKET, S3, SLOW_DOWN, Fault, bad_days

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

Run = Callable[..., Job]
COPY = "SELECT partition, offset, value FROM {}"


@pytest.fixture
def run(spark: "SparkSession", node: Node, s3: S3, tmp_path: Path) -> Run:
    """As the command does, in a session that is there."""

    def run_(kind: str, topic: str, to: str, store: S3 = s3, **settings: Any) -> Job:
        given = Table(
            topics=[topic],
            settings={"to": to if "://" in to else f"s3://{BUCKET}/{to}", **settings},
            once=True,
        )
        job = define(
            kind,
            {},
            given,
            settings_of=lambda name: pipeline(name).Settings,
            bootstrap=node.bootstrap,
            state=str(tmp_path / "state"),
            environment=store.environment,
        )
        check_storage(job)
        with Showing(job.name, io.StringIO()) as showing:
            report = Report(job, Watching(state_directory=str(tmp_path)), None)
            carry_out(job, pipeline(job.kind), spark, report, showing)
        return job

    return run_


def rows(kind: str, to: str, s3: S3) -> "pa.Table":
    address = f"s3://{BUCKET}/{to}"
    if kind == "delta":
        return DeltaTable(address, storage_options=s3.storage.for_delta()).to_pyarrow_table()
    return StaticTable.from_metadata(address, s3.storage.for_iceberg()).scan().to_arrow()


def places(table: "pa.Table") -> list[tuple[int, int]]:
    return sorted(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def expected(count: int) -> list[tuple[int, int]]:
    return sorted((number % 2, number // 2) for number in range(count))


@pytest.mark.parametrize(
    ("kind", "table"), [("archive", "delta"), ("archive", "iceberg"), ("transform", "delta")]
)
def test_each_record_is_there_once_with_its_checkpoint_and_without(
    kind: str, table: str, node: Node, s3: S3, run: Run, tmp_path: Path
) -> None:
    topic, to = node.create(f"far-{kind}-{table}"), f"{kind}-{table}"
    settings = {"table": table} | ({"sql": COPY.format(f"`{topic}`")} if kind == "transform" else {})
    node.write(topic, 20)
    job = run(kind, topic, to, **settings)
    assert places(rows(table, to, s3)) == expected(20)
    assert job.checkpoint == str(tmp_path / "state" / "checkpoints" / kind)
    node.write(topic, 6, first=20)
    run(kind, topic, to, **settings)
    shutil.rmtree(job.checkpoint)
    node.write(topic, 6, first=26)
    run(kind, topic, to, **settings)
    assert places(rows(table, to, s3)) == expected(32)


def test_a_checkpoint_where_this_spark_cannot_write_is_refused(
    spark: "SparkSession", node: Node, s3: S3
) -> None:
    given = Table(topics=["t"], settings={"to": "s3://lake/t"}, checkpoint=f"s3a://{BUCKET}/progress")
    job = define(
        "archive", {}, given, settings_of=lambda name: pipeline(name).Settings, environment=s3.environment
    )
    with pytest.raises(WrongUse, match="this Spark has no file system for it"):
        hand_storage(job, spark)


def test_what_a_store_says_is_told_and_the_table_stays(node: Node, s3: S3, run: Run, tmp_path: Path) -> None:
    topic = node.create("refused-far")
    node.write(topic, 4)
    run("archive", topic, "refused")
    node.write(topic, 4, first=4)
    with bad_days(tmp_path / "bad", s3) as bad:
        bad.say(
            Fault(
                r"^(PUT|POST) \S+\.parquet",
                status=403,
                body="<Error><Code>AccessDenied</Code><Message>No.</Message></Error>",
            )
        )
        with pytest.raises(PipelineFailed, match=r"^the object store refuses the keys") as caught:
            run("archive", topic, "refused", store=bad.store)
        assert bad.hits
        assert "\n" not in str(caught.value)
        bad.say(Fault("^PUT .*created-once", status=503, body=SLOW_DOWN))
        with pytest.raises(PipelineFailed, match="asks to slow down"):
            run("archive", topic, "refused", store=bad.store)
    with pytest.raises(WrongUse, match="there is no bucket"):
        run("archive", topic, "s3://none/refused")
    assert places(rows("delta", "refused", s3)) == expected(4)
    run("archive", topic, "refused")
    assert places(rows("delta", "refused", s3)) == expected(8)
