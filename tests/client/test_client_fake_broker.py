"""The fake is tested by a client that is not ours: what kafka-python believes of it, our tests may believe too."""

from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from tests.client.loopback import LoopbackBroker


@pytest.fixture
def broker() -> Iterator[LoopbackBroker]:
    broker = LoopbackBroker()
    broker.start()
    yield broker
    broker.stop()


def test_another_client_produces_consumes_and_lists(broker: LoopbackBroker) -> None:
    broker.cluster.add_topic("orders", 0, 0)
    producer = KafkaProducer(bootstrap_servers=broker.address)
    for number in range(5):
        producer.send("orders", b"%d" % number, key=b"k", partition=1).get(timeout=10)
    producer.close()
    assert broker.cluster.topics["orders"].partitions[1].values() == [b"0", b"1", b"2", b"3", b"4"]

    consumer = KafkaConsumer(
        bootstrap_servers=broker.address,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    partition = TopicPartition("orders", 1)
    consumer.assign([partition])
    consumer.seek(partition, 2)
    assert [next(consumer).value for _ in range(3)] == [b"2", b"3", b"4"]
    assert consumer.end_offsets([partition]) == {partition: 5}
    consumer.close()

    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    assert admin.list_topics() == ["orders"]
    admin.close()
