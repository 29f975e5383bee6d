"""Readers of a queue's topic while the queue is used: each gets exactly its messages, whatever state lies between them.

Those in Java, Go and Node are tried where these are. A Kafka producer's records are received from a queue that adopted the topic, those
of a transaction when it is committed, and never when it is aborted.
"""

import asyncio
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

import aiokafka
import boto3
import confluent_kafka
import kafka
import pytest
from msgspec import Struct

import ropewalk
from ropewalk import TopicPartition, aio
from tests.compat.go_tools import built, run_go
from tests.compat.java_tools import class_path_of, run_java
from tests.compat.node_process import NodeProcess, StartNode
from tests.compat.node_tools import run_kafkajs
from tests.compat.transactors import Confluent

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE_S = 30
VALUES = [f"message {number}" for number in range(100)]
LAST = VALUES[-1]

_numbers = itertools.count()


@pytest.fixture(scope="module")
def node(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> NodeProcess:
    data = str(tmp_path_factory.mktemp("data"))
    return start_node("--data", data, "--sqs", "127.0.0.1:0", "--set", "group.initial.rebalance.delay.ms=0")


def sqs_client(node: NodeProcess) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=str(node.ready["sqs"][0]),
        region_name="eu-west-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


class UsedQueue(Struct, frozen=True):
    bootstrap: str
    topic: str


@pytest.fixture(scope="module")
def queue(node: NodeProcess) -> Iterator[UsedQueue]:
    """Messages with state between them, and somebody who receives, hides and deletes as long as others read."""
    sqs, name = sqs_client(node), f"read-{os.getpid()}"
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "600"})["QueueUrl"]
    for start in range(0, len(VALUES), 5):
        entries = [{"Id": str(n), "MessageBody": VALUES[n]} for n in range(start, start + 5)]
        assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 5
        settle(sqs, url, keep=VALUES[0])
    with ropewalk.Admin(node.bootstrap) as admin:
        assert max(admin.end_offsets(name).values()) > 120, "there is state between the messages"
        assert max(admin.beginning_offsets(name).values()) <= 1, "the first message is there"
    done = threading.Event()

    def use() -> None:
        while not done.is_set():
            for message in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", []):
                handle = message["ReceiptHandle"]
                sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)

    user = threading.Thread(target=use)
    user.start()
    yield UsedQueue(node.bootstrap, name)
    done.set()
    user.join()


def settle(sqs: Any, url: str, *, keep: str) -> None:
    """Receive some, delete half of these; what is kept keeps the log's start where it is."""
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=4, WaitTimeSeconds=1).get("Messages", [])
    for message in messages:
        handle = message["ReceiptHandle"]
        if message["Body"] == keep or hash(handle) % 2:
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
        else:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)


Read = Callable[[UsedQueue, str], list[str]]


def by_java(queue: UsedQueue, isolation: str) -> list[str]:
    path = class_path_of("ReadTopic")
    return run_java(path, "ReadTopic", queue.bootstrap, queue.topic, isolation, LAST).splitlines()


def by_franz_go(queue: UsedQueue, isolation: str) -> list[str]:
    return run_go(built("readers"), "franz-go", queue.bootstrap, queue.topic, isolation, LAST).splitlines()


def by_sarama(queue: UsedQueue, isolation: str) -> list[str]:
    return run_go(built("readers"), "sarama", queue.bootstrap, queue.topic, isolation, LAST).splitlines()


def by_kafkajs(queue: UsedQueue, isolation: str) -> list[str]:
    return run_kafkajs("read.cjs", queue.bootstrap, queue.topic, isolation, LAST).splitlines()


