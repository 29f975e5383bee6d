"""Real clients on `ropewalk up --nodes 3` whose brokers are killed: they go on, without an error that a program would see."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.conftest import AT_ONCE
from tests.compat.crew import Crew, Member, kinds_here, wait_until_left, wait_until_read
from tests.compat.node_process import NodeProcess
from tests.compat.steady_writer import SteadyWriter

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(240)]

PARTITION_COUNT = 3
RECORDS = 200
WITHIN_S = 60


@pytest.fixture
def cluster(nodes: list[NodeProcess], tmp_path: Path) -> Iterator[NodeProcess]:
    """Three nodes, each of which is started again when it has ended."""
    directory = tmp_path / "supervisor"
    directory.mkdir()
    ports = ("--http", "127.0.0.1:0", "--peer", "127.0.0.1:0")
    supervisor = NodeProcess(
        directory, "--nodes", "3", "--restart", "--data", str(tmp_path / "data"), *ports, *AT_ONCE
    )
    nodes.append(supervisor)
    yield supervisor
    assert supervisor.stop() == 0


def test_every_client_writes_and_reads_on_when_brokers_are_killed(
    cluster: NodeProcess, tmp_path: Path
) -> None:
    bootstrap = ",".join(cluster.ready["kafka"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    kinds = kinds_here()
    for created in admin.create_topics([NewTopic(kind, PARTITION_COUNT, 3) for kind in kinds]).values():
        created.result(WITHIN_S)
    with ExitStack() as stack:
        writers: list[SteadyWriter] = []
        readers: list[Member] = []
        for kind in kinds:
            writer = SteadyWriter(kind, bootstrap, kind, PARTITION_COUNT, tmp_path / f"{kind}.writer")
            stack.callback(writer.kill)
            writers.append(writer)
            crew = Crew(kind, bootstrap, tmp_path / f"{kind}.crew")
            stack.callback(crew.close)
            readers.append(crew.join(f"group-of-{kind}", kind, commit="auto"))
        for killed in (1, 2):
            wait_until_all_go_on(writers, readers)
            wait_until_in_sync(admin, kinds)
            os.kill(cluster.ready["pids"][killed], signal.SIGKILL)
        wait_until_all_go_on(writers, readers)
        for writer in writers:
            writer.finish()
        assert [writer.refused for writer in writers] == [[]] * len(writers)
        for writer, reader in zip(writers, readers, strict=True):
            wait_until_read([reader], positions(writer))
        wait_until_in_sync(
            admin, kinds
        )  # librdkafka gives up commits that wait for a coordinator while it closes
        wait_until_left(readers)
        assert [reader.refusals for reader in readers] == [[]] * len(readers)
    for writer in writers:
        assert content(bootstrap, writer) == expected_content(writer)


def wait_until_all_go_on(writers: list[SteadyWriter], readers: list[Member]) -> None:
    """Each writer writes some more, and its reader reads it."""
    for writer in writers:
        writer.wait_for(RECORDS)
    for writer, reader in zip(writers, readers, strict=True):
        wait_until_read([reader], positions(writer))


def wait_until_in_sync(admin: AdminClient, topics: tuple[str, ...]) -> None:
    """Every replica of every partition is."""
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        found = admin.list_topics(timeout=WITHIN_S).topics
        partitions = [partition for topic in topics for partition in found[topic].partitions.values()]
        if all(len(partition.isrs) == 3 for partition in partitions):
            return
        assert time.monotonic() < deadline_s, [(each.id, each.isrs) for each in partitions]
        time.sleep(0.05)


def positions(writer: SteadyWriter) -> list[tuple[str, int, int]]:
    """Of what has been acknowledged; a repetition of something written long ago is acknowledged without its offset."""
    return [
        (writer.topic, number % PARTITION_COUNT, offset)
        for number, offset in dict(writer.acknowledged).items()
        if offset >= 0
    ]


def expected_content(writer: SteadyWriter) -> list[list[str]]:
    """Everything that was acknowledged, once, in the order in which it was sent."""
    numbers = sorted(writer.acknowledged)
    assert numbers == list(range(len(numbers)))
    return [[str(number) for number in numbers[index::PARTITION_COUNT]] for index in range(PARTITION_COUNT)]


def content(bootstrap: str, writer: SteadyWriter) -> list[list[str]]:
    """What is in the topic, by partition, compared with the offsets that were acknowledged."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "content", "enable.auto.commit": False, "log_level": 0}
    )
    found: list[list[str]] = []
    try:
        for index in range(PARTITION_COUNT):
            partition = confluent_kafka.TopicPartition(writer.topic, index, 0)
            _, end = consumer.get_watermark_offsets(partition, timeout=WITHIN_S)
            consumer.assign([partition])
            values: list[str] = []
            while len(values) < end:
                messages = consumer.consume(end - len(values), WITHIN_S)
                assert messages, f"{len(values)} of {end} records of {partition}"
                assert [message.error() for message in messages] == [None] * len(messages)
                values += [(message.value() or b"").decode() for message in messages]
            for number, offset in writer.acknowledged.items():
                if number % PARTITION_COUNT == index and offset >= 0:
                    assert values[offset] == str(number)
            found.append(values)
    finally:
        consumer.close()
    return found
