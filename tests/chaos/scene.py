"""A cluster of real processes with load on it, and everything that can be done to it, from start to last check."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.cluster import ClusterProcesses
from tests.chaos.etcd import EtcdProcesses
from tests.chaos.load import PARTITION_COUNT, TOPIC, Load
from tests.chaos.mounts import LossyMount, SmallMount
from tests.chaos.node import NodeProcess
from tests.chaos.rounds import complaints
from tests.chaos.wires import Wires


@dataclass(slots=True)
class Scene:
    """`violations` is complete when the scene has ended."""

    cluster: ClusterProcesses
    load: Load
    wires: Wires | None
    mounts: list[LossyMount]
    members: EtcdProcesses | None
    spares: list[NodeProcess]
    """Nodes that belong to the cluster and have not been started yet. One that is to be there at the end goes into `cluster.nodes`."""
    small: list[SmallMount] = field(default_factory=list)
    """The nodes' disks, where they were to be small."""
    violations: list[str] = field(default_factory=list)

    def wait_until_healed(self) -> float:
        """Until every replica is in sync; answers how long that took."""
        return self.cluster.wait_until_healed(TOPIC, PARTITION_COUNT)


@contextmanager
def scene(
    *,
    node_count: int = 3,
    spare_count: int = 0,
    with_wires: bool = False,
    with_mounts: bool = False,
    with_etcd: bool = False,
    disk_bytes: int = 0,
    seed: int = 0,
    settings: tuple[str, ...] = (),
) -> Iterator[Scene]:
    """Everything is in sync and the load runs inside; at the end all is read back, stopped and compared.

    What is asked for (root, FUSE, etcd) must be there. In memory where possible: power cuts are modelled, and real disks
    would only make it slow. With `disk_bytes` each node has an ext4 of that size.
    """
    in_memory = Path("/dev/shm")
    with ExitStack() as stack:
        place = in_memory if in_memory.is_dir() else None
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-", dir=place)))
        wires = stack.enter_context(Wires(node_count)) if with_wires else None
        mounts: list[LossyMount] = []
        for number in range(node_count if with_mounts else 0):
            own = scratch / f"disk-{number}"
            own.mkdir()
            mounts.append(stack.enter_context(LossyMount(own, seed + number)))
        small: list[SmallMount] = []
        for number in range(node_count if disk_bytes else 0):
            own = scratch / f"small-{number}"
            own.mkdir()
            small.append(stack.enter_context(SmallMount(own, disk_bytes)))
        members = None
        if with_etcd:
            host = wires.outside if wires is not None else "127.0.0.1"
            members = stack.enter_context(EtcdProcesses(scratch / "etcd", host))
        data = [
            (mounts[number].path if mounts else small[number].path if small else scratch) / f"data-{number}"
            for number in range(node_count + spare_count)
        ]
        endpoints = members.endpoints if members is not None else None
        cluster = ClusterProcesses(data, scratch, wires=wires, etcd=endpoints, settings=settings)
        stack.callback(cluster.kill)
        spares, cluster.nodes[node_count:] = cluster.nodes[node_count:], []
        for spare in spares:
            stack.callback(_end, spare)
        load = Load(cluster.bootstrap, replication_factor=node_count)
        playing = Scene(cluster, load, wires, mounts, members, spares, small)
        try:
            cluster.start()
            load.make_topic(TOPIC, PARTITION_COUNT)
            playing.wait_until_healed()
            with load.running():
                yield playing
            load.check()
            playing.wait_until_healed()
            exit_codes = cluster.stop()
        except Exception as error:
            error.add_note(cluster.last_words())
            raise
        playing.violations += complaints(load)
        playing.violations += [
            f"a node ended with {code} when asked to stop" for code in exit_codes if code != 0
        ]
        playing.violations += cluster.differing_replicas(TOPIC, PARTITION_COUNT)
        playing.violations += [complaint for node in cluster.nodes for complaint in node.held_loops()]


def _end(node: NodeProcess) -> None:
    if node.is_running:
        node.kill()
