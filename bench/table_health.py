"""How tables of pipelines keep: a job makes a thousand batches, and what lies in its table is looked at on the way.

    bench/tables                                  # archive and transform into Delta and Iceberg, 1,000 batches each
    bench/tables archive-delta --batches 300      # one of them, and fewer

A batch is one record, since it is the number of commits and files that tables suffer from. The job is stopped for each look. At last 200 small
files are joined while a job goes on, and how late its batches begin is what is told. Needs Java and the extras `spark` and `iceberg`.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from bench.lake_remains import unnamed
from ropewalk import Admin, Producer
from ropewalk.base.ids import TopicPartition
from ropewalk.spark import archive, transform
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.table import Commit
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.pipeline import OffsetTable
from ropewalk.testing import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FILES_MAX: Final = 30
GROWTH_MAX: Final = 1.5
JOINED: Final = 200
INTERVAL_S: Final = 5
_LOOKS: Final = 5
_BATCHES_BESIDE: Final = 8
_METADATA: Final = {"delta": "_delta_log", "iceberg": "metadata"}


class Job(Struct, frozen=True):
    """A kind of pipeline into a kind of table."""

    kind: Literal["archive", "transform"]
    table: Literal["delta", "iceberg"]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.table}"

    def start(
        self, spark: "SparkSession", bootstrap: str, topic: str, directory: Path, **more: Any
    ) -> "StreamingQuery":
        given = {
            "bootstrap": bootstrap,
            "topics": topic,
            "name": self.name,
            "to": directory / self.name,
            "table": self.table,
            "source": {"maxOffsetsPerTrigger": 1},
            **more,
        }
        if self.kind == "archive":
            return archive(spark, **given)
        sql = f"SELECT cast(value AS string) AS value, offset, timestamp FROM `{topic}`"
        return transform(spark, sql=sql, **given)

    def offsets(self, directory: Path) -> OffsetTable:
        made = pipeline(self.kind)
        settings: dict[str, Any] = {"to": str(directory / self.name), "table": self.table}
        return made.tables(self.name, made.Settings(**settings))[0]


JOBS: Final = {
    each.name: each
    for each in (
        Job("archive", "delta"), Job("archive", "iceberg"), Job("transform", "delta"), Job("transform", "iceberg")
    )
}  # fmt: skip


class Health(Struct, frozen=True):
    """A table after so many batches."""

    batches: int
    files_in_a_directory: int
    """Of its newest state, where there are most."""
    metadata_bytes: int
    commit_s: float
    """To open it and commit nothing, in the middle of several times."""
    unnamed_files: int
    """That no state names which is kept."""


class Beside(Struct, frozen=True):
    """A job that went on while files were joined."""

    files_before: int
    files_after: int
    late_s: float
    """How late a batch began, at most."""


def grow(
    spark: "SparkSession", bootstrap: str, topic: str, job: Job, directory: Path, steps: Iterable[int]
) -> list[Health]:
    """One look after each of so many batches in all. The topic is made here."""
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    found, made = [], 0
    for step in steps:
        produce(bootstrap, topic, step - made)
        job.start(spark, bootstrap, topic, directory, once=True).awaitTermination()
        found.append(look(job, directory, TopicPartition(topic, 0), step))
        made = step
    return found


def look(job: Job, directory: Path, partition: TopicPartition, batches: int) -> Health:
    kept, path = job.offsets(directory), directory / job.name
    table = open_table(kept.kind, kept.spec)
    reached = table.next_offsets([partition])
    if reached != {partition: batches}:
        raise AssertionError(f"{job.name} has come to {reached}, not to {batches}")
    counts = Counter(each.values for each in table.files())
    metadata = sum(each.stat().st_size for each in (path / _METADATA[job.table]).iterdir())
    remains = unnamed(kept.kind, path)
    times = []
    for _ in range(_LOOKS):
        began = time.perf_counter()
        table = open_table(kept.kind, kept.spec)
        table.commit(Commit((), reached, table.last_note()))
        times.append(time.perf_counter() - began)
    return Health(batches, max(counts.values()), metadata, statistics.median(times), len(remains))


def join_beside(
    spark: "SparkSession", bootstrap: str, topic: str, job: Job, directory: Path, *, files: int, batches: int
) -> Beside:
    """Small files are left as they are for a while, and then joined while batches come."""
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    produce(bootstrap, topic, files)
    job.start(spark, bootstrap, topic, directory, once=True, upkeep_batches=0).awaitTermination()
    before = _file_count(job, directory)
    query = job.start(spark, bootstrap, topic, directory, interval=f"{INTERVAL_S} seconds")
    began: dict[int, float] = {}
    while len(began) < batches:
        produce(bootstrap, topic, 1)
        query.awaitTermination(INTERVAL_S)
        began |= {each["batchId"]: _instant(each["timestamp"]) for each in query.recentProgress}
    query.stop()
    return Beside(before, _file_count(job, directory), late_s(began))


def late_s(began: dict[int, float]) -> float:
    """At most, by when batches began: one is due an interval after the one before it, or later if there was nothing to do."""
    starts = [began[number] for number in sorted(began)]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    return max((gap - INTERVAL_S for gap in gaps), default=0.0)


def produce(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b'{"number": %d}' % number)


def missed(found: Sequence[Health]) -> list[str]:
    """What does not hold, of tables that were looked at after 100, 300 and 1,000 batches, or after the like of it."""
    first, middle, last = found
    said = [
        f"{each.files_in_a_directory} files in a directory after {each.batches} batches, {FILES_MAX} allowed"
        for each in found
        if each.files_in_a_directory > FILES_MAX
    ]
    said += [
        f"{each.unnamed_files} files that nothing names after {each.batches} batches"
        for each in found
        if each.unnamed_files
    ]
    if last.metadata_bytes > GROWTH_MAX * middle.metadata_bytes:
        said.append(f"metadata have grown {last.metadata_bytes / middle.metadata_bytes:.2f} times")
    if last.commit_s > GROWTH_MAX * first.commit_s:
        said.append(f"open and commit take {last.commit_s / first.commit_s:.2f} times as long")
    return said


def _file_count(job: Job, directory: Path) -> int:
    kept = job.offsets(directory)
    return len(open_table(kept.kind, kept.spec).files())


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _session() -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/tables", description="How tables of pipelines keep.")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"{', '.join(JOBS)}; all if none is given")
    parser.add_argument(
        "--batches", type=int, default=1_000, help="the looks are after 10, 30 and 100 %% of them"
    )
    parser.add_argument("--files", type=int, default=JOINED, help="that are joined beside a job; 0 for none")
    arguments = parser.parse_args()
    if unknown := set(arguments.jobs) - set(JOBS):
        parser.error(f"no job {', '.join(sorted(unknown))}; there are {', '.join(JOBS)}")
    steps = [arguments.batches // 10, arguments.batches * 3 // 10, arguments.batches]
    is_good = True
    with Cluster() as cluster, tempfile.TemporaryDirectory(prefix="bench-tables-") as scratch:
        spark = _session()
        for name in arguments.jobs or JOBS:
            job = JOBS[name]
            found = grow(spark, cluster.bootstrap, f"{name}-grown", job, Path(scratch, "grown"), steps)
            for each in found:
                print(
                    f"{name}: {each.batches} batches: {each.files_in_a_directory} files in a directory,"
                    f" {each.metadata_bytes:,} bytes of metadata, open and commit {each.commit_s * 1000:.0f} ms,"
                    f" {each.unnamed_files} files that nothing names",
                    flush=True,
                )
            complaints = missed(found)
            if arguments.files:
                beside = join_beside(
                    spark, cluster.bootstrap, f"{name}-joined", job, Path(scratch, "joined"),
                    files=arguments.files, batches=_BATCHES_BESIDE,
                )  # fmt: skip
                print(
                    f"{name}: {beside.files_before} files became {beside.files_after} while batches came every"
                    f" {INTERVAL_S} s; none began later than {beside.late_s:.1f} s",
                    flush=True,
                )
                if beside.late_s > INTERVAL_S:
                    complaints.append(f"a batch began {beside.late_s:.1f} s late")
                if beside.files_after > FILES_MAX:
                    complaints.append(f"{beside.files_after} files are left")
            for complaint in complaints:
                print(f"  {complaint}", flush=True)
            is_good &= not complaints
        spark.stop()
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
