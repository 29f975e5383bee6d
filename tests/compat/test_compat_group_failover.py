"""Twenty members over sixty partitions of three nodes, and their coordinator is killed: every record is read once."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.compat.conftest import AT_ONCE
from tests.compat.crew import Crew
from tests.compat.failover import MEMBER_COUNT, group_off_the_controller, lose_the_coordinator, make_topic
from tests.compat.node_process import NodeProcess

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(300)]


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


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_classic_group_reads_everything_once_though_its_coordinator_is_lost(
    strategy: str, cluster: NodeProcess, tmp_path: Path
) -> None:
    bootstrap = ",".join(cluster.ready["kafka"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    partitions = make_topic(admin, "orders")
    group = group_off_the_controller(bootstrap)
    with ExitStack() as stack:
        crew = Crew("confluent-kafka", bootstrap, tmp_path / "crew")
        stack.callback(crew.close)
        members = [crew.join(group, "orders", strategy=strategy) for _ in range(MEMBER_COUNT)]
        lose_the_coordinator(cluster, members, group, "orders", partitions)
