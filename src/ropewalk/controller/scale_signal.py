"""Whether the cluster wants another node, and why.

It is a signal for whoever starts nodes, a person or a program, and nothing here acts on it. A reason must have been there for a
while before it is told, so that one busy minute starts no node.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.controller.load import NodeLoad
from ropewalk.metadata.image import Image
from ropewalk.metadata.settings.applied import BrokerSettings


class Reason(Struct, frozen=True):
    kind: str
    """The words change with the figures, the kind does not."""
    text: str


class ScaleSignal:
    """Remembers since when each reason has held. Times are measured, not of day."""

    __slots__ = ("_since_ms",)

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def on_load(
        self, image: Image, loads: Mapping[NodeId, NodeLoad], settings: BrokerSettings, now_ms: int
    ) -> tuple[Reason, ...]:
        """Why another node is wanted; empty where none is."""
        found = list(_reasons(image, loads, settings))
        self._since_ms = {reason.kind: self._since_ms.get(reason.kind, now_ms) for reason in found}
        sustained_ms = settings.cluster_scale_sustained_ms
        return tuple(reason for reason in found if now_ms - self._since_ms[reason.kind] >= sustained_ms)


def _reasons(image: Image, loads: Mapping[NodeId, NodeLoad], settings: BrokerSettings) -> Iterator[Reason]:
    serving = [
        loads[broker.node_id]
        for broker in image.brokers.values()
        if broker.is_active and broker.takes_replicas and broker.node_id in loads
    ]
    if serving:
        busy = sum(load.cpu_permille for load in serving) / 10 / len(serving)
        if busy > settings.cluster_scale_cpu_percent:
            yield Reason(
                "cpu",
                f"brokers are busy {busy:.0f} % of the time, {settings.cluster_scale_cpu_percent} % is enough",
            )
        total_bytes = sum(load.disk_total_bytes for load in serving)
        full = 100 * sum(load.disk_used_bytes for load in serving) / total_bytes if total_bytes else 0.0
        if full > settings.cluster_scale_disk_percent:
            yield Reason(
                "disk", f"disks are {full:.0f} % full, {settings.cluster_scale_disk_percent} % is enough"
            )
    replicas_max = settings.max_broker_partitions * image.replica_taker_count
    if 100 * image.replica_count > settings.cluster_scale_replicas_percent * replicas_max:
        yield Reason(
            "replicas",
            f"{image.replica_count} replicas are held, max.broker.partitions allows {replicas_max}",
        )
    factor = max((topic.replication_factor for topic in image.topics.values()), default=0)
    active_count = sum(broker.is_active and broker.takes_replicas for broker in image.brokers.values())
    if factor > active_count:
        yield Reason(
            "brokers", f"{active_count} brokers are in service, partitions have up to {factor} replicas"
        )
