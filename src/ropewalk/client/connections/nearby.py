"""Which copy of a partition a reader with a rack fetches from: its leader's, or the one that the leader has named as near (KIP-392).

What a reader could get wrong
    Only the leader says who is near, and only to a reader that names its rack. A copy serves only a reader that names one, too.
    A copy is a favour: whenever it refuses, cannot be reached or has nothing to give, the leader is read from for a while, and is not told
    of the rack meanwhile, since it would send the reader back.
"""

from collections.abc import Callable

from msgspec import Struct

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import CLIENT_LEADER_ONLY_MS
from ropewalk.client.connections.cluster import PartitionView


class Reading(Struct, frozen=True, gc=False):
    """Whom to ask for a partition, and how."""

    node: NodeId
    names_rack: bool
    is_copy: bool = False
    """It does not lead the partition."""


class _Copy(Struct, frozen=True, gc=False):
    node: NodeId
    until_ms: float


class Nearby:
    def __init__(self, rack: str, *, copy_ms: int) -> None:
        """`copy_ms`: how long a copy is read from before the leader is asked again who is near."""
        self._rack = rack
        self._copy_ms = copy_ms
        self._copies: dict[TopicPartition, _Copy] = {}
        self._leader_only_until_ms: dict[TopicPartition, float] = {}

    def reading(
        self, partition: TopicPartition, view: PartitionView, knows: Callable[[NodeId], bool], now_ms: float
    ) -> Reading:
        if not self._rack:
            return Reading(view.leader, names_rack=False)
        copy = self._copies.get(partition)
        if copy is not None and now_ms >= copy.until_ms:
            del self._copies[partition]
        elif copy is not None and (copy.node not in view.isr or not knows(copy.node)):
            self.on_failed(partition, now_ms)
        elif copy is not None:
            return Reading(copy.node, names_rack=True, is_copy=True)
        return Reading(view.leader, names_rack=now_ms >= self._leader_only_until_ms.get(partition, now_ms))

    def on_sent(self, partition: TopicPartition, copy: NodeId, now_ms: float) -> None:
        """The leader has named a copy that is nearer."""
        self._copies[partition] = _Copy(copy, now_ms + self._copy_ms)

    def on_failed(self, partition: TopicPartition, now_ms: float) -> None:
        """The copy does not serve this reader."""
        self._copies.pop(partition, None)
        self._leader_only_until_ms[partition] = now_ms + CLIENT_LEADER_ONLY_MS
