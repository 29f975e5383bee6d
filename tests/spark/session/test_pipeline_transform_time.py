"""A transform after 400 days of the broker's clock, in which everything that was read is removed: it goes on, whether it ran all the time or rested."""

import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from msgspec import structs
from pyspark.sql import SparkSession

from ropewalk import Producer
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Table, define
from ropewalk.spark.pipelines.running import Report, Watching, carry_out
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.pipelines.sink_names import sink_name
from ropewalk.spark.pipelines.status import State
from ropewalk.spark.pipelines.transform import Transform
from ropewalk.testing import Cluster
from tests.spark.conftest import Node
from tests.spark.session.test_pipeline_transform_identity import Copy

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

LOOKING_OFTEN = {"log.retention.check.interval.ms": 20, "offsets.retention.check.interval.ms": 20}
DAYS = 400
WEEK_MS = "604800000"


class Passing:
    """A node whose time passes, and a topic of it whose records stay for a week."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.node = cluster, Node(cluster.bootstrap)
        self._days = 0
        self._written = 0

    def write(self, topic: str, count: int) -> None:
        """Numbered from where the last ended, and dated by the broker's clock."""
        at = int((datetime.now().astimezone() + timedelta(days=self._days)).timestamp() * 1000)
        with Producer(self.cluster.bootstrap) as producer:
            for _ in range(count):
                producer.send(topic, b"v%d" % self._written, timestamp_ms=at)
                self._written += 1

    def pass_days(self, topic: str, *, resting: bool) -> None:
        """So many that nothing of the topic is left."""
        self.cluster.advance(days=DAYS)
        self._days += DAYS
        while self.cluster.records(topic):
            pass  # they are removed at the node's next look
        if resting:
            self.cluster.restart()


@pytest.fixture
def passing() -> Iterator[Passing]:
    with Cluster(settings=LOOKING_OFTEN) as cluster:
        yield Passing(cluster)


@pytest.mark.parametrize(("to", "is_lost"), [("topic", True), ("table", False)])
def test_it_goes_on(spark: SparkSession, passing: Passing, to: str, is_lost: bool, tmp_path: Path) -> None:
    job = Copy(spark, passing.node, tmp_path, to, retention_ms=WEEK_MS)
    query = Transform.start(structs.replace(job.copying(), once=False)).query
    try:
        passing.write(job.orders, 20)
        query.processAllAvailable()
        passing.pass_days(job.orders, resting=False)
        passing.write(job.orders, 5)
        query.processAllAvailable()
        assert job.numbers() == list(range(25)), "it ran all the time"
    finally:
        query.stop()
    passing.pass_days(job.orders, resting=True)
    passing.write(job.orders, 5)
    if is_lost:
        job.lose_the_checkpoint()
    job.copy()
    assert job.numbers() == list(range(30)), "it rested"


def test_two_jobs_that_nobody_named_go_on_in_their_own_state_directories(
    spark: SparkSession, passing: Passing, tmp_path: Path
) -> None:
    """Both read one topic and write to one topic, so each record is there once from each."""
    passing.node.create("orders", 1, retention_ms=WEEK_MS)
    passing.node.create("copies", 1)

    def run(machine: str) -> None:
        state = str(tmp_path / machine)
        given = Table(
            kind="transform",
            topics=["orders"],
            checkpoint=f"{state}/progress",
            settings={"sql": "SELECT value FROM orders", "to_topic": "copies", "tasks": 1},
            once=True,
        )
        job = define(
            "transform",
            {},
            given,
            settings_of=lambda kind: pipeline(kind).Settings,
            bootstrap=passing.node.bootstrap,
            state=state,
        )
        Path(state).mkdir(exist_ok=True)
        sink = sink_name(state, job.name, is_named=job.is_named)
        report = Report(job, Watching(state_directory=state), None)
        with Showing(job.name, io.StringIO()) as showing:
            assert carry_out(job, pipeline(job.kind), spark, report, showing, sink) is State.ENDED

    for end in (8, 16):
        passing.write("orders", 8)
        for machine in ("one", "other"):
            run(machine)
        copies = sorted(int((each.value() or b"")[1:]) for each in passing.node.read("copies", 1))
        assert copies == sorted(2 * list(range(end)))
        passing.pass_days("orders", resting=True)
