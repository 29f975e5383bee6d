"""Whether the cluster wants another node, and why.

It is a signal for whoever starts nodes, a person or a program, and nothing here acts on it. A reason must have been there for a
while before it is told, so that one busy minute starts no node.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import SCALE_SUSTAINED_MS
from ropewalk.controller.elections import all_partitions
from ropewalk.metadata.image import Image
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.wire.peer.node_heartbeat import NodeLoad

CPU_PERMILLE_MAX: Final = 750
"""Busier than this on average, a cluster of four cannot lose one node and go on as before."""

DISK_SHARE_MAX: Final = 0.75
REPLICA_SHARE_MAX: Final = 0.8
"""Of what `max.broker.partitions` allows: beyond it, topics are about to be refused."""


class ScaleSignal:
    """Remembers since when each reason has held. Times are measured, not of day."""

    __slots__ = ("_since_ms",)

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def on_load(
        self, image: Image, loads: Mapping[NodeId, NodeLoad], settings: BrokerSettings, now_ms: int
    ) -> tuple[str, ...]:
        """Why another node is wanted; empty where none is."""
        found = dict(_reasons(image, loads, settings))
        self._since_ms = {kind: self._since_ms.get(kind, now_ms) for kind in found}
        return tuple(
            reason for kind, reason in found.items() if now_ms - self._since_ms[kind] >= SCALE_SUSTAINED_MS
        )


def _reasons(
    image: Image, loads: Mapping[NodeId, NodeLoad], settings: BrokerSettings
) -> Iterator[tuple[str, str]]:
    """Each with its kind: the words change with the figures, the kind does not."""
    serving = [
        loads[broker.node_id]
        for broker in image.brokers.values()
        if broker.is_active and broker.takes_replicas and broker.node_id in loads
    ]
    if serving:
        cpu_permille = sum(load.cpu_permille for load in serving) // len(serving)
        if cpu_permille > CPU_PERMILLE_MAX:
            yield (
                "cpu",
                f"brokers are busy {cpu_permille / 10:.0f} % of the time, {CPU_PERMILLE_MAX / 10:.0f} % is enough",
            )
        total_bytes = sum(load.disk_total_bytes for load in serving)
        share = sum(load.disk_used_bytes for load in serving) / total_bytes if total_bytes else 0.0
        if share > DISK_SHARE_MAX:
            yield "disk", f"disks are {share:.0%} full, {DISK_SHARE_MAX:.0%} is enough"
    replicas_max = settings.max_broker_partitions * image.replica_taker_count
    if image.replica_count > REPLICA_SHARE_MAX * replicas_max:
        yield (
            "replicas",
            f"{image.replica_count} replicas are held, max.broker.partitions allows {replicas_max}",
        )
    factor = max((len(partition.replicas) for _, partition in all_partitions(image)), default=0)
    active_count = sum(broker.is_active and broker.takes_replicas for broker in image.brokers.values())
    if factor > active_count:
        yield "brokers", f"{active_count} brokers are in service, partitions have up to {factor} replicas"