def by_confluent(queue: UsedQueue, isolation: str) -> list[str]:
    settings = {
        "bootstrap.servers": queue.bootstrap,
        "group.id": "none",
        "isolation.level": f"read_{isolation}",
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(queue.topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    try:
        return [(each.value() or b"").decode() for each in consumer.consume(len(VALUES), PATIENCE_S)]
    finally:
        consumer.close()


def by_kafka_python(queue: UsedQueue, isolation: str) -> list[str]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=queue.bootstrap,
        isolation_level=f"read_{isolation}",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    try:
        partition = kafka.TopicPartition(queue.topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        return [each.value.decode() for each in itertools.islice(consumer, len(VALUES))]
    finally:
        consumer.close()


def by_aiokafka(queue: UsedQueue, isolation: str) -> list[str]:
    async def read() -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=queue.bootstrap, isolation_level=f"read_{isolation}"
        )
        async with asyncio.timeout(PATIENCE_S), consumer:
            partition = aiokafka.TopicPartition(queue.topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            return [(await consumer.getone()).value.decode() for _ in VALUES]

    return asyncio.run(read())


def by_our_own(queue: UsedQueue, isolation: str) -> list[str]:
    with ropewalk.Consumer(queue.bootstrap, isolation_level=f"read_{isolation}") as consumer:
        partition = TopicPartition(queue.topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        return [(each.value or b"").decode() for each in itertools.islice(consumer, len(VALUES))]


def by_our_own_for_asyncio(queue: UsedQueue, isolation: str) -> list[str]:
    async def read() -> list[str]:
        async with (
            asyncio.timeout(PATIENCE_S),
            aio.Consumer(queue.bootstrap, isolation_level=f"read_{isolation}") as consumer,
        ):
            partition = TopicPartition(queue.topic, 0)
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            values: list[str] = []
            async for message in consumer:
                values.append((message.value or b"").decode())
                if values[-1] == LAST:
                    break
            return values

    return asyncio.run(read())


READERS: dict[str, Read] = {
    "kafka-clients": by_java,
    "franz-go": by_franz_go,
    "sarama": by_sarama,
    "KafkaJS": by_kafkajs,
    "confluent-kafka": by_confluent,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "ropewalk": by_our_own,
    "ropewalk.aio": by_our_own_for_asyncio,
}


@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
@pytest.mark.parametrize("name", READERS)
def test_every_reader_gets_exactly_the_messages_of_a_queue_that_is_used(
    queue: UsedQueue, name: str, isolation: str
) -> None:
    assert READERS[name](queue, isolation) == VALUES


def write_by_confluent(bootstrap: str, topic: str, values: list[str], *, commit: bool) -> None:
    Confluent(bootstrap).write(topic, f"writer-of-{topic}", [(values, commit)])


def write_by_our_own(bootstrap: str, topic: str, values: list[str], *, commit: bool) -> None:
    with ropewalk.Producer(bootstrap, transactional_id=f"own-writer-of-{topic}") as producer:
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value.encode())
        producer.flush()
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


@pytest.mark.parametrize("write", [write_by_confluent, write_by_our_own], ids=["confluent-kafka", "ropewalk"])
def test_records_of_a_transaction_are_received_when_it_is_committed_and_never_when_it_is_aborted(
    node: NodeProcess, write: Callable[..., None]
) -> None:
    sqs = sqs_client(node)
    topic = f"adopted-{os.getpid()}-{next(_numbers)}"
    with ropewalk.Admin(node.bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    adopt(node, name=f"of-{topic}", topic=topic)
    url = sqs.get_queue_url(QueueName=f"of-{topic}")["QueueUrl"]
    write(node.bootstrap, topic, ["first", "second"], commit=True)
    write(node.bootstrap, topic, ["never", "ever"], commit=False)
    write(node.bootstrap, topic, ["third"], commit=True)
    received: list[str] = []
    while len(received) < 3:
        for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=10)[
            "Messages"
        ]:
            received.append(message["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert received == ["first", "second", "third"]
    assert "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)


def adopt(node: NodeProcess, *, name: str, topic: str) -> None:
    """An action of Ropewalk's own, which no SDK has."""
    request = Request(
        str(node.ready["sqs"][0]),
        data=json.dumps({"QueueName": name, "Topic": topic, "From": "earliest"}).encode(),
        headers={"X-Amz-Target": "Ropewalk.AdoptTopic", "Content-Type": "application/x-amz-json-1.0"},
    )
    with urlopen(request, timeout=PATIENCE_S) as answer:
        assert answer.status == 200
