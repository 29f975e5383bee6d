"""What the node that decides does for the cluster unasked: one round after the other, a little at a time.

It raises the level that the cluster works at, brings the cluster's own topics to their number of copies, gives partitions back to their preferred leaders, moves things off
brokers that are to leave, lets topics grow that may, and knows whether another node is wanted.

What a reader could get wrong
    Rounds are held only by the active controller. One that takes over knows of no load before the brokers have told it, and
    waits as long as any other before a topic grows or a node is wanted.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

import structlog

from ropewalk.base import metrics
from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import InvalidReplicaAssignment, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import UPKEEP_CHANGES_MAX, UPKEEP_MS
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.upkeep.load_meter import LoadMeter
from ropewalk.controller.departure import Departures, decide_leave, leavers
from ropewalk.controller.growth import Growth
from ropewalk.controller.leadership import decide_balance_leaders
from ropewalk.controller.levels import decide_raise_level, level_known_to_all
from ropewalk.controller.load import ClusterLoad, NodeLoad, gather
from ropewalk.controller.membership import decide_remove_broker
from ropewalk.controller.relocation import decide_raise_internal_topics
from ropewalk.controller.scale_signal import Reason, ScaleSignal
from ropewalk.controller.sessions import Sessions
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.features import FINALIZE_AUTO

_log = structlog.get_logger()


class _Decide(Protocol):
    def __call__(
        self, image: Image, *, settings: AppliedSettings, now_ms: int
    ) -> Sequence[MetadataRecord]: ...


class Upkeep:
    def __init__(
        self,
        node_id: NodeId,
        cluster: Cluster,
        topics: Topics,
        sessions: Sessions[NodeLoad],
        meter: LoadMeter,
        clock: Clock,
        *,
        is_alone: bool,
    ) -> None:
        self._node_id = node_id
        self._cluster = cluster
        self._topics = topics
        self._sessions = sessions
        self._meter = meter
        self._clock = clock
        self._is_alone = is_alone
        self._growth = Growth()
        self._signal = ScaleSignal()
        self._departures = Departures()
        self._leaders_due_ms: float | None = None
        self._complaints = Complaints()
        self.reasons: tuple[Reason, ...] = ()
        """For another node; empty where none is wanted, and on nodes that do not decide."""

    def load(self) -> ClusterLoad:
        """As far as this node has been told."""
        return gather(self._cluster.image, self._loads())

    async def run(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_MS / 1000)
            if not self._cluster.decides:
                self._growth, self._signal, self._departures = Growth(), ScaleSignal(), Departures()
                self._leaders_due_ms = None
                self.reasons = ()
                continue
            try:
                await self._round()
            except RopewalkError as error:  # the next round tries again
                if self._complaints.is_due(str(error), self._clock.monotonic_ms()):
                    _log.warning("the cluster could not be looked after", reason=str(error))

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.NODES_WANTED, int(bool(self.reasons)))
        yield

    async def _round(self) -> None:
        await self._raise_level()
        if not self._is_alone:  # there is nowhere else for anything, and no need to look at every partition
            await self._change(partial(decide_raise_internal_topics, moves_max=UPKEEP_CHANGES_MAX))
            await self._balance_leaders()
            await self._see_off()
        now_ms = int(self._clock.monotonic_ms())
        for command in self._growth.on_load(self._cluster.image, self.load(), self._topics.settings, now_ms):
            _log.info("a topic grows under load", topic=command.name, partitions=command.partition_count)
            await self._topics.add_partitions(command, None)
        reasons = self._signal.on_load(
            self._cluster.image, self._loads(), self._topics.broker_settings, now_ms
        )
        if reasons and not self.reasons:
            _log.warning("the cluster wants another node", reasons=[reason.text for reason in reasons])
        self.reasons = reasons

    async def _raise_level(self) -> None:
        """To what all nodes know, where nobody wants to be asked."""
        if self._topics.broker_settings.features_finalize != FINALIZE_AUTO:
            return
        decide = partial(decide_raise_level, software=self._cluster.facts.software)
        if level_known_to_all(self._cluster.image, self._cluster.facts.software) > self._cluster.image.level:
            await self._cluster.commit(decide, None)
            _log.info("the cluster works at another level from here on", level=self._cluster.image.level)

    async def _see_off(self) -> None:
        """Drain whoever is to leave, and forget whoever is drained and gone."""
        for node_id in leavers(self._cluster.image):
            try:
                await self._change(partial(_decide_drain, node_id=node_id))
            except InvalidReplicaAssignment as error:  # until there are brokers enough again
                if self._complaints.is_due(str(error), self._clock.monotonic_ms()):
                    _log.warning("a node that is to leave cannot be drained", node=node_id, reason=str(error))
        for node_id in self._departures.on_round(self._cluster.image, int(self._clock.monotonic_ms())):
            await self._cluster.commit(partial(decide_remove_broker, node_id=node_id), None)
            _log.info("a node that was to leave is gone and forgotten", node=node_id)

    async def _balance_leaders(self) -> None:
        settings = self._topics.broker_settings
        now_ms = self._clock.monotonic_ms()
        if not settings.auto_leader_rebalance_enable:
            return
        if self._leaders_due_ms is None:
            self._leaders_due_ms = now_ms + settings.leader_imbalance_check_interval_seconds * 1000
        if now_ms >= self._leaders_due_ms:
            self._leaders_due_ms = None
            await self._change(partial(decide_balance_leaders, changes_max=UPKEEP_CHANGES_MAX))

    async def _change(self, decide: _Decide) -> None:
        def decided(image: Image) -> Sequence[MetadataRecord]:
            return decide(image, settings=self._topics.settings, now_ms=self._clock.now_ms())

        if decided(self._cluster.image):
            await self._cluster.commit(decided, None)

    def _loads(self) -> dict[NodeId, NodeLoad]:
        loads = {self._node_id: self._meter.latest}
        for node_id in self._cluster.image.brokers:
            load = self._sessions.load(node_id)
            if load is not None:
                loads[node_id] = load
        return loads


def _decide_drain(
    image: Image, *, node_id: NodeId, settings: AppliedSettings, now_ms: int
) -> Sequence[MetadataRecord]:
    broker = image.brokers.get(node_id)
    if broker is None or not broker.is_leaving:
        return ()  # it was forgotten, or is to stay after all
    return decide_leave(image, node_id, settings=settings, now_ms=now_ms)
