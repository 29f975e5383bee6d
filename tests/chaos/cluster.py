"""A cluster of real processes, each node to be ended, paused or cut off by itself."""

import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.balancing.haproxy import FrontEnd
from tests.chaos.node import NodeProcess
from tests.chaos.wires import Wires

KAFKA_PORT = 9092
PEER_PORT = 9192
HEALED_WITHIN_S = 90.0
DRAIN_MS = 3_000
"""Of front ends: HAProxy takes two seconds to notice."""
QUIET = {"log_level": 0}
_DECIDES = "ropewalk_controller_active 1"


class ClusterProcesses:
    """`data` has a directory for each node. Without wires all nodes are on the loopback."""

    def __init__(
        self,
        data: Sequence[Path],
        scratch: Path,
        *,
        wires: Wires | None = None,
        etcd: str | None = None,
        settings: tuple[str, ...] = (),
        front_ends: Sequence[FrontEnd] = (),
        programs_say_roles: bool = False,
    ) -> None:
        """`etcd` are the addresses of its members; without it the first node keeps the metadata, unless each node's program says what it does
        and where they are. Where there are front ends, on these ports, the
        nodes with data have no doors for queues."""
        self.has_local_home = etcd is None
        count = len(data)
        hosts = wires.addresses if wires is not None else ["127.0.0.1"] * count
        ports = [(KAFKA_PORT, PEER_PORT)] * count if wires is not None else _free_pairs(count)
        peers = [f"{host}:{peer}" for host, (_, peer) in zip(hosts, ports, strict=True)]
        common = (f"cluster.secret={secrets.token_hex(16)}", *settings)
        if etcd is not None:
            common += ("metadata.home=etcd", f"metadata.etcd.endpoints={etcd}")
        self.nodes: list[NodeProcess] = []
        for node_id in range(count):
            own = scratch / f"node-{node_id}"
            own.mkdir()
            options = ["--node-id", str(node_id), "--peer", peers[node_id], "--http", f"{hosts[node_id]}:0"]
            for seed in peers:
                options += ["--seed", seed]
            roles = ["broker"] if self.has_local_home and node_id > 0 else ["broker", "controller"]
            for role in () if programs_say_roles else roles if front_ends else [*roles, "frontend"]:
                options += ["--role", role]
            self.nodes.append(
                NodeProcess(
                    data[node_id],
                    own,
                    common,
                    address=f"{hosts[node_id]}:{ports[node_id][0]}",
                    options=tuple(options),
                    place=tuple(wires.prefix(node_id)) if wires is not None else (),
                )
            )

        self.front_ends = [
            self._front_end(scratch, count + number, own_ports, common, peers)
            for number, own_ports in enumerate(front_ends)
        ]
        """Nodes without data."""

    @staticmethod
    def _front_end(
        scratch: Path, node_id: int, ports: FrontEnd, common: tuple[str, ...], seeds: Sequence[str]
    ) -> NodeProcess:
        own = scratch / f"front-{node_id}"
        own.mkdir()
        options = f"--node-id {node_id} --peer 127.0.0.1:0 --http 127.0.0.1:{ports.http} --role frontend"
        return NodeProcess(
            own / "data",
            own,
            (*common, f"sqs.listen=127.0.0.1:{ports.sqs}", f"node.drain.ms={DRAIN_MS}"),
            address=f"127.0.0.1:{ports.kafka}",
            options=(*options.split(), *(word for seed in seeds for word in ("--seed", seed))),
        )

    @property
    def _everybody(self) -> list[NodeProcess]:
        return [*self.nodes, *self.front_ends]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def start(self) -> None:
        for node in self._everybody:
            node.begin()
        for node in self._everybody:
            node.wait_until_ready()

    def stop(self) -> list[int]:
        """All at once, in order; their exit codes. Whoever keeps the metadata goes last."""
        return [node.stop() for node in reversed(self._everybody) if node.is_running]

    def kill(self) -> None:
        """Leave nothing running, whatever has happened."""
        for node in self._everybody:
            if node.is_running:
                node.thaw()
                node.kill()

    def controller(self) -> int:
        """The node that decides, once there is exactly one."""
        deadline = time.monotonic() + HEALED_WITHIN_S
        while True:
            running = [number for number, node in enumerate(self.nodes) if node.is_running]
            deciding = [
                number
                for number in running
                if _DECIDES in self.nodes[number].page("/metrics")[1].splitlines()
            ]
            if len(deciding) == 1:
                return deciding[0]
            if time.monotonic() > deadline:
                raise RuntimeError(f"nodes {deciding} decide\n{self.last_words()}")
            time.sleep(0.05)

    def leaders(self, topic: str) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Leader and replicas in sync by partition, as any node that answers knows them."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        found = admin.list_topics(topic, timeout=5).topics[topic]
        return {
            number: (partition.leader, tuple(sorted(partition.isrs)))
            for number, partition in found.partitions.items()
        }

    def wait_until_healed(self, topic: str, partition_count: int) -> float:
        """Until every replica of every partition is in sync; answers how long that took."""
        began = time.monotonic()
        everybody = tuple(range(len(self.nodes)))
        state: object = None
        while time.monotonic() < began + HEALED_WITHIN_S:
            try:
                state = leaders = self.leaders(topic)
            except KafkaException as error:
                state = error
            else:
                if len(leaders) == partition_count and all(
                    leader >= 0 and isr == everybody for leader, isr in leaders.values()
                ):
                    return time.monotonic() - began
            time.sleep(0.05)
        raise RuntimeError(f"not healed in {HEALED_WITHIN_S} s: {state}\n{self.last_words()}")

    def wait_for_new_leaders(self, topic: str, gone: int) -> float:
        """Until nothing is led by `gone` any more; answers how long that took."""
        began = time.monotonic()
        state: object = None
        while time.monotonic() < began + HEALED_WITHIN_S:
            try:
                state = leaders = self.leaders(topic)
            except KafkaException as error:
                state = error
            else:
                if leaders and all(leader not in (gone, -1) for leader, _ in leaders.values()):
                    return time.monotonic() - began
            time.sleep(0.01)
        raise RuntimeError(f"node {gone} still leads after {HEALED_WITHIN_S} s: {state}\n{self.last_words()}")

    def last_words(self) -> str:
        return "\n".join(f"node {number}: {node.last_words()}" for number, node in enumerate(self._everybody))

    def differing_replicas(self, topic: str, partition_count: int) -> list[str]:
        """Of nodes that have stopped: partitions whose bytes are not the same everywhere."""
        differing = []
        for number in range(partition_count):
            contents = {_content(node.data / f"{topic}-{number}") for node in self.nodes}
            if len(contents) > 1:
                sizes = sorted(map(len, contents))
                differing.append(f"{topic}-{number}: {len(contents)} different contents of {sizes} bytes")
        return differing


def _content(directory: Path) -> bytes:
    """All batches, whatever segments they are in."""
    assert directory.is_dir(), f"{directory} is not there"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def _free_pairs(count: int) -> list[tuple[int, int]]:
    """Free now, and outside the range that outgoing connections take theirs from."""
    found: list[int] = []
    port = 21_000 + secrets.randbelow(8_000)
    while len(found) < 2 * count:
        port += 1
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return list(zip(found[::2], found[1::2], strict=True))
