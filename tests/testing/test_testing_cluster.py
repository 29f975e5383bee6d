"""The test kit as its users see it: real clients against a node in this process, through everything it can be told."""

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from urllib.request import urlopen

import aiokafka
import confluent_kafka
import pytest
import uvloop

from ropewalk.base.errors import DirectoryInUse, InvalidSetting
from ropewalk.client.administration.admin import Admin
from ropewalk.client.calls.client import Client as BrokerClient
from ropewalk.client.calls.list_offsets import ListedOffset
from ropewalk.client.errors import RemoteError
from ropewalk.runtime.memory_disk import MemoryFile
from ropewalk.testing import AsyncCluster, Cluster, Namespace
from ropewalk.testing.member import NotRunning
from tests.compat.clients import Aiokafka, Client, Confluent, KafkaPython, Message

pytestmark = pytest.mark.compat

PATIENCE_S = 20
MOMENT_S = 0.2
"""Long enough for a node that answers to have answered."""

Run = Callable[[Coroutine[object, object, None]], None]
LOOPS = {
    "asyncio": asyncio.run,
    "uvloop": lambda main: asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main),
}
on_both_loops = pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS)


def producer_to(bootstrap: str) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "log_level": 0,  # losing the node is what these tests are about
        }
    )


def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic)]


@pytest.mark.parametrize("client", [Confluent, Aiokafka, KafkaPython], ids=lambda client: client.name)
def test_a_client_writes_and_reads_as_on_any_broker(client: Callable[[str], Client]) -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders")
        connected = client(cluster.bootstrap)
        connected.produce("orders", [Message(b"one", b"key", (("kind", b"test"),)), Message(b"two")])
        assert [m.value for m in connected.consume("orders", offset=0, count=2)] == [b"one", b"two"]
        first, second = cluster.records("orders")
    assert (first.offset, first.key, first.value, first.headers) == (0, b"key", b"one", (("kind", b"test"),))
    assert (second.offset, second.value) == (1, b"two")


@on_both_loops
def test_it_runs_on_the_callers_loop_and_does_all_that_the_blocking_one_does(run: Run) -> None:
    async def main() -> None:
        async with Cluster() as cluster:
            await cluster.create_topic("orders")
            async with aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
                await producer.send_and_wait("orders", b"one")
                cluster.freeze()
                frozen = asyncio.ensure_future(producer.send_and_wait("orders", b"two"))
                assert not (await asyncio.wait([frozen], timeout=MOMENT_S))[0]
                cluster.thaw()
                await frozen
                await cluster.restart()
                await producer.send_and_wait("orders", b"three")
                await cluster.kill()
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection(*cluster.bootstrap.split(":"))
                await cluster.restart()
                await producer.send_and_wait("orders", b"four")
            assert [r.value for r in await cluster.records("orders")] == [b"one", b"two", b"three", b"four"]
            await cluster.delete_topics(["orders"])
            assert await cluster.topics() == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


# Two cells of four: librdkafka takes a second or two to come back, whatever it is told.
@pytest.mark.parametrize(("how", "storage"), [("restart", "memory"), ("kill", "a directory")])
def test_what_was_acknowledged_outlives_the_node_and_its_clients_come_back(
    how: str, storage: str, tmp_path: Path
) -> None:
    with Cluster(data=None if storage == "memory" else tmp_path) as cluster:
        producer = producer_to(cluster.bootstrap)
        cluster.create_topic("orders")
        producer.produce("orders", b"before")
        assert producer.flush(PATIENCE_S) == 0
        address = cluster.bootstrap
        if how == "kill":
            cluster.kill()
        else:
            cluster.restart()
        producer.produce("orders", b"meanwhile")
        if how == "kill":
            assert producer.flush(MOMENT_S) == 1
            cluster.restart()
        assert producer.flush(PATIENCE_S) == 0
        assert cluster.bootstrap == address
        assert values(cluster, "orders") == [b"before", b"meanwhile"]


def test_a_killed_node_claims_no_clean_stop_and_one_that_was_left_does(tmp_path: Path) -> None:
    marker = tmp_path / "clean-shutdown"
    with Cluster(data=tmp_path) as cluster:
        cluster.kill()
        assert not marker.exists()
        cluster.restart()
    assert marker.exists()


def test_a_killed_cluster_can_be_left() -> None:
    with Cluster() as cluster:
        cluster.kill()
        for ask in (cluster.kill, cluster.freeze, cluster.topics):
            with pytest.raises(NotRunning, match="restart"):
                ask()


