"""A transform whose topic was deleted and made anew under its name: nothing is left out unseen and nothing is written twice, in topics and in tables."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable
from msgspec import structs
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.refusals import DataLost
from tests.spark.conftest import Node
from tests.spark.session.test_pipeline_transform import Shop

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


class Copy(Shop):
    """Copies values to a topic or to a table."""

    def __init__(self, spark: SparkSession, node: Node, directory: Path, to: str, **config: str) -> None:
        super().__init__(spark, node, directory, **config)
        self._to = to
        self._table = directory / "table"
        self._output = {"to": str(self._table)}
        if to == "topic":
            self._output = {"to_topic": node.create(f"{directory.name}-copies", partitions=1), "tasks": "1"}

    def copy(self, view: str = "orders", **source: str) -> None:
        self.run(source=source, **self._settings(view))

    def copying(self, **source: str) -> Work:
        return self.work(source=source, **self._settings("orders"))

    def _settings(self, view: str) -> dict[str, Any]:
        views = {"orders": self.orders} if view == "orders" else {}
        return {"sql": f"SELECT value FROM {view}", "fields": "", "views": views, **self._output}

    def work(self, *, source: dict[str, str] | None = None, **settings: Any) -> Work:
        made = super().work(source=source, **settings)
        return structs.replace(made, source={name: value for name, value in made.source.items() if value})

    def renew(self, count: int, first: int, topic: str = "") -> None:
        self.node.delete(topic or self.orders)
        self.node.create(topic or self.orders)
        self.node.write(topic or self.orders, count, first=first)

    def numbers(self) -> list[int]:
        """What `Node.write` counted, as it was copied."""
        if self._to == "topic":
            values = [each.value() or b"" for each in self.node.read(self._output["to_topic"], 1)]
        else:
            values = DeltaTable(str(self._table)).to_pyarrow_table()["value"].to_pylist()
        return sorted(int(value[1:]) for value in values)


@pytest.fixture(params=["topic", "table"])
def job(spark: SparkSession, node: Node, tmp_path: Path, request: pytest.FixtureRequest) -> Copy:
    return Copy(spark, node, tmp_path, request.param)


def test_it_is_told_and_read_from_its_start_where_that_was_said(job: Copy) -> None:
    expected = [*range(20)]
    job.node.write(job.orders, 20)
    job.copy()
    job.forget_the_last_commit()
    job.renew(30, 1000)
    with pytest.raises(StreamingQueryException, match="was deleted and made anew"):
        job.copy()  # the batch that Spark does not know to be done
    job.copy(onNewTopic="append")
    expected += range(1000, 1030)
    assert job.numbers() == expected
    job.renew(4, 2000)
    job.lose_the_checkpoint()
    with pytest.raises(DataLost, match="was deleted and made anew"):
        job.copy()
    job.copy(onNewTopic="append")
    expected += range(2000, 2004)
    assert job.numbers() == expected


def test_of_a_pattern_the_other_topics_go_on_though_the_checkpoint_is_lost(job: Copy) -> None:
    source = {"subscribe": "", "subscribePattern": f"{job.orders}.*"}
    other = job.node.create(f"{job.orders}-other")
    job.node.write(job.orders, 20)
    job.node.write(other, 10, first=100)
    expected = [*range(20), *range(100, 110)]
    job.copy("records", **source)
    job.renew(30, 1000)
    job.lose_the_checkpoint()
    job.node.write(other, 5, first=110)
    expected += range(110, 115)
    job.copy("records", **source)
    assert job.numbers() == expected
    job.copy("records", **source, onNewTopic="append")
    assert job.numbers() == [*expected, *range(1000, 1030)]
