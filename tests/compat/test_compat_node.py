"""What clients see of a node's own life: a restart, and a node that makes no topics unasked."""

import signal
import subprocess
from pathlib import Path

import aiokafka.admin
import kafka.admin
import kafka.errors
import pytest
from confluent_kafka.admin import AdminClient

from tests.compat.clients import Confluent, Kcat, Message, with_aiokafka_admin
from tests.compat.node_process import StartNode

pytestmark = pytest.mark.compat

PATIENCE_S = 10
UNKNOWN_TOPIC_OR_PARTITION = 3


@pytest.fixture(scope="module")
def reserved(start_node: StartNode) -> str:
    """The address of a node that makes a topic only for those who say so."""
    return start_node("--memory", "--set", "auto.create.topics.enable=false").bootstrap


def test_an_unknown_topic_stays_unknown_where_topics_are_not_made_on_first_use(reserved: str) -> None:
    topic = "nobody-made-this"
    admin = AdminClient({"bootstrap.servers": reserved})
    error = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].error
    assert error is not None
    assert error.code() == UNKNOWN_TOPIC_OR_PARTITION

    listing = subprocess.run(
        ["kcat", "-b", reserved, "-L", "-t", topic], capture_output=True, timeout=PATIENCE_S
    )
    assert b"Unknown topic or partition" in listing.stdout

    async def describe(admin: aiokafka.admin.AIOKafkaAdminClient) -> int:
        (described,) = await admin.describe_topics([topic])
        return int(described["error_code"])

    assert with_aiokafka_admin(reserved, describe) == UNKNOWN_TOPIC_OR_PARTITION

    python_admin = kafka.admin.KafkaAdminClient(bootstrap_servers=reserved)
    try:
        (described,) = python_admin.describe_topics([topic])
        assert described["error_code"] == UNKNOWN_TOPIC_OR_PARTITION
    finally:
        python_admin.close()
    assert Kcat(reserved).topics() == {}


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_everything_acknowledged_is_there_after_a_restart(
    start_node: StartNode, tmp_path: Path, signal_number: signal.Signals
) -> None:
    data = str(tmp_path / "data")
    node = start_node("--data", data)
    sent = [b"%d" % number for number in range(500)]
    client = Confluent(node.bootstrap)
    client.produce("kept", [Message(value) for value in sent], codec="lz4", idempotent=True)
    client.produce("beside", [Message(b"1", b"key", (("header", b"value"),))])
    node.stop(signal_number)

    client = Confluent(start_node("--data", data).bootstrap)
    assert client.topics() == {"kept": 1, "beside": 1}
    received = client.consume("kept", offset=0, count=len(sent))
    assert [(message.offset, message.value) for message in received] == list(enumerate(sent))
    client.produce("kept", [Message(b"later")])
    (later,) = client.consume("kept", offset=len(sent), count=1)
    assert later.value == b"later"
