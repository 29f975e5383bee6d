"""One node for all tests of this directory that want one, and Java that starts quickly."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ropewalk.testing import Cluster
from tests.spark.s3_server import S3, s3_server

pytest.importorskip("pyspark")

from tests.spark.quick_java import quick_java

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or newer")


@pytest.fixture(scope="module", autouse=True)
def _quick_java() -> Iterator[None]:
    """Whatever a test starts begins sooner. Not for longer than a module: others may want Java otherwise."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("JAVA_TOOL_OPTIONS", quick_java())
        yield


class Node:
    """A node, and what tests put into it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def create(self, topic: str, partitions: int = 2, **config: str) -> str:
        chosen = {name.replace("_", "."): value for name, value in config.items()}
        # Tests date their records as they like; what is old would be removed at the first look.
        made = NewTopic(topic, partitions, 1, config={"retention.ms": "-1", **chosen})
        self._admin.create_topics([made])[topic].result(30)
        return topic

    def topics(self) -> list[str]:
        return list(self._admin.list_topics(timeout=30).topics)

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(30)

    def write(self, topic: str, count: int, *, first: int = 0, partitions: int = 2) -> None:
        """Records numbered from `first`, in turn over the partitions."""
        for number in range(first, first + count):
            self._producer.produce(
                topic,
                key=f"k{number}",
                value=f"v{number}",
                partition=number % partitions,
                timestamp=1_700_000_000_000 + number,
                headers=[("n", str(number).encode())] if number % 2 else None,
            )
        assert self._producer.flush(30) == 0

    @staticmethod
    def archived(topic: str, count: int) -> list[dict[str, Any]]:
        """Every column of what a table holds that `count` records from 0 on were archived to."""
        rows = []
        for number in range(count):
            at = datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(milliseconds=number)
            header = {"key": "n", "value": str(number).encode()}
            rows.append(
                {
                    "key": f"k{number}".encode(),
                    "value": f"v{number}".encode(),
                    "topic": topic,
                    "partition": number % 2,
                    "offset": number // 2,
                    "timestamp": at,
                    "timestampType": 0,
                    "headers": [header] if number % 2 else None,
                    "date": at.date(),
                }
            )
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    def read(self, topic: str, partitions: int = 2, *, isolation: str = "read_committed") -> list[Message]:
        """What is there by now, in order of partition and offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "check",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,  # what has no more answers at once
            }
        )
        found: list[Message] = []
        for index in range(partitions):
            consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(30)
                assert message is not None, "no end of partition"
                if message.error():
                    break
                found.append(message)
        consumer.close()
        return found


def rows_of(table: Path) -> list[dict[str, Any]]:
    """All that a table holds, in order of partition and offset."""
    from deltalake import DeltaTable

    found: list[dict[str, Any]] = DeltaTable(str(table)).to_pyarrow_dataset().to_table().to_pylist()
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    with Cluster() as cluster:
        yield Node(cluster.bootstrap)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server
