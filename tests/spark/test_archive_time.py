"""An archive after 400 days of the broker's clock, in which everything that was read is removed: it goes on, whether it ran all the time or rested."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from ropewalk import Producer
from ropewalk.spark.lake.kinds import Kind
from ropewalk.testing import Cluster
from tests.spark.conftest import Node
from tests.spark.test_archive_identity import Job
from tests.spark.test_spark_lake_tables import KINDS

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

LOOKING_OFTEN = {"log.retention.check.interval.ms": 20, "offsets.retention.check.interval.ms": 20}
DAYS = 400
WEEK_MS = "604800000"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(settings=LOOKING_OFTEN) as cluster:
        yield cluster


def write(cluster: Cluster, first: int, count: int, *, days: int = 0) -> None:
    """Dated by the broker's clock."""
    at = datetime.now().astimezone() + timedelta(days=days)
    with Producer(cluster.bootstrap) as producer:
        for number in range(first, first + count):
            producer.send("orders", b"v%d" % number, timestamp_ms=int(at.timestamp() * 1000))


@pytest.mark.parametrize("how", ["runs", "rests", "rests, and its checkpoint is lost"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on(cluster: Cluster, kind: Kind, how: str, tmp_path: Path) -> None:
    node = Node(cluster.bootstrap)
    node.create("orders", retention_ms=WEEK_MS)
    job = Job(node, kind, tmp_path, subscribe="orders")
    write(cluster, 0, 20)
    query = job.start(once=how != "runs")
    query.awaitTermination()
    assert job.numbers() == list(range(20))
    cluster.advance(days=DAYS)
    while cluster.records("orders"):
        pass  # they are removed at the node's next look
    if how == "runs":
        query.awaitTermination()
    else:
        cluster.restart()
    write(cluster, 20, 5, days=DAYS)
    if how.endswith("lost"):
        job.lose_the_checkpoint()
    if how != "runs":
        query = job.start()
    query.awaitTermination()
    assert job.numbers() == list(range(25))
