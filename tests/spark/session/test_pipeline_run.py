"""A small pipeline carried out by Spark, in the session that all tests here share."""

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from msgspec import Struct

from ropewalk.spark.pipelines.definition import Job
from ropewalk.spark.pipelines.hosts import check_hosts
from ropewalk.spark.pipelines.pipeline import OffsetTable, Pipeline, Started, Work
from ropewalk.spark.pipelines.running import Report, Watching, carry_out
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.pipelines.status import State, held, read_statuses
from ropewalk.spark.refusals import PipelineFailed, WrongUse
from tests.spark.conftest import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)

NAME = "counting"


class Settings(Struct, frozen=True):
    take: Callable[[list[int]], None]


class Collect:
    """Hands the offsets of each batch to the test."""

    summary: ClassVar[str] = "Collects."
    Settings: ClassVar[type[Struct]] = Settings
    finished = 0

    @staticmethod
    def start(work: Work) -> Started:
        def take(batch: "DataFrame", _number: int) -> None:
            work.settings.take(sorted(row.offset for row in batch.select("offset").collect()))

        return Started(work.writing(work.stream()).foreachBatch(take).start())

    @staticmethod
    def tables(name: str, settings: object) -> tuple[OffsetTable, ...]:
        return ()

    @staticmethod
    def finish(work: Work) -> None:
        Collect.finished += 1


class Carrying:
    def __init__(self, spark: "SparkSession", node: Node, topic: str, directory: Path) -> None:
        self._spark, self._node, self._topic, self._directory = spark, node, topic, directory
        self.shown = io.StringIO()

    def out(self, take: Callable[[list[int]], None], *, once: bool = True) -> State:
        job = Job(
            name=NAME,
            kind="collect",
            bootstrap=self._node.bootstrap,
            source={"subscribe": self._topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "20"},
            checkpoint=str(self._directory / "checkpoint"),
            once=once,
            interval="1 second",
            master="local[2]",
            remote=None,
            conf={},
            settings=Settings(take),
        )
        watching = Watching(
            state_directory=str(self._directory), metrics_file=str(self._directory / "job.prom")
        )
        kind: type[Pipeline] = Collect
        with held(watching.state_directory, NAME), Showing(NAME, self.shown) as showing:
            return carry_out(job, kind, self._spark, Report(job, watching, None), showing)

    def metric(self, name: str) -> str:
        (line,) = [
            line
            for line in (self._directory / "job.prom").read_text().splitlines()
            if line.startswith(f"ropewalk_pipeline_{name}{{")
        ]
        return line.split()[-1]


def test_a_job_reads_what_is_there_goes_on_where_it_was_and_stops_when_asked(
    spark: "SparkSession", node: Node, tmp_path: Path
) -> None:
    topic = node.create("carried", partitions=1)
    node.write(topic, 30, partitions=1)
    carrying = Carrying(spark, node, topic, tmp_path)
    batches: list[list[int]] = []
    finished = Collect.finished
    assert carrying.out(batches.append) is State.ENDED
    assert batches == [list(range(20)), list(range(20, 30))]
    assert Collect.finished == finished + 1
    assert "counting: batch 1: 10 rows in" in carrying.shown.getvalue()
    assert (carrying.metric("rows_total"), carrying.metric("lag"), carrying.metric("up")) == ("30", "0", "0")
    (status,) = read_statuses(str(tmp_path))
    assert (status.state, status.progress.rows, status.progress.batch) == (State.ENDED, 30, 1)

    # Asked to stop in the middle of a batch, it ends the batch and stops before the topic is read to its end.
    node.write(topic, 100, first=30, partitions=1)

    def stop_and_go_on(offsets: list[int]) -> None:
        batches.append(offsets)
        if len(batches) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    assert carrying.out(stop_and_go_on, once=False) is State.STOPPED
    assert batches[2] == list(range(30, 50))
    assert batches[-1][-1] < 129
    assert read_statuses(str(tmp_path))[0].state is State.STOPPED

    # What a batch says of its failure is what the job fails with; the batch is not lost.
    seen: list[list[int]] = []

    def refuse(offsets: list[int]) -> None:
        seen.append(offsets)
        raise WrongUse("the table says no: do this")

    with pytest.raises(PipelineFailed, match=r"^the table says no: do this$"):
        carrying.out(refuse)
    assert carrying.out(batches.append) is State.ENDED
    assert seen[0] in batches
    # Nothing is left out. The batch that began just when the query was stopped may come again, whole: an output knows it.
    once = list(dict.fromkeys(map(tuple, batches)))
    assert [offset for batch in once for offset in batch] == list(range(130))
    assert len(batches) - len(once) <= 1


def test_the_hosts_of_a_session_are_asked(spark: "SparkSession") -> None:
    (host,) = check_hosts(spark)
    assert host.version is not None
    assert host.missing == ()
