"""Twenty members over sixty partitions of three nodes, whose coordinator is killed: every record once, all the same."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.conftest import AT_ONCE
from tests.compat.crew import Crew, Member, received, wait_until_left, wait_until_read, wait_until_shared
from tests.compat.java_tools import java_is_here
from tests.compat.node_process import NodeProcess
from tests.compat.writing import writing

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(300)]

PARTITION_COUNT = 60
WITHIN_S = 60
SESSION_MS = "15000"
"""Nobody crashes here, and a busy machine may need some seconds for another coordinator. A farewell that is lost costs as much."""


@pytest.fixture
def cluster(nodes: list[NodeProcess], tmp_path: Path) -> Iterator[NodeProcess]:
    """Three nodes, each of which is started again when it has ended."""
    directory = tmp_path / "supervisor"
    directory.mkdir()
    ports = ("--http", "127.0.0.1:0", "--peer", "127.0.0.1:0")
    supervisor = NodeProcess(
        directory,
        "--nodes",
        "3",
        "--restart",
        "--data",
        str(tmp_path / "data"),
        *ports,
        *AT_ONCE,
        "--set",
        f"group.consumer.session.timeout.ms={SESSION_MS}",
    )
    nodes.append(supervisor)
    yield supervisor
    assert supervisor.stop() == 0


def kill_coordinator(cluster: NodeProcess, bootstrap: str) -> None:
    # A client that has asked before may remember who it was then.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    described = admin.describe_consumer_groups(["g"], request_timeout=WITHIN_S)["g"].result(WITHIN_S)
    os.kill(cluster.ready["pids"][described.coordinator.id], signal.SIGKILL)


@pytest.mark.parametrize("kind", ["confluent-kafka", "java"])
def test_a_group_moves_over_and_back_while_its_coordinator_is_killed(
    kind: str, cluster: NodeProcess, tmp_path: Path
) -> None:
    if kind == "java" and not java_is_here():
        pytest.skip("optional: Java is missing, so Kafka's own client was not tried")
    bootstrap = ",".join(cluster.ready["kafka"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("t", PARTITION_COUNT, 3)])["t"].result(WITHIN_S)
    everything = {("t", partition) for partition in range(PARTITION_COUNT)}
    with ExitStack() as stack:
        crew = Crew(kind, bootstrap, tmp_path / "crew")
        stack.callback(crew.close)

        def classic(count: int) -> list[Member]:
            return [
                crew.join("g", "t", strategy="cooperative-sticky", session=SESSION_MS) for _ in range(count)
            ]

        def modern(count: int) -> list[Member]:
            return [crew.join("g", "t", protocol="consumer") for _ in range(count)]

        with writing(bootstrap, "t", partitions=PARTITION_COUNT) as written:
            old = classic(10)
            wait_until_shared(old, everything)
            new = modern(10)
            wait_until_shared(old + new, everything)
            kill_coordinator(cluster, bootstrap)
            new += modern(10)
            wait_until_shared(old + new, everything)
            for member in old:
                member.leave()
            wait_until_shared(new, everything)
            kill_coordinator(cluster, bootstrap)
            back = classic(10)
            wait_until_shared(new + back, everything)
            for member in new:
                member.leave()
            wait_until_shared(back, everything)
        members = old + new + back
        wait_until_read(members, written)
        wait_until_left(members)
        assert [refusal for member in members for refusal in member.refusals] == []
        again = received(members) - Counter(written)
        lost = {member.name: sorted(member.lost) for member in members if member.lost}
        assert not again, (
            f"{dict(again)} once more; taken from members that could not commit any more: {lost}"
        )
        assert received(members) == Counter(written)
