"""What `bench/cluster` says of its bounds, and how it finds the nodes again after one was started anew."""

import json
import subprocess
import sys
from pathlib import Path

from bench.brokers import Broker
from bench.cluster_scale import Nodes, markdown
from bench.node_scale import Measured, Row


def test_the_table_names_the_replicas_and_the_bound() -> None:
    measured = Measured([Row("killed until another node decides", 5.5, "s", 5)], 1.25)
    head, *lines = markdown(measured, topic_count=2_000, partition_count=3).splitlines()
    assert "2,000 topics of 3 partitions with 3 replicas" in head
    assert "Other processes used up to 1.25 cores" in head
    assert lines[-1] == "| killed until another node decides | 5.5 s | ≤ 5 MISSED |"


def test_a_node_is_where_the_ready_file_says_at_the_time(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        nodes = Nodes(Broker("three", "127.0.0.1", 1, process, tmp_path, started_at=0.0, node_count=3))
    for pids, ports in (([11, 12, 13], (1, 2, 3)), ([11, 99, 13], (1, 7, 3))):
        addresses = [f"127.0.0.1:{port}" for port in ports]
        ready.write_text(json.dumps({"kafka": addresses, "pids": pids}))
        assert nodes.pids == pids
        assert [nodes[node_id].port for node_id in range(3)] == list(ports)
        assert nodes[1].node_count == 3
