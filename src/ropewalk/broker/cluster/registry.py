"""What the active controller answers to the nodes of its cluster, and does about those it no longer hears.

Behaviour worth knowing
    A heartbeat that changes nothing is answered from the image, without the metadata log. One that should change something is
    answered all the same while the log takes no records: the node is heard, is told why, and the next heartbeat tries again.
    A node is missed when its heartbeats are silent, or soon after the connection that they came by has closed. Fencing it
    is always safe, so nobody has to be sure.
    A controller that takes over has heard from nobody yet: everybody has a short while to find it, except the node whose
    silence was the reason to take over.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

import structlog

from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import MetadataUnavailable, RopewalkError, StorageFailed, Throttled, TimedOut
from ropewalk.base.ids import NodeId
from ropewalk.base.levels import Software
from ropewalk.base.limits import CONNECTION_GRACE_MS, SESSION_CHECK_MS
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.quorum import Followings
from ropewalk.controller.alter_partition import (
    AlteredPartition,
    PartitionAlteration,
    decide_alter_partition,
)
from ropewalk.controller.brokers import Registered, Registration, decide_register_broker, registered_broker
from ropewalk.controller.elections import InTurns
from ropewalk.controller.health import NodeReports
from ropewalk.controller.levels import check_neighbours
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import (
    Heartbeat,
    Pulse,
    check_history,
    fence_in_turns,
    heartbeat_in_turns,
    is_news,
    may_stop,
)
from ropewalk.controller.producer_ids import ProducerIdBlock, allocated_block, decide_allocate_producer_ids
from ropewalk.controller.sessions import Sessions
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerRegistered, BrokerState, MetadataRecord, ProducerIdsAllocated
from ropewalk.metadata.settings.applied import AppliedSettings

_log = structlog.get_logger()

_PASSING = (MetadataUnavailable, StorageFailed, Throttled, TimedOut)
"""The metadata log takes no records at present, or nobody knows whether it did."""


class Registry:
    def __init__(
        self,
        node_id: NodeId,
        cluster: Cluster,
        settings: AppliedSettings,
        sessions: Sessions[NodeLoad],
        clock: Clock,
        *,
        is_alone: bool,
    ) -> None:
        self._node_id = node_id
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._is_alone = is_alone
        self._complaints = Complaints()
        self._connected: set[NodeId] = set()
        """Nodes whose heartbeats come by a connection that is open."""
        self.sessions = sessions
        self.reports = NodeReports()
        """What nodes have said of themselves, while this node decides."""
        self.followings = Followings()
        """How far the nodes are that were heard since this one decides."""
        self.fenced_count = 0
        """How often a node was taken out of service for want of heartbeats."""

    async def register(self, registration: Registration) -> Registered:
        decided: list[BrokerRegistered] = []

        def decide(image: Image) -> Sequence[MetadataRecord]:
            is_live = registration.node_id in image.brokers and self.sessions.is_live(
                registration.node_id, self._now_ms()
            )
            records = decide_register_broker(
                image,
                registration,
                settings=self._settings,
                now_ms=self._clock.now_ms(),
                is_live=is_live,
                is_lone=self._is_alone,
                others=self._present(image, registration.node_id),
            )
            decided[:] = [record for record in records if isinstance(record, BrokerRegistered)]
            return records

        await self._cluster.commit(decide, None)
        (registered,) = decided
        self.sessions.on_registered(registration.node_id, registered.broker_epoch, self._now_ms())
        cluster_id = self._cluster.image.cluster_id
        assert cluster_id is not None, "whoever decides has created the cluster"
        return Registered(registered.broker_epoch, cluster_id)

    async def heartbeat(self, heartbeat: Heartbeat, load: NodeLoad | None = None) -> Pulse:
        self._cluster.check_decides()
        image, node_id = self._cluster.image, heartbeat.node_id
        check_history(image, node_id, heartbeat.position)
        broker = registered_broker(image, node_id, heartbeat.broker_epoch)
        if node_id != self._node_id:  # it may have registered with a controller of another version
            check_neighbours(node_id, broker.software, [self._cluster.facts.software])
        self.sessions.on_heartbeat(node_id, heartbeat.broker_epoch, self._now_ms(), load)
        self.reports.on_heartbeat(
            node_id,
            heartbeat.metadata_offset,
            heartbeat.complaints,
            end_offset=image.end_offset,
            now_ms=self._now_ms(),
        )
        self.followings.on_heartbeat(
            node_id, heartbeat.metadata_offset, end_offset=image.end_offset, now_ms=self._clock.now_ms()
        )
        if node_id != self._node_id and node_id not in self._connected:
            self._connected.add(node_id)
            self.sessions.on_connected(node_id)

        def decide(image: Image) -> InTurns:
            return heartbeat_in_turns(image, heartbeat, settings=self._settings, now_ms=self._clock.now_ms())

        hindrance = None
        if is_news(image, heartbeat):
            try:
                await self._cluster.commit(decide, None)
            except _PASSING as error:
                hindrance = str(error)
                if self._complaints.is_due(hindrance, self._now_ms()):
                    _log.warning("what a heartbeat asks for cannot be done", node=node_id, reason=hindrance)
        broker = registered_broker(image, node_id, heartbeat.broker_epoch)
        is_done = heartbeat.wants_to_stop and may_stop(image, node_id)
        return Pulse(
            broker.state is BrokerState.FENCED,
            is_done,
            self._node_id,
            image.end_offset,
            self._clock.now_ms(),
            hindrance,
        )

    def on_disconnected(self, node_id: NodeId) -> None:
        """The connection that the node's heartbeats came on has ended."""
        if node_id in self._connected:
            self._connected.discard(node_id)
            self.sessions.on_connection_lost(node_id, self._now_ms())

    async def alter_partitions(
        self, node_id: NodeId, broker_epoch: int, alterations: Sequence[PartitionAlteration]
    ) -> Sequence[AlteredPartition]:
        """One outcome for each, in their order."""
        altered: list[AlteredPartition] = []

        def decide(image: Image) -> Sequence[MetadataRecord]:
            records, altered[:] = decide_alter_partition(
                image,
                node_id,
                broker_epoch,
                alterations,
                settings=self._settings,
                now_ms=self._clock.now_ms(),
            )
            return records

        await self._cluster.commit(decide, None)
        return altered

    async def allocate_producer_ids(self, node_id: NodeId, broker_epoch: int) -> ProducerIdBlock:
        decided: list[ProducerIdsAllocated] = []

        def decide(image: Image) -> Sequence[MetadataRecord]:
            registered_broker(image, node_id, broker_epoch)
            records = decide_allocate_producer_ids(image, node_id)
            decided[:] = [record for record in records if isinstance(record, ProducerIdsAllocated)]
            return records

        await self._cluster.commit(decide, None)
        return allocated_block(decided[0])

    def on_seated(self, former: NodeId | None) -> None:
        """This node decides from here on; `former` has gone silent, where that was the reason."""
        now_ms = self._now_ms()
        image = self._cluster.image
        if not self._is_alone:
            _log.info("this node decides for the cluster", controller_epoch=image.controller_epoch)
        self.reports.clear()
        brokers = image.brokers
        self.followings.forget()
        self.sessions.begin([(broker.node_id, broker.epoch) for broker in brokers.values()], now_ms)
        for node_id in sorted(self._connected):
            self.sessions.on_connected(node_id)
        if former is not None and former not in self._connected:
            self.sessions.on_connected(former)
            self.sessions.on_connection_lost(former, now_ms - CONNECTION_GRACE_MS)

    async def run(self) -> None:
        """Fence whoever is missed, while this node decides."""
        while True:
            await asyncio.sleep(SESSION_CHECK_MS / 1000)
            if self._cluster.decides:
                await self._fence_missed()

    async def _fence_missed(self) -> None:
        for node_id, broker_epoch in self.sessions.missed(self._now_ms()):
            broker = self._cluster.image.brokers.get(node_id)
            if broker is None or broker.epoch != broker_epoch or broker.state is BrokerState.FENCED:
                continue
            try:
                await self._cluster.commit(
                    partial(self._decide_fence, node_id=node_id, broker_epoch=broker_epoch), None
                )
            except RopewalkError as error:
                if self._complaints.is_due(str(error), self._now_ms()):
                    _log.warning("a node that is gone cannot be fenced", node=node_id, reason=str(error))
                return  # the next round tries again
            self.fenced_count += 1
            _log.warning("a node is gone; others lead its partitions", node=node_id)

    def _decide_fence(
        self, image: Image, *, node_id: NodeId, broker_epoch: int
    ) -> Sequence[MetadataRecord] | InTurns:
        if (node_id, broker_epoch) not in self.sessions.missed(self._now_ms()):
            return ()  # it was heard while this waited its turn
        return fence_in_turns(
            image, node_id, broker_epoch, settings=self._settings, now_ms=self._clock.now_ms()
        )

    def _present(self, image: Image, node_id: NodeId) -> list[Software]:
        """What the nodes are that are there, this one among them: one that comes has to get on with all. Who is registered and silent
        may have been replaced by another version meanwhile."""
        brokers = [image.brokers[other] for other in sorted(self._connected) if other in image.brokers]
        others = [broker.software for broker in brokers if broker.node_id != node_id]
        return others if node_id == self._node_id else [self._cluster.facts.software, *others]

    def _now_ms(self) -> int:
        """Sessions are measured: wall time may jump."""
        return int(self._clock.monotonic_ms())
