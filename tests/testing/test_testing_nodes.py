"""Several nodes in the test kit: any of them may be killed, cut off or hang, and what was acknowledged is there."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from ropewalk.testing import Cluster

pytestmark = pytest.mark.compat

PATIENCE_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, node_session_timeout_ms=1_500) as cluster:
        yield cluster


def write(cluster: Cluster, topic: str, *values: bytes) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, "enable.idempotence": True}
    )
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def test_a_topic_has_a_replica_on_each_and_outlives_its_leader(cluster: Cluster) -> None:
    topic = cluster.create_topic("killed")
    write(cluster, topic, b"before")
    killed = cluster.kill_leader(topic)
    assert killed not in cluster.running
    write(cluster, topic, b"after")
    assert cluster.leader(topic) != killed
    assert [each.value for each in cluster.wait_for_records(topic, 2)] == [b"before", b"after"]
    cluster.restart(killed)
    assert cluster.running == [0, 1, 2]


def test_who_is_cut_off_loses_what_it_leads_and_comes_back(cluster: Cluster) -> None:
    topic = cluster.create_topic("cut")
    write(cluster, topic, b"before")
    led = cluster.leader(topic)
    cluster.cut(led)
    assert cluster.running == [0, 1, 2]
    while cluster.leader(topic) == led:
        pass  # the controller has not missed it yet
    cluster.heal(led)
    write(cluster, topic, b"after")
    assert [each.value for each in cluster.wait_for_records(topic, 2)] == [b"before", b"after"]
    cluster.kill(cluster.leader(topic))
    assert [each.value for each in cluster.wait_for_records(topic, 2)] == [b"before", b"after"]
    cluster.restart()
    assert cluster.running == [0, 1, 2]


def test_one_that_hangs_keeps_nobody_from_the_others(cluster: Cluster) -> None:
    topic = cluster.create_topic("frozen", replicas=1)
    others = [node for node in cluster.running if node != cluster.leader(topic)]
    cluster.freeze(others[0])
    write(cluster, topic, b"meanwhile")
    cluster.thaw(others[0])
    assert [each.value for each in cluster.wait_for_records(topic, 1)] == [b"meanwhile"]


def test_records_that_do_not_come_are_said_to_be_missing(cluster: Cluster) -> None:
    topic = cluster.create_topic("short", replicas=1)
    write(cluster, topic, b"one")
    with pytest.raises(TimeoutError, match=f"{topic} had 1 of 2 records after 0.1 s"):
        cluster.wait_for_records(topic, 2, seconds=0.1)


def test_of_several_nodes_one_is_to_be_named(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="say which, from 0 to 2"):
        cluster.kill()
    with pytest.raises(ValueError, match="no node 3"):
        cluster.freeze(3)
    with pytest.raises(ValueError, match="nodes=0"):
        Cluster(nodes=0)
    with pytest.raises(ValueError, match="1 partitions, and no 5"):
        cluster.leader(cluster.create_topic("one", replicas=1), 5)
    assert cluster.running == [0, 1, 2]


def test_several_run_on_the_callers_loop_and_leave_nothing_on_it() -> None:
    async def main() -> None:
        async with Cluster(nodes=2) as cluster:
            topic = await cluster.create_topic("orders")
            assert await cluster.leader(topic) in cluster.running
            assert await cluster.wait_for_records(topic, 0) == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_directory_keeps_what_all_of_them_hold(tmp_path: Path) -> None:
    with Cluster(nodes=2, data=tmp_path) as cluster:
        write(cluster, cluster.create_topic("kept"), b"value")
    with Cluster(nodes=2, data=tmp_path) as cluster:
        assert [each.value for each in cluster.wait_for_records("kept", 1)] == [b"value"]


def test_one_node_waits_for_records_and_leads_everything() -> None:
    with Cluster() as cluster:
        topic = cluster.create_topic("orders")
        assert cluster.leader(topic) == 0
        write(cluster, topic, b"one")
        assert [each.value for each in cluster.wait_for_records(topic, 1)] == [b"one"]
        assert cluster.kill_leader(topic) == 0
        assert cluster.running == []
