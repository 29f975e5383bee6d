"""`bench/cluster`: three nodes with their metadata in etcd, and thousands of partitions with a replica on each.

It makes the topics, looks at what knowing them costs, tells how soon a change is known everywhere, and kills the node that
decides, again and again: until another one decides, until every partition has a leader, and until a topic can be made. Nodes,
etcd and this program share the machine.
"""

import argparse
import asyncio
import dataclasses
import gc
import json
import os
import random
import signal
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.brokers import Broker, Unavailable, start_ropewalk
from bench.client_load import LoadFailed
from bench.idle_clients import RawConnection, create_topics_in
from bench.node_scale import CREATED_TOGETHER, Measured, Row, commit
from bench.processes import Meter, cpu_seconds, resident_mib
from bench.report import machine
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Snapshot
from ropewalk.metadata.snapshots import encode_snapshot
from ropewalk.node.settings import NODE_SETTINGS
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.wire.messages import describe_cluster, metadata

NODE_COUNT: Final = 3
FAILOVER_SECONDS_MAX: Final = 5.0
_CHANGES: Final = 30
_IDLE_SECONDS: Final = 10.0
_WAIT_SECONDS_MAX: Final = 180.0
_METADATA_VERSION: Final = 12
_DESCRIBE_CLUSTER_VERSION: Final = 2


