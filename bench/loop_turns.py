"""`bench/turns`: how long one client, or one change of the cluster, keeps everybody else waiting.

A neighbour asks a node for its versions every 20 ms, alone and beside a client that asks for Metadata of all topics without end.
Then one of three nodes is killed, of which each holds a replica of every partition: how long the loop of any other was held at a time,
while it was fenced, while others led its partitions, and while it came back. What the machine took from a node for want of a processor
does not count (`runtime/loop_watch.py`).
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.brokers import Broker, Unavailable, start_ropewalk
from bench.client_load import LoadFailed
from bench.cluster_scale import Nodes, are_in_sync, are_led, deciding_id, wait_until
from bench.idle_clients import RawConnection, create_topics_in
from bench.node_scale import CREATED_TOGETHER, Measured, Row, commit
from bench.processes import Meter
from bench.report import machine
from ropewalk.runtime.loop_watch import STALLS_FILE, Stall, read_stalls
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import encode_request_header
from ropewalk.wire.messages import api_versions, metadata

NEIGHBOUR_P99_MS_MAX: Final = 20.0
HELD_MS_MAX: Final = 50.0
_PAUSE_S: Final = 0.02
_METADATA_VERSION: Final = 12
_NODE_COUNT: Final = 3
_TOPICS: Final = 2

_GREEDY: Final = """
import socket, sys, threading
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
requests = bytes.fromhex(sys.argv[3]) * 2000
def take():
    while connection.recv(1 << 20):
        pass
threading.Thread(target=take, daemon=True).start()
while True:
    connection.sendall(requests)
"""


def measure(*, partition_count: int, seconds: float) -> Measured:
    with Meter(os.getpid()) as meter:
        rows = [*_neighbour(seconds), *_fencing(partition_count)]
    return Measured(rows, meter.foreign_cores)


def _neighbour(seconds: float) -> list[Row]:
    broker = start_ropewalk("os")
    try:
        _say("500 topics of 4 partitions")
        names = [f"turns-{number:03}" for number in range(500)]
        create_topics_in(broker, names, partition_count=4, together=CREATED_TOGETHER)
        _say("a neighbour, alone")
        alone = _asked(broker, seconds)
        _say("a neighbour, beside a client that asks without end")
        header = encode_request_header(metadata.API, _METADATA_VERSION, 1, None)
        body = metadata.API.encode_request(_METADATA_VERSION, metadata.MetadataRequest(None))
        request = b"".join(frame([header, *body]))
        greedy = subprocess.Popen(
            [sys.executable, "-c", _GREEDY, broker.host, str(broker.port), request.hex()]
        )
        try:
            beside = _asked(broker, seconds)
        finally:
            greedy.kill()
            greedy.wait()
    finally:
        broker.stop()
    return [
        Row("ApiVersions of a neighbour, alone, p99", _p99(alone), "ms"),
        Row("beside Metadata of 2,000 partitions without end, p50", sorted(beside)[len(beside) // 2], "ms"),
        Row("the same, p99", _p99(beside), "ms", NEIGHBOUR_P99_MS_MAX),
        Row("the same, longest", max(beside), "ms"),
    ]


def _asked(broker: Broker, seconds: float) -> list[float]:
    connection = RawConnection(broker)
    request = api_versions.ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    found: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(found) < 10:
        began = time.perf_counter()
        connection.call(api_versions.API, 3, request)
        found.append((time.perf_counter() - began) * 1000)
        time.sleep(_PAUSE_S)
    connection.close()
    return found


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def _fencing(partition_count: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        stalls = Path(directory) / "stalls"
        os.environ[STALLS_FILE] = str(stalls)
        try:
            broker = start_ropewalk("os", settings={"storage": "memory"}, node_count=_NODE_COUNT)
        finally:
            del os.environ[STALLS_FILE]
        try:
            return _fenced(broker, stalls, partition_count)
        finally:
            broker.stop()


def _fenced(broker: Broker, stalls: Path, partition_count: int) -> list[Row]:
    nodes = Nodes(broker)
    names = [f"fenced-{number}" for number in range(_TOPICS)]
    _say(f"{_TOPICS} topics of {partition_count} partitions, {_NODE_COUNT} replicas each")
    create_topics_in(broker, names, partition_count=partition_count, together=1)
    wait_until(lambda: all(are_in_sync(nodes[node_id], _TOPICS) for node_id in range(_NODE_COUNT)))
    made = read_stalls(stalls)
    killed_id = (deciding_id(nodes[0]) + 1) % _NODE_COUNT
    survivors = [nodes[node_id] for node_id in range(_NODE_COUNT) if node_id != killed_id]
    _say("a node is killed")
    began = time.perf_counter()
    os.kill(nodes.pids[killed_id], signal.SIGKILL)
    wait_until(lambda: all(are_led(survivor, killed_id) for survivor in survivors))
    led_s = time.perf_counter() - began
    time.sleep(3)  # the last followers ask their leaders
    fenced = read_stalls(stalls)[len(made) :]
    for stall in sorted(fenced, key=lambda stall: -stall.own_ms)[:5]:
        _say(f"{stall.own_ms} ms of {stall.late_ms}: {' < '.join(stall.where)}")
    return [
        Row("held while the topics were made, longest", _longest(made), "ms"),
        Row(f"a node of {_TOPICS * partition_count:,} replicas killed until all are led", led_s, "s"),
        Row("held meanwhile, longest", _longest(fenced), "ms", HELD_MS_MAX),
        Row("the same with what the machine took", max((stall.late_ms for stall in fenced), default=0), "ms"),
    ]


def _longest(stalls: list[Stall]) -> float:
    return max((stall.own_ms for stall in stalls), default=0.0)


def markdown(measured: Measured, *, partition_count: int) -> str:
    lines = [
        f"{time.strftime('%Y-%m-%d')}, commit {commit()}, {machine()}; fenced: {_NODE_COUNT} nodes, {_TOPICS} topics of "
        f"{partition_count:,} partitions with {_NODE_COUNT} replicas in memory. Other processes used up to "
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
        prog="bench/turns", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=10_000, help="of each of two topics (10000)")
    parser.add_argument("--seconds", type=float, default=10.0, help="that the neighbour asks (10)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()
    try:
        measured = measure(partition_count=arguments.partitions, seconds=arguments.seconds)
    except (Unavailable, LoadFailed, OSError) as error:
        print(f"bench/turns: {error}", file=sys.stderr)
        return 1
    table = markdown(measured, partition_count=arguments.partitions)
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
