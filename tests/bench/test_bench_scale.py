"""The clients of `bench/scale`, tried on a small node, and what its table says of a bound."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.brokers import Broker
from bench.client_load import LoadFailed
from bench.idle_clients import all_metadata_ms, connect_many, create_topics_in, spread_latency_ms
from bench.node_scale import Measured, Row, check_stalls, markdown
from ropewalk.runtime.loop_watch import STALLS_FILE
from ropewalk.testing import Cluster


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (Row("start", 9.5, "s", 10), ("start", "9.5 s", "≤ 10 met")),
        (Row("start", 10.5, "s", 10), ("start", "10.5 s", "≤ 10 MISSED")),
        (Row("memory", 1234, "MiB"), ("memory", "1,234 MiB", "")),
    ],
)
def test_a_row_says_whether_its_bound_is_kept(row: Row, cells: tuple[str, str, str]) -> None:
    assert row.cells() == cells


def test_the_table_names_the_commit_and_the_load() -> None:
    measured = Measured([Row("start", 1, "s", 10)], 0.25)
    head, *lines = markdown(
        measured, topic_count=2_000, partition_count=3, connection_count=10_000
    ).splitlines()
    assert "2,000 topics of 3 partitions, 10,000 connections" in head
    assert "commit" in head
    assert lines[-1] == "| start | 1 s | ≤ 10 met |"


def test_its_clients_are_served(tmp_path: Path) -> None:
    with Cluster() as cluster, subprocess.Popen([sys.executable, "-c", ""]) as process:
        host, _, port = cluster.bootstrap.rpartition(":")
        broker = Broker("small", host, int(port), process, tmp_path, started_at=0.0)
        names = [f"topic-{number}" for number in range(5)]
        create_topics_in(broker, names, partition_count=2, together=2)
        connections = connect_many(broker, 7)
        assert len(connections) == 7
        assert len(all_metadata_ms(broker, topic_count=5, rounds=3)) == 3
        latencies = spread_latency_ms(broker, names, partition_count=2, records_per_second=20, seconds=1)
        assert len(latencies) == 20
        assert latencies == sorted(latencies)
        for connection in connections:
            connection.close()
        with pytest.raises(LoadFailed, match="topic-0 was refused"):
            create_topics_in(broker, ["topic-0"], partition_count=1, together=1)
        with pytest.raises(LoadFailed, match="5 topics are told of, 6 were made"):
            all_metadata_ms(broker, topic_count=6, rounds=1)


def test_a_run_whose_loop_was_held_for_long_fails_unless_it_was_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalls = tmp_path / "stalls"
    monkeypatch.setenv(STALLS_FILE, str(stalls))
    line = '{"pid":1,"at_s":1.0,"late_ms":900,"own_ms":%d,"is_disk":%s,"where":["a.py:1 f"]}\n'
    stalls.write_text(line % (240, "false") + line % (700, "true"))
    check_stalls()
    stalls.write_text(line % (260, "false"))
    with pytest.raises(LoadFailed, match=r"held for 260 ms by a\.py:1 f"):
        check_stalls()
