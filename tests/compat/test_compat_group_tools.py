"""Groups as operators see them: kcat, Kafka's own tool, and the admin side of the client libraries."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiokafka
import aiokafka.admin
import kafka
import kafka.admin
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.compat.clients import with_aiokafka_admin
from tests.compat.committed import committed
from tests.compat.conftest import HireCrew, MakeTopic
from tests.compat.crew import Position, wait_until_left, wait_until_read
from tests.compat.java_tools import run_java, tools_class_path
from tests.compat.writing import write

pytestmark = pytest.mark.compat

PATIENCE_S: Final = 30
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69


needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is missing (Debian: kcat)")


@needs_kcat
def test_two_kcats_share_a_group(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(4)
    with kcat(bootstrap, group, topic) as first, kcat(bootstrap, group, topic) as second:
        partitions = {first: _assigned(first), second: _assigned(second)}
        while any(len(held) != 2 for held in partitions.values()):
            # Whoever came first held all four, and is told of a second assignment.
            larger = max(partitions, key=lambda process: len(partitions[process]))
            partitions[larger] = _assigned(larger)
        assert sorted(partitions[first] | partitions[second]) == [0, 1, 2, 3]
        written = write(bootstrap, topic, partitions=4, count=40)
        read = [_read(process) for process in (first, second) for _ in range(20)]
    assert Counter(read) == Counter(written)


@needs_kcat
def test_kcat_goes_on_where_it_stopped(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(1)
    written = write(bootstrap, topic, partitions=1, count=20)
    with kcat(bootstrap, group, topic, "-c", "15") as process:
        assert [_read(process) for _ in range(15)] == written[:15]
    with kcat(bootstrap, group, topic, "-c", "5") as process:
        assert [_read(process) for _ in range(5)] == written[15:]


@contextmanager
def kcat(bootstrap: str, group: str, topic: str, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """A balanced consumer that prints a line for each record, and is asked to leave at the end of the block."""
    settings = ("auto.offset.reset=earliest", "heartbeat.interval.ms=100", "session.timeout.ms=6000")
    flags = [flag for setting in settings for flag in ("-X", setting)]
    command = ["kcat", "-b", bootstrap, *flags, *more, "-u", "-f", "%t:%p:%o\n", "-G", group, topic]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def _assigned(process: "subprocess.Popen[str]") -> set[int]:
    """The partitions of the next assignment that kcat tells of: `assigned: topic [0], topic [1]`."""
    assert process.stderr is not None
    for line in process.stderr:
        if "assigned:" in line:
            return {int(word[1:-1]) for word in line.replace(",", " ").split() if word[0] == "["}
    raise AssertionError("kcat has ended")


def _read(process: "subprocess.Popen[str]") -> Position:
    assert process.stdout is not None
    topic, partition, offset = process.stdout.readline().strip().split(":")
    return topic, int(partition), int(offset)


def test_the_tool_of_kafka_lists_describes_resets_and_deletes(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    tools = tools_class_path()
    topic = make_topic(1)

    def tool(*arguments: str) -> str:
        program = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        return run_java(tools, program, "--bootstrap-server", bootstrap, *arguments)

    written = write(bootstrap, topic, partitions=1, count=10)
    member = hire("confluent-kafka").join(group, topic)
    wait_until_read([member], written)
    members = tool("--describe", "--group", group, "--members", "--verbose")
    assert f"{topic}:0" in members
    wait_until_left([member])
    assert group in tool("--list").splitlines()
    assert ["10", "10", "0"] in _figures(tool("--describe", "--group", group), topic)
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--shift-by", "-3", "--execute")
    assert ["7"] in _figures(tool(*reset), topic)
    assert committed(bootstrap, group) == {(topic, 0): 7}
    assert "successful" in tool("--delete", "--group", group)
    assert group not in tool("--list").splitlines()


def _figures(table: str, topic: str) -> list[list[str]]:
    """The numbers that follow topic and partition 0 in every line that has them."""
    rows = [line.split() for line in table.splitlines()]
    return [[word for word in row[row.index(topic) + 2 :] if word.isdigit()] for row in rows if topic in row]


def test_an_administrator_moves_and_deletes_a_group_only_when_it_is_empty(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(1)
    written = write(bootstrap, topic, partitions=1, count=10)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    to_four = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 4)])

    member = hire("confluent-kafka").join(group, topic)
    wait_until_read([member], written)
    description = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    assert description.state.name == "STABLE"
    assert description.partition_assignor == "range"
    (described,) = description.members
    assert described.assignment.topic_partitions == [TopicPartition(topic, 0)]
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert refused.value.args[0].code() == NON_EMPTY_GROUP

    wait_until_left([member])
    assert admin.describe_consumer_groups([group])[group].result(PATIENCE_S).state.name == "EMPTY"
    admin.alter_consumer_group_offsets([to_four])[group].result(PATIENCE_S)
    successor = hire("confluent-kafka").join(group, topic)
    wait_until_read([successor], written[4:])
    wait_until_left([successor])
    assert successor.received == Counter(written[4:])
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert committed(bootstrap, group) == {}
    with pytest.raises(KafkaException) as missing:
        admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert missing.value.args[0].code() == GROUP_ID_NOT_FOUND


def test_every_library_lists_groups_and_their_offsets(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(1)
    written = write(bootstrap, topic, partitions=1, count=10)
    member = hire("confluent-kafka").join(group, topic)
    wait_until_read([member], written)
    wait_until_left([member])

    confluent_admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = confluent_admin.list_consumer_groups().result(PATIENCE_S).valid
    assert [found.state.name for found in listed if found.group_id == group] == ["EMPTY"]
    assert committed(bootstrap, group) == {(topic, 0): 10}

    async def ask(admin: aiokafka.admin.AIOKafkaAdminClient) -> tuple[bool, int]:
        groups = await admin.list_consumer_groups()
        offsets = await admin.list_consumer_group_offsets(group)
        return (group, "consumer") in groups, offsets[aiokafka.TopicPartition(topic, 0)].offset

    assert with_aiokafka_admin(bootstrap, ask) == (True, 10)

    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        assert group in [found["group_id"] for found in admin.list_groups()]
        offsets = admin.list_group_offsets([group])[group]
        assert offsets[kafka.TopicPartition(topic, 0)].offset == 10
        assert admin.delete_groups([group]) == {group: "OK"}
    finally:
        admin.close()
