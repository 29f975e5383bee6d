"""Which slow nodes a node stops waiting for, over all partitions it leads with `ack.policy=quorum`.

A node is slow as a whole: once it keeps one partition waiting, it is dropped from all of them in one alteration, and
at most once in a while, so that a node at the edge does not make the cluster rewrite its metadata all day.
"""

from collections.abc import Sequence

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import STRAGGLER_DROP_INTERVAL_MS
from ropewalk.replication.leader import Leader


class Stragglers:
    __slots__ = ("_dropped_at_ms",)

    def __init__(self) -> None:
        self._dropped_at_ms: dict[NodeId, int] = {}

    def sweep(self, leaders: Sequence[Leader], now_ms: int) -> None:
        """Look at all `leaders`, and tell each whom not to wait for; what they propose next is without those."""
        straggling = {node_id for leader in leaders for node_id in leader.straggling(now_ms)}
        for node_id in sorted(straggling):
            dropped_at_ms = self._dropped_at_ms.get(node_id)
            if dropped_at_ms is not None and now_ms - dropped_at_ms < STRAGGLER_DROP_INTERVAL_MS:
                continue
            self._dropped_at_ms[node_id] = now_ms
            for leader in leaders:
                leader.on_straggler(node_id, now_ms)