class Nodes:
    """The nodes as their supervisor names them; one that was started again has another process id."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def pids(self) -> list[int]:
        return [int(pid) for pid in self._ready()["pids"]]

    @property
    def etcd(self) -> list[str]:
        return self._ready()["etcd"]

    def __getitem__(self, node_id: int) -> Broker:
        host, _, port = self._ready()["kafka"][node_id].rpartition(":")
        return dataclasses.replace(self._broker, host=host, port=int(port))

    def _ready(self) -> dict[str, list[str]]:
        document: dict[str, list[str]] = json.loads((self._broker.directory / "ready.json").read_text())
        return document


def measure(*, topic_count: int, partition_count: int, failover_count: int) -> Measured:
    rows: list[Row] = []
    broker = start_ropewalk("group", node_count=NODE_COUNT, etcd=True)
    try:
        nodes = Nodes(broker)
        rows.append(Row("an empty node, memory", _largest_mib(nodes), "MiB"))
        names = [f"cluster-{number:05}" for number in range(topic_count)]
        _say(f"{topic_count} topics of {partition_count} partitions")
        with Meter(broker.pid) as creating:
            create_topics_in(
                broker, names, partition_count=partition_count, together=min(CREATED_TOGETHER, topic_count)
            )
            answered_at = time.perf_counter()
            for node_id in range(NODE_COUNT):
                wait_until(lambda: are_in_sync(nodes[node_id], topic_count))  # noqa: B023
        rows += (
            Row(
                f"create the topics, {CREATED_TOGETHER} with each request",
                answered_at - creating.began_at,
                "s",
            ),
            Row("until every replica is in sync", creating.seconds, "s"),
            Row("CPU of nodes and etcd meanwhile", creating.broker_cpu_seconds, "s"),
            Row("memory of the largest node", _largest_mib(nodes), "MiB"),
        )
        rows += asyncio.run(_metadata_sizes(nodes.etcd))
        _say("changes one by one")
        rows += _changes(nodes)
        rows.append(_idle(nodes))
        meters = [creating]
        failovers = []
        for number in range(failover_count):
            _say(f"the deciding node is killed, {number + 1} of {failover_count}")
            with Meter(broker.pid) as meter:
                failovers.append(_fail_over(nodes, number))
            meters.append(meter)
            wait_until(lambda: are_in_sync(nodes[0], topic_count))
        for title, seconds in zip(_FAILOVER_TITLES, zip(*failovers, strict=True), strict=True):
            rows.append(Row(f"{title}, median", statistics.median(seconds), "s"))
            rows.append(Row(f"{title}, longest of {failover_count}", max(seconds), "s", FAILOVER_SECONDS_MAX))
        return Measured(rows, max(meter.foreign_cores for meter in meters))
    finally:
        broker.stop()


def _idle(nodes: Nodes) -> Row:
    pids = nodes.pids
    before = sum(map(cpu_seconds, pids))
    time.sleep(_IDLE_SECONDS)
    share = (sum(map(cpu_seconds, pids)) - before) / _IDLE_SECONDS / NODE_COUNT
    return Row("idle CPU of a node", 100 * share, "% of a core")


def _changes(nodes: Nodes) -> list[Row]:
    """A topic at a time, made at a node that does not decide: until it is answered, and until every node tells of it."""
    asked = nodes[(deciding_id(nodes[0]) + 1) % NODE_COUNT]
    others = [RawConnection(nodes[node_id]) for node_id in range(NODE_COUNT)]
    answered, known = [], []
    for number in range(_CHANGES):
        name = f"change-{number}"
        began_at = time.perf_counter()
        create_topics_in(asked, [name], partition_count=1, together=1)
        answered.append((time.perf_counter() - began_at) * 1000)
        for connection in others:
            while not _knows(connection, name):
                pass
        known.append((time.perf_counter() - began_at) * 1000)
    for connection in others:
        connection.close()
    return [
        Row("make one topic more, p50", statistics.median(answered), "ms"),
        Row("until every node tells clients of it, p50", statistics.median(known), "ms"),
        Row("until every node tells clients of it, longest", max(known), "ms"),
    ]


_FAILOVER_TITLES: Final = (
    "killed until another node decides",
    "killed until every partition has a leader",
    "killed until a topic has been made",
)


def _fail_over(nodes: Nodes, number: int) -> tuple[float, float, float]:
    killed_id = deciding_id(nodes[0])
    survivor = nodes[(killed_id + 1) % NODE_COUNT]
    began_at = time.perf_counter()
    os.kill(nodes.pids[killed_id], signal.SIGKILL)

    def seconds_until(is_true: Callable[[], bool]) -> float:
        wait_until(is_true)
        return time.perf_counter() - began_at

    decided = seconds_until(lambda: deciding_id(survivor) not in (killed_id, -1))
    led = seconds_until(lambda: are_led(survivor, killed_id))
    made = seconds_until(lambda: _can_make(survivor, f"after-{number}"))
    return decided, led, made


def deciding_id(broker: Broker) -> int:
    connection = RawConnection(broker)
    request = describe_cluster.DescribeClusterRequest(False, include_nodes=True)
    answer = connection.call(describe_cluster.API, _DESCRIBE_CLUSTER_VERSION, request)
    connection.close()
    return answer.deciding_id


def _can_make(broker: Broker, name: str) -> bool:
    """With a replica on those two that are left, in whichever order they are found."""
    try:
        create_topics_in(dataclasses.replace(broker, node_count=2), [name], partition_count=1, together=1)
    except LoadFailed:
        return False
    return True


def are_led(broker: Broker, killed_id: int) -> bool:
    return all(
        partition.leader_id not in (killed_id, -1)
        for topic in _all_topics(broker)
        for partition in topic.partitions
    )


def are_in_sync(broker: Broker, topic_count: int) -> bool:
    topics = _all_topics(broker)
    return len(topics) >= topic_count and all(
        len(partition.isr_nodes) == len(partition.replica_nodes)
        for topic in topics
        for partition in topic.partitions
    )


def _all_topics(broker: Broker) -> tuple[metadata.MetadataResponseTopic, ...]:
    connection = RawConnection(broker)
    answer = connection.call(metadata.API, _METADATA_VERSION, metadata.MetadataRequest(topics=None))
    connection.close()
    return answer.topics


def _knows(connection: RawConnection, name: str) -> bool:
    request = metadata.MetadataRequest(
        topics=(metadata.MetadataRequestTopic(name=name),), allow_auto_topic_creation=False
    )
    return connection.call(metadata.API, _METADATA_VERSION, request).topics[0].error_code == 0


async def _metadata_sizes(urls: list[str]) -> list[Row]:
    """What a node reads from etcd when it starts, as a node does."""
    log = await EtcdMetadataLog.open(
        TcpNetwork(),
        SystemClock(),
        random.Random(),
        Access(parse_members(urls)),
        prefix=str(NODE_SETTINGS["metadata.etcd.prefix"].default),
    )
    tracemalloc.start()
    began_at = time.perf_counter()
    snapshot = await log.snapshot()
    image = Image()
    image.replace(snapshot.facts, snapshot.end_offset)
    for record in await log.tail(snapshot.end_offset) or ():
        image.apply(record)
    seconds = time.perf_counter() - began_at
    log.close()
    del snapshot, log
    gc.collect()
    image_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    encoded = encode_snapshot(Snapshot(0, image.end_offset, tuple(image.facts())))
    return [
        Row("records of metadata", image.end_offset, ""),
        Row("read from etcd and added up, under a memory tracer", seconds, "s"),
        Row("image in memory", image_bytes / 2**20, "MiB"),
        Row("snapshot", len(encoded) / 1e6, "MB"),
    ]


def _largest_mib(nodes: Nodes) -> float:
    return max(map(resident_mib, nodes.pids))


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + _WAIT_SECONDS_MAX
    while True:
        try:
            if is_true():
                return
        except OSError as error:  # a node that has just been started again does not listen yet
            if time.perf_counter() > deadline:
                raise LoadFailed(f"still after {_WAIT_SECONDS_MAX:.0f} s: {error}") from error
        if time.perf_counter() > deadline:
            raise LoadFailed(f"the cluster has not come to rest in {_WAIT_SECONDS_MAX:.0f} s")
        time.sleep(0.02)


def markdown(measured: Measured, *, topic_count: int, partition_count: int) -> str:
    lines = [
        f"{time.strftime('%Y-%m-%d')}, commit {commit()}, {machine()}, `flush=group`; {NODE_COUNT} nodes and three members of "
        f"etcd, {topic_count:,} topics of {partition_count} partitions with {NODE_COUNT} replicas. Other processes used up to "
        f"{measured.foreign_cores:.2f} cores.",
        "",
        "| measure | | wanted |",
        "|---|---|---|",
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in measured.rows]
    return "\n".join(lines) + "\n"


def _say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=3, help="of each topic (3)")
    parser.add_argument("--failovers", type=int, default=3, help="of the node that decides (3)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()
    counts = {"topic_count": arguments.topics, "partition_count": arguments.partitions}
    try:
        measured = measure(**counts, failover_count=arguments.failovers)
    except (Unavailable, LoadFailed, OSError) as error:
        print(f"bench/cluster: {error}", file=sys.stderr)
        return 1
    table = markdown(measured, **counts)
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
