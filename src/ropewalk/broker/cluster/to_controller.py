"""What this node asks of the controller: by a call in this process where it decides itself, else over the link.

The refusals are the same either way: errors of `base`, whichever side of a connection they were raised on.
"""

from collections.abc import Sequence
from typing import TypeVar

from ropewalk.base.errors import ControllerUnavailable, TimedOut
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.limits import MEMBERSHIP_CALL_MS
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.cluster.registry import Registry
from ropewalk.broker.peers.calls.allocate_producer_ids import allocate_producer_ids
from ropewalk.broker.peers.calls.alter_partition import alter_partition
from ropewalk.broker.peers.calls.controller_call import ControllerCall
from ropewalk.broker.peers.calls.node_heartbeat import node_heartbeat
from ropewalk.broker.peers.calls.register_node import register_node
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.controller.brokers import Registered, Registration
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import Heartbeat, Pulse
from ropewalk.controller.producer_ids import ProducerIdBlock

T = TypeVar("T")


class ToController:
    def __init__(
        self, cluster: Cluster, clock: Clock, registry: Registry, link: ControllerLink | None
    ) -> None:
        """Without a link on a node that is alone."""
        self._cluster = cluster
        self._clock = clock
        self._registry = registry
        self._link = link

    @property
    def local(self) -> Registry | None:
        """Where this node decides itself at the moment."""
        return self._registry if self._cluster.decides else None

    async def wait_lost(self) -> None:
        """Return when the connection that heartbeats go by has ended, at once where there is none."""
        if self._link is None:
            return
        try:
            deadline_ms = self._clock.monotonic_ms() + MEMBERSHIP_CALL_MS
            link = await self._link.link(Lane.HEARTBEATS, deadline_ms=deadline_ms)
        except Unreachable:
            return
        await link.wait_lost()

    def hang_up(self) -> None:
        """No heartbeat will come any more: let the controller hear so."""
        if self._link is not None:
            self._link.hang_up(Lane.HEARTBEATS)

    async def register(self, registration: Registration, *, timeout_ms: float) -> Registered:
        if (registry := self.local) is not None:
            return await registry.register(registration)
        return await self._call(register_node(registration), timeout_ms)

    async def heartbeat(self, heartbeat: Heartbeat, load: NodeLoad | None, *, timeout_ms: float) -> Pulse:
        if (registry := self.local) is not None:
            return await registry.heartbeat(heartbeat, load)
        return await self._call(node_heartbeat(heartbeat, load), timeout_ms)

    async def alter_partitions(
        self,
        node_id: NodeId,
        broker_epoch: int,
        alterations: Sequence[PartitionAlteration],
        *,
        timeout_ms: float,
    ) -> Sequence[AlteredPartition]:
        if (registry := self.local) is not None:
            return await registry.alter_partitions(node_id, broker_epoch, alterations)
        call = alter_partition(node_id, broker_epoch, alterations, self._replicas)
        return await self._call(call, timeout_ms)

    async def allocate_producer_ids(
        self, node_id: NodeId, broker_epoch: int, *, timeout_ms: float
    ) -> ProducerIdBlock:
        if (registry := self.local) is not None:
            return await registry.allocate_producer_ids(node_id, broker_epoch)
        return await self._call(allocate_producer_ids(node_id, broker_epoch), timeout_ms)

    async def _call(self, call: ControllerCall[T], timeout_ms: float) -> T:
        if self._link is None:
            self._cluster.check_decides()
            raise ControllerUnavailable("this node is alone and does not decide")
        try:
            return await self._link.call(call, deadline_ms=self._clock.monotonic_ms() + timeout_ms)
        except ConnectionLost as error:
            raise TimedOut(f"whether the controller did it is not known: {error}") from None

    def _replicas(self, topic_id: TopicId, index: int) -> tuple[NodeId, ...]:
        """The image may be ahead of the answer: that a topic is gone by now says nothing about the others in it."""
        known = self._cluster.image.topics_by_id.get(topic_id)
        return () if known is None else known.partitions[index].replicas
