"""One Spark session and one node for all tests of this directory that want them: starting Spark takes longer than they do."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ropewalk.testing import Cluster

pyspark = pytest.importorskip("pyspark")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """As bare as Spark comes but for what keeps a test small."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or newer")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


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

    def read(self, topic: str, partitions: int = 2, *, isolation: str = "read_committed") -> list[Message]:
        """What is there by now, in order of partition and offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "check",
                "isolation.level": isolation,
                "enable.partition.eof": True,
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


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    with Cluster() as cluster:
        yield Node(cluster.bootstrap)
