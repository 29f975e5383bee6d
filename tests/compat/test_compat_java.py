"""Kafka's own client, where Java and Maven are: its console producer, and a consumer by partition."""

import pytest

from tests.compat.clients import Confluent, Message
from tests.compat.java_tools import class_path_of, run_java, tools_class_path

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def tools() -> str:
    return tools_class_path()


@pytest.fixture(scope="module")
def consumer() -> str:
    return class_path_of("ReadPartition")


def test_the_console_producer_writes_what_other_clients_read(tools: str, bootstrap: str, topic: str) -> None:
    lines = [b"strand %d" % number for number in range(500)]
    to_topic = ("--bootstrap-server", bootstrap, "--topic", topic)
    run_java(tools, "org.apache.kafka.tools.ConsoleProducer", *to_topic, stdin=b"\n".join(lines))
    received = Confluent(bootstrap).consume(topic, offset=0, count=len(lines))
    assert [(message.offset, message.value) for message in received] == list(enumerate(lines))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_java_consumer_reads_a_partition_from_the_middle_of_a_batch(
    consumer: str, bootstrap: str, topic: str, codec: str
) -> None:
    messages = [Message(b"strand %d" % number, b"%d" % number) for number in range(500)]
    Confluent(bootstrap).produce(topic, messages, codec=codec)
    printed = run_java(consumer, "ReadPartition", bootstrap, topic, "123", "377")
    assert printed.splitlines() == [f"{number}\t{number}\tstrand {number}" for number in range(123, 500)]


def test_the_java_tool_creates_lists_and_describes_a_topic(tools: str, bootstrap: str, topic: str) -> None:
    tool = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap)
    run_java(tools, *tool, "--create", "--topic", topic, "--partitions", "3")
    assert topic in run_java(tools, *tool, "--list").splitlines()
    assert "PartitionCount: 3" in run_java(tools, *tool, "--describe", "--topic", topic)


def test_the_java_admin_client_finds_what_web_consoles_ask_for(bootstrap: str, topic: str) -> None:
    printed = run_java(class_path_of("AdminPages"), "AdminPages", bootstrap, topic)
    assert dict(line.split(": ", 1) for line in printed.splitlines()) == {
        "cluster": "1 7",
        "features": "true",
        "listed": "true",
        "partitions": "3",
        "policy": "delete,compact",
        "broker settings": "true",
        "LatestSpec": "0",
        "EarliestSpec": "0",
        "MaxTimestampSpec": "-1",
        "EarliestLocalSpec": "0",
        "LatestTieredSpec": "-1",
        "in directories": "3",
        "producers": "0",
        "moving": "0",
        "election": "ElectionNotNeededException",
        "acls": "SecurityDisabledException",
        "groups": "true",
        "quotas": "{producer_byte_rate=1000000.0}",
        "credentials": "0",
        "deleted": "true",
    }