def test_a_directory_outlives_its_cluster_and_has_one_at_a_time(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as cluster:
        cluster.create_topic("orders")
        with pytest.raises(DirectoryInUse), Cluster(data=tmp_path):
            pass
    with Cluster(data=str(tmp_path)) as cluster:
        assert cluster.topics() == ["orders"]


def test_a_frozen_node_is_silent_until_it_is_thawed_and_forgets_nothing() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders")
        producer = producer_to(cluster.bootstrap)
        producer.produce("orders", b"before")
        assert producer.flush(PATIENCE_S) == 0
        cluster.freeze()
        producer.produce("orders", b"meanwhile")
        host, port = cluster.bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=MOMENT_S) as stranger:
            stranger.sendall(bytes.fromhex("0000000a 0012 0000 00000007 ffff"))  # ApiVersions v0
            with pytest.raises(TimeoutError):
                stranger.recv(8)
            assert producer.flush(0) == 1
            cluster.thaw()
            stranger.settimeout(PATIENCE_S)
            assert stranger.recv(8)[4:] == bytes.fromhex("00000007")
        assert producer.flush(PATIENCE_S) == 0
        assert values(cluster, "orders") == [b"before", b"meanwhile"]


@pytest.mark.parametrize("then", ["leave", "restart", "kill"])
def test_a_frozen_node_can_be_ended(then: str) -> None:
    with Cluster() as cluster:
        cluster.freeze()
        if then != "leave":
            getattr(cluster, then)()
            cluster.restart()
            assert cluster.topics() == []


LOOKING_OFTEN = {"log.retention.check.interval.ms": 20, "offsets.retention.check.interval.ms": 20}


def commit(bootstrap: str, group: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def start_offset(bootstrap: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "looking"})
    start: int = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), PATIENCE_S)[0]
    consumer.close()
    return start


