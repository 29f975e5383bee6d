"""A cluster of real processes that grows, shrinks and has a node replaced, while clients write and read.

One scene, since starting a cluster takes longer than what is done to it. It ends with the same questions as all others: is
everything acknowledged where it was, is nothing there twice, and are all replicas the same bytes.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.chaos.cluster import QUIET, ClusterProcesses
from tests.chaos.load import TOPIC, Load
from tests.chaos.scene import Scene, scene

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

WITHIN_S = 90.0
NEWCOMER = 3
PARTITIONS_MORE = 8


def test_a_cluster_grows_shrinks_and_has_a_node_replaced_under_load() -> None:
    with scene(spare_count=1, settings=("partitions.auto.sustained.ms=1000",)) as playing:
        playing.load.make_topic("more", PARTITIONS_MORE)
        with steadily(playing.load):
            add_a_node(playing)
            remove_it(playing)
            replace_a_disk(playing)
        let_a_topic_grow(playing.cluster)
    assert playing.violations == []


@contextmanager
def steadily(load: Load) -> Iterator[None]:
    """A few hundred records a second, whatever happens meanwhile."""
    is_over = threading.Event()

    def grant() -> None:
        while not is_over.wait(0.05):
            load.grant(10)

    pace = threading.Thread(target=grant)
    pace.start()
    try:
        yield
    finally:
        is_over.set()
        pace.join()


def go_on(load: Load) -> None:
    """Records that are sent from here on are acknowledged."""
    load.wait_for(100, within_s=WITHIN_S)


def add_a_node(playing: Scene) -> None:
    """It takes its share: of 36 replicas 9, give or take what moving one more would not even out."""
    cluster = playing.cluster
    playing.spares[0].start()
    assert not is_holding_our_topics(cluster, NEWCOMER), "nothing is moved unasked"
    ropewalk(cluster, "cluster", "add", str(NEWCOMER))
    assert replicas(cluster)[NEWCOMER] >= 6
    go_on(playing.load)


def remove_it(playing: Scene) -> None:
    """It holds nothing when it is let go, and is forgotten when it has gone."""
    cluster, (newcomer,) = playing.cluster, playing.spares
    removal = json.loads(ropewalk(cluster, "cluster", "remove", str(NEWCOMER), "-o", "json"))
    assert removal == {"node": NEWCOMER, "status": "drained", "partitions": 0}
    assert replicas(cluster)[NEWCOMER] == 0
    assert newcomer.stop() == 0
    ropewalk(cluster, "cluster", "remove", str(NEWCOMER), "--wait")
    assert set(replicas(cluster)) == {0, 1, 2}
    go_on(playing.load)
    playing.wait_until_healed()


def replace_a_disk(playing: Scene) -> None:
    """The node comes back with nothing, and has everything again when it counts."""
    node = playing.cluster.nodes[1]
    node.kill()
    shutil.rmtree(node.data)
    node.start()
    playing.wait_until_healed()
    go_on(playing.load)


def let_a_topic_grow(cluster: ClusterProcesses) -> None:
    settings = ("-c", "partitions.auto.max=4", "-c", "partitions.auto.byte.rate=1000")
    ropewalk(cluster, "topic", "create", "grows", "-p", "1", "--replicas", "3", *settings)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    until = time.monotonic() + WITHIN_S
    while len(admin.list_topics("grows", timeout=10).topics["grows"].partitions) < 4:
        assert time.monotonic() < until, "it has not grown"
        producer.produce("grows", bytes(5_000))
        assert producer.flush(WITHIN_S) == 0
    stranger = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})  # who never knew it smaller
    stranger.produce("grows", b"to the last of them", partition=3)
    assert stranger.flush(WITHIN_S) == 0


def is_holding_our_topics(cluster: ClusterProcesses, node: int) -> bool:
    """What nodes write for themselves is left out: such a topic is made when it is first needed, on whoever is there by then."""
    known = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET}).list_topics(timeout=WITHIN_S)
    assert node in known.brokers
    return any(
        node in partition.replicas
        for topic in (TOPIC, "more")
        for partition in known.topics[topic].partitions.values()
    )


def replicas(cluster: ClusterProcesses) -> dict[int, int]:
    """How many partitions each node holds."""
    nodes = json.loads(ropewalk(cluster, "cluster", "nodes", "-o", "json"))
    return {each["node"]: each["replicas"] for each in nodes}


def ropewalk(cluster: ClusterProcesses, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ropewalk", *arguments, "-b", cluster.bootstrap],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        env={name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")},
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout
