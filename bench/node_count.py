"""`bench/nodes`: what a second node adds, each pinned to a core of its own.

Partitions are independent: each node leads its own topic, without replicas elsewhere, and a raw client of its own writes to it. On a
machine with two cores the clients share them with the nodes, so the clients' share of the CPU is told too.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec import Struct

from bench import client_load, raw_load
from bench.brokers import Broker, Unavailable, start_ropewalk
from bench.processes import Meter
from bench.report import figure, machine

PARTITION_COUNT: Final = 6
BATCH_BYTES: Final = 64 * 1024
CONNECTIONS: Final = 4
DEPTH: Final = 8


class Sample(Struct, frozen=True):
    bytes_per_second: float
    cpu_seconds_per_gb: float
    client_share: float
    """Of all CPU time that clients and nodes took together."""


def measure(node_count: int, *, flush: str, repetitions: int, seconds: float) -> list[Sample]:
    broker = start_ropewalk(flush, node_count=node_count)
    try:
        nodes = _pinned(broker)
        return [_load(broker, nodes, seconds) for _ in range(repetitions)]
    finally:
        broker.stop()


def _pinned(broker: Broker) -> list[Broker]:
    """The nodes as brokers of their own; node I stays on core I from here on."""
    ready = json.loads((broker.directory / "ready.json").read_text())
    nodes = []
    for node_id, (address, pid) in enumerate(zip(ready["kafka"], ready["pids"], strict=True)):
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {node_id})
        host, _, port = address.rpartition(":")
        directory = broker.directory / f"client-{node_id}"
        directory.mkdir()
        nodes.append(
            dataclasses.replace(broker, host=host, port=int(port), directory=directory, node_count=1)
        )
    return nodes


def _load(broker: Broker, nodes: Sequence[Broker], seconds: float) -> Sample:
    topics = [_topic_on(broker, node_id) for node_id in range(len(nodes))]

    def produce(node: Broker, topic: str) -> raw_load.RawProduced:
        return raw_load.produce(
            node,
            topic,
            partition_count=PARTITION_COUNT,
            connection_count=CONNECTIONS,
            depth=DEPTH,
            seconds=seconds,
            batch_bytes=BATCH_BYTES,
        )

    own_before = sum(os.times()[:4])
    with ThreadPoolExecutor(len(nodes)) as threads, Meter(broker.pid) as meter:
        results = list(threads.map(produce, nodes, topics))
    own_s = sum(os.times()[:4]) - own_before
    for topic in topics:
        client_load.delete_topic(broker, topic)
    moved_gb = sum(result.record_count for result in results) * 1024 / 1e9
    return Sample(
        sum(result.bytes_per_second for result in results),
        meter.broker_cpu_seconds / moved_gb,
        own_s / (own_s + meter.broker_cpu_seconds),
    )


def _topic_on(broker: Broker, node_id: int) -> str:
    name = f"bench-node-{node_id}-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})
    topic = NewTopic(name, PARTITION_COUNT, replica_assignment=[[node_id]] * PARTITION_COUNT)
    admin.create_topics([topic])[name].result(60)
    client_load.wait_until_led(broker, name, PARTITION_COUNT)
    return name


def markdown(found: dict[int, list[Sample]], flush: str) -> str:
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}, `flush={flush}`, raw client, records of 1 KiB in batches of "
        f"{BATCH_BYTES // 1024} KiB, {PARTITION_COUNT} partitions on each node, no replicas. Median [least – most].",
        "",
        "| nodes | MB/s | nodes' CPU s/GB | clients' share of the CPU |",
        "|---|---|---|---|",
    ]
    for node_count, samples in found.items():
        cells = (
            str(node_count),
            _spread([sample.bytes_per_second / 1e6 for sample in samples]),
            _spread([sample.cpu_seconds_per_gb for sample in samples]),
            _spread([sample.client_share for sample in samples]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    return f"{figure(statistics.median(values))} [{figure(min(values))} – {figure(max(values))}]"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/nodes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flush", choices=["os", "group"], default="os")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    try:
        found = {
            count: measure(
                count, flush=arguments.flush, repetitions=arguments.repetitions, seconds=arguments.seconds
            )
            for count in (1, 2)
        }
    except (Unavailable, client_load.LoadFailed, KafkaException) as error:
        print(f"bench/nodes: {error}", file=sys.stderr)
        return 1
    print(markdown(found, arguments.flush))
    return 0


if __name__ == "__main__":
    sys.exit(main())
