"""Rules about rights by real clients: Kafka's own `kafka-acls`, confluent-kafka, and what clients make of a refusal.

They run against nodes of their own, since the shared one decides nothing.
"""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.compat.java_tools import run_java, tools_class_path
from tests.compat.node_process import StartNode

ON = (
    "--memory",
    "--sqs",
    "none",
    "--set",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "--set",
)
WITHIN_S = 30


@pytest.fixture(scope="module")
def open_to_administrators(start_node: StartNode) -> str:
    """Where whoever comes is above the rules."""
    return start_node(*ON, "super.users=User:ANONYMOUS").bootstrap


@pytest.fixture(scope="module")
def closed(start_node: StartNode) -> str:
    """Where nobody who comes may do anything."""
    return start_node(*ON, "super.users=User:root").bootstrap


def test_kafka_acls_adds_lists_and_removes(open_to_administrators: str) -> None:
    tools = tools_class_path()

    def tool(*arguments: str) -> str:
        command = ("--bootstrap-server", open_to_administrators, *arguments)
        return run_java(tools, "org.apache.kafka.tools.AclCommand", *command)

    tool("--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
    prefixed = ("--topic", "ord", "--resource-pattern-type", "prefixed")
    tool("--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.9", "--operation", "All", *prefixed)
    listed = tool("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert listed.count("principal=User:alice") == 3, "WRITE, DESCRIBE and CREATE"
    assert "patternType=PREFIXED" in listed
    tool("--remove", "--force", "--topic", "orders", "--allow-principal", "User:alice", "--producer")
    left = tool("--list")
    assert "User:alice" not in left
    assert "host=10.0.0.9" in left


def test_confluent_kafka_adds_describes_and_removes(open_to_administrators: str) -> None:
    admin = AdminClient({"bootstrap.servers": open_to_administrators})
    rules = [
        AclBinding(
            ResourceType.TOPIC,
            name,
            pattern,
            "User:carol",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for name, pattern in (("a", ResourcePatternType.LITERAL), ("b-", ResourcePatternType.PREFIXED))
    ]
    for future in admin.create_acls(rules).values():
        future.result(WITHIN_S)
    every = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # which is any, whatever is declared
        ResourcePatternType.ANY,
        "User:carol",
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert set(admin.describe_acls(every).result(WITHIN_S)) == set(rules)
    (removed,) = admin.delete_acls([every]).values()
    assert set(removed.result(WITHIN_S)) == set(rules)
    assert list(admin.describe_acls(every).result(WITHIN_S)) == []


def test_clients_say_what_they_may_not_do(closed: str) -> None:
    admin = AdminClient({"bootstrap.servers": closed})
    assert admin.list_topics(timeout=WITHIN_S).topics == {}
    (made,) = admin.create_topics([NewTopic("t", 1, 1)]).values()
    with pytest.raises(KafkaException) as refused:
        made.result(WITHIN_S)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

    delivered: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": closed})
    producer.produce("t", b"a", on_delivery=lambda error, _message: delivered.append(error))
    producer.flush(WITHIN_S)
    assert [error is not None and error.code() for error in delivered] == [
        KafkaError.TOPIC_AUTHORIZATION_FAILED
    ]

    consumer = Consumer({"bootstrap.servers": closed, "group.id": "g"})
    consumer.subscribe(["t"])
    message = consumer.poll(WITHIN_S)
    consumer.close()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)
