"""Who may decide for the cluster, who does, and how far each node has followed the metadata.

Kafka's tools know a quorum of voters with a leader. Here the voters are the nodes that may be the controller, and the leader
is the one that is; where the metadata is at home in etcd, whoever votes there is nobody's business here.

What a reader could get wrong
    Only the controller hears how far others are, by their heartbeats. One that has just taken over has heard from nobody.
"""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.base.ids import NodeId


class Heard(Struct, frozen=True, gc=False):
    """What one node said of itself; times by the wall clock."""

    metadata_offset: int
    heard_at_ms: int
    caught_up_at_ms: int
    """When it last had everything; -1 for never."""


class Followings:
    """Of all nodes, as the controller hears them."""

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard: dict[NodeId, Heard] = {}

    @property
    def heard(self) -> Mapping[NodeId, Heard]:
        return self._heard

    def on_heartbeat(self, node_id: NodeId, metadata_offset: int, *, end_offset: int, now_ms: int) -> None:
        former = self._heard.get(node_id)
        caught_up_at_ms = -1 if former is None else former.caught_up_at_ms
        if metadata_offset >= end_offset:
            caught_up_at_ms = now_ms
        self._heard[node_id] = Heard(metadata_offset, now_ms, caught_up_at_ms)

    def forget(self) -> None:
        """Another controller has heard them meanwhile."""
        self._heard.clear()
