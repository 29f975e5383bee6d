"""Which replica a consumer should read from: one in its own rack, if the leader is elsewhere (KIP-392).

Only replicas in sync are named, which hold what the consumer asks for. A consumer that is sent to one which has fallen behind
comes back to the leader by itself.
"""

from ropewalk.base.ids import NodeId, Offset
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.reading.fetch import Nearest
from ropewalk.metadata.image import Image


class NearestReplicas:
    def __init__(self, image: Image, node_id: NodeId, *, is_wanted: bool) -> None:
        """`is_wanted`: the setting `replica.selector.class` is the one by rack."""
        self._image = image
        self._node_id = node_id
        self._is_wanted = is_wanted

    def seen_from(self, rack: str) -> Nearest | None:
        """None where a reader in that rack is always given what is here."""
        own = self._image.brokers.get(self._node_id)
        if not self._is_wanted or not rack or own is None or own.rack == rack:
            return None
        return lambda partition, offset: self._nearest(rack, partition, offset)

    def _nearest(self, rack: str, partition: Partition, offset: Offset) -> NodeId | None:
        if partition.followers is None:
            return None
        core, brokers = partition.followers.core, self._image.brokers
        best: tuple[int, NodeId] | None = None
        for node_id in sorted(core.isr - {self._node_id}):
            broker, progress = brokers.get(node_id), core.followers.get(node_id)
            if broker is None or not broker.is_active or broker.rack != rack or progress is None:
                continue
            if progress.durable_offset >= offset and (best is None or progress.durable_offset > best[0]):
                best = progress.durable_offset, node_id
        return None if best is None else best[1]
