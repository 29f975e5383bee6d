"""Real clients at a front end that passes requests on: they know of one broker, and the partitions are elsewhere."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer

from tests.compat.conftest import AT_ONCE
from tests.compat.node_process import NodeProcess

COUNT = 5_000
WITHIN_S = 60


@pytest.fixture
def front_end(nodes: list[NodeProcess], tmp_path: Path) -> Iterator[str]:
    """The address of a node without partitions, behind which two brokers hold them."""
    started: list[NodeProcess] = []

    def start(node_id: int, *arguments: str) -> NodeProcess:
        directory = tmp_path / str(node_id)
        directory.mkdir()
        ports = ("--http", "127.0.0.1:0", "--peer", "127.0.0.1:0")
        secret = ("--set", "cluster.secret=a secret of this cluster")
        once = ("--set", "offsets.topic.replication.factor=1", *AT_ONCE)
        node = NodeProcess(
            directory, *ports, *secret, *once, "--node-id", str(node_id), *arguments, command="serve"
        )
        nodes.append(node)
        started.append(node)
        return node

    peer = start(0).peer
    assert peer is not None
    start(1, "--seed", peer, "--role", "broker")
    yield start(2, "--seed", peer, "--role", "frontend", "--set", "kafka.route=proxy").bootstrap
    assert [node.stop() for node in reversed(started)] == [0, 0, 0]


def test_clients_produce_and_consume_in_groups_through_a_front_end(front_end: str) -> None:
    bootstrap = front_end
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 4, 1)])["t"].result(WITHIN_S)
    seen = admin.list_topics(timeout=WITHIN_S)
    assert list(seen.brokers) == [2]
    assert {partition.leader for partition in seen.topics["t"].partitions.values()} == {2}

    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("t", key=str(number), value=b"x" * 100, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(WITHIN_S) == 0
    assert failures == []

    assert read_with_librdkafka(bootstrap, COUNT) == COUNT
    other = KafkaProducer(bootstrap_servers=bootstrap)
    sent = [other.send("t", b"y") for _ in range(100)]
    other.flush()
    assert all(each.succeeded() for each in sent)
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    count = 0
    for _ in consumer:
        count += 1
        if count == COUNT + 100:
            break
    consumer.close()
    assert count == COUNT + 100
    groups = admin.list_consumer_groups().result(WITHIN_S)
    assert sorted(group.group_id for group in groups.valid) == ["librdkafka", "python"]


def read_with_librdkafka(bootstrap: str, count: int) -> int:
    """How many different records a group of one finds."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "librdkafka", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    found: set[tuple[int | None, int | None]] = set()
    deadline_s = time.monotonic() + WITHIN_S
    while len(found) < count and time.monotonic() < deadline_s:
        for message in consumer.consume(500, 0.5):
            assert message.error() is None
            found.add((message.partition(), message.offset()))
    consumer.commit(asynchronous=False)
    consumer.close()
    return len(found)