@pytest.mark.timeout(60)
def test_records_that_are_removed_while_they_are_read_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their age, or because somebody deletes them: the topic begins later then."""
    looked: list[dict[int, ListedOffset]] = []

    async def list_and_remove(client: BrokerClient, topic: str, queries: Mapping[int, int]) -> object:
        found = await list_offsets(client, topic, queries)
        looked.append(found)
        if len(looked) == 2:  # where it begins is known, and where it ends
            await Admin(client).delete_records(topic, {0: 3})
        return found

    list_offsets = BrokerClient.list_offsets
    monkeypatch.setattr(BrokerClient, "list_offsets", list_and_remove)
    with Cluster() as cluster:
        cluster.create_topic("orders")
        Confluent(cluster.bootstrap).produce("orders", [Message(b"%d" % number) for number in range(5)])
        assert [record.value for record in cluster.records("orders")] == [b"3", b"4"]
        assert [each[0].offset for each in looked] == [0, 5, 3, 5]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("restarts", [False, True], ids=["while it runs", "and it starts again"])
def test_time_passes_for_the_node_when_it_is_told_so(restarts: bool) -> None:
    with Cluster(settings=LOOKING_OFTEN) as cluster:
        for topic, retention_ms in (("orders", -1), ("short", 86_400_000), ("long", 500 * 86_400_000)):
            cluster.create_topic(topic, retention_ms=retention_ms)
            Confluent(cluster.bootstrap).produce(topic, [Message(b"x")])
        commit(cluster.bootstrap, "billing")
        cluster.advance(hours=1)
        Confluent(cluster.bootstrap).produce("orders", [Message(b"y")])
        assert cluster.groups() == ["billing"]
        assert [len(cluster.records(topic)) for topic in ("orders", "short", "long")] == [2, 1, 1]
        Namespace(cluster).advance(days=400)  # as the fixture does
        if restarts:
            cluster.restart()
        while not start_offset(cluster.bootstrap, "short") or cluster.groups():
            pass  # the look comes by itself; the test's own time limit ends one that does not
        assert [len(cluster.records(topic)) for topic in ("orders", "long")] == [2, 1]
        commit(cluster.bootstrap, "billing")
        Confluent(cluster.bootstrap).produce("orders", [Message(b"z")])
        assert values(cluster, "orders") == [b"x", b"y", b"z"]
        assert cluster.groups() == ["billing"]


def test_time_passes_forwards_alone() -> None:
    with Cluster() as cluster, pytest.raises(ValueError, match="not back"):
        cluster.advance(hours=-1)


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(Cluster(settings={"num.partitions": 3}), id="a mapping"),
        pytest.param(Cluster(num_partitions=3), id="a keyword"),
        pytest.param(
            Cluster(settings={"num.partitions": 7}, num_partitions=3), id="a keyword over a mapping"
        ),
    ],
)
def test_settings_have_kafkas_names(cluster: Cluster) -> None:
    with cluster:
        producer = producer_to(cluster.bootstrap)
        producer.produce("made-by-itself", b"x", partition=2)
        assert producer.flush(PATIENCE_S) == 0
        assert values(cluster, "made-by-itself") == [b"x"]
        assert [r.value for r in cluster.records("made-by-itself", partition=2)] == [b"x"]
        assert cluster.records("made-by-itself", partition=1) == []


def test_a_clusters_memory_keeps_records_and_storage_memory_does_not() -> None:
    with Cluster(storage="memory") as cluster:
        cluster.create_topic("orders")
        Confluent(cluster.bootstrap).produce("orders", [Message(b"x")])
        cluster.restart()
        assert (cluster.topics(), cluster.records("orders")) == (["orders"], [])


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("num.partitons", 3, "did you mean num.partitions"),
        ("num.partitions", "many", "num.partitions"),
        ("kafka.listen", "0.0.0.0:9092", "a free port"),
        ("node.data", "/somewhere", "data="),
    ],
)
def test_a_setting_that_would_not_hold_is_refused(setting: str, value: str | int, reason: str) -> None:
    with pytest.raises(InvalidSetting, match=reason), Cluster(settings={setting: value}):
        pass


def test_records_are_all_there_is_in_order_from_wherever_each_partition_begins() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=3, retention_ms=-1)
        producer = producer_to(cluster.bootstrap)
        for number in range(3000):  # more than one fetch brings
            producer.produce("orders", b"%d" % number + bytes(1500), partition=number % 2)
        assert producer.flush(PATIENCE_S) == 0
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap})
        cut = confluent_kafka.TopicPartition("orders", 0, 10)
        admin.delete_records([cut])[cut].result(PATIENCE_S)
        found = [int((record.value or b"").rstrip(b"\0")) for record in cluster.records("orders")]
    assert found == [*range(20, 3000, 2), *range(1, 3000, 2)]


def test_the_nodes_refusals_are_raised() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders")
        with pytest.raises(RemoteError, match="TOPIC_ALREADY_EXISTS"):
            cluster.create_topic("orders")
        with pytest.raises(RemoteError, match="INVALID_CONFIG"):
            cluster.create_topic("invoices", cleanup_policy="burn")
        with pytest.raises(RemoteError, match="UNKNOWN_TOPIC"):
            cluster.delete_topics(["nothing"])


def test_a_node_that_failed_is_reported_when_the_cluster_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: MemoryFile) -> None:
        raise OSError(errno.EIO, "the disk has failed")

    def use() -> None:
        with Cluster() as cluster:
            cluster.create_topic("orders")
            monkeypatch.setattr(MemoryFile, "sync", fail)
            producer = producer_to(cluster.bootstrap)
            producer.produce("orders", b"lost")
            assert producer.flush(MOMENT_S) == 1

    with pytest.raises(OSError, match="the disk has failed"):
        use()


@pytest.mark.parametrize("cluster", [Cluster(), AsyncCluster()], ids=["blocking", "awaiting"])
def test_a_cluster_that_was_not_entered_says_so(cluster: Cluster | AsyncCluster) -> None:
    with pytest.raises(NotRunning, match="enter"):
        cluster.bootstrap  # noqa: B018  asking is the test
    with pytest.raises(NotRunning, match="enter"):
        cluster.freeze()


@pytest.mark.parametrize("storage", ["memory", "a directory"])
def test_room_is_kept_back_on_a_disk_and_never_in_memory(storage: str, tmp_path: Path) -> None:
    data = tmp_path if storage == "a directory" else None
    with Cluster(data=data) as cluster, urlopen(f"{cluster.http}/metrics") as page:
        lines = page.read().decode().splitlines()
    (kept_bytes,) = (line.split()[1] for line in lines if line.startswith("ropewalk_disk_reserve_bytes"))
    assert (float(kept_bytes) > 0) == (storage == "a directory")


def test_metrics_and_health_are_at_hand_and_stay_there() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders")
        address = cluster.http
        with urlopen(f"{address}/readyz") as page:
            assert page.status == 200
        cluster.restart()
        assert cluster.http == address
        with urlopen(f"{address}/metrics") as page:
            assert b'kafka_topic_partitions{topic="orders"} 1' in page.read()
