"""The cluster's health as one node can tell it: counted where it decides, asked of the controller elsewhere.

Behaviour worth knowing
    A node that cannot ask the controller says so first, and then what it knew when it last could.
    The figures of the whole cluster are written by the active controller alone, so that they are counted once.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ropewalk import __version__
from ropewalk.base import metrics
from ropewalk.base.errors import NotController, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import HEALTH_ASK_MS_MAX, HEALTH_FRESH_MS, TROUBLES_TOLD_MAX
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.cluster.knowledge import Knowledge
from ropewalk.broker.peers.calls.cluster_health import cluster_health
from ropewalk.broker.watching.alerting import ToldAlert
from ropewalk.controller.health import (
    BELOW_MINIMUM,
    KNOWLEDGE_OLD,
    NO_CONTROLLER,
    NOBODY_LEADS,
    UNDER_REPLICATED,
    Complaint,
    NodeReports,
    Survey,
    Trouble,
    troubles_of_nodes,
    worst_first,
)
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.runtime.errands import Errands
from ropewalk.runtime.steps import Pace


class NodeAccount(Struct, frozen=True):
    """What a node says of itself, and of how much it knows."""

    node_id: NodeId
    version: str
    decides: bool
    age_ms: int
    metadata_offset: int
    controller_offset: int
    session_timeout_ms: int
    complaints: tuple[Complaint, ...]
    warnings: tuple[str, ...]
    """What of its configuration could surprise."""
    finalize: str
    """How the level rises, as this node knows the cluster's settings."""
    alerts: tuple[ToldAlert, ...] = ()
    """What of the node, and of the cluster where it decides, should wake somebody."""


class ClusterHealth:
    def __init__(
        self,
        node_id: NodeId,
        cluster: Cluster,
        settings: AppliedSettings,
        reports: NodeReports,
        knowledge: Knowledge,
        link: ControllerLink | None,
        errands: Errands,
        clock: Clock,
        *,
        complaints: Callable[[], tuple[Complaint, ...]],
        warnings: Callable[[], tuple[str, ...]],
        alerts: Callable[[], tuple[ToldAlert, ...]] = lambda: (),
    ) -> None:
        """Without a link on a node that is alone. `complaints`: what is wrong with this node itself; `warnings`: what of its
        configuration could surprise."""
        self._node_id = node_id
        self._cluster = cluster
        self._settings = settings
        self._reports = reports
        self._knowledge = knowledge
        self._link = link
        self._errands = errands
        self._clock = clock
        self._complaints = complaints
        self._warnings = warnings
        self._alerts = alerts
        self._told: Sequence[Trouble] = ()
        self._told_at_ms: float | None = None

    @property
    def metadata_offset(self) -> int:
        return self._cluster.image.end_offset

    def of_this_node(self) -> NodeAccount:
        knowledge = self._knowledge
        return NodeAccount(
            self._node_id,
            __version__,
            self._cluster.decides,
            knowledge.age_ms,
            knowledge.metadata_offset,
            knowledge.controller_offset,
            knowledge.session_timeout_ms,
            self._complaints(),
            self._warnings(),
            self._settings.of_broker.features_finalize,
            self._alerts(),
        )

    async def troubles(self) -> Sequence[Trouble]:
        """What is wrong in the cluster, the worst first, as this node can find out."""
        if self._cluster.decides:
            try:
                return worst_first([*self._old(), *await self.account()])
            except NotController:
                pass  # another does by now
        try:
            found = await self._errands.begin(self._ask())
        except RopewalkError as error:
            age = f"it was last heard {self._knowledge.age_ms / 1000:.0f} s ago"
            unheard = Trouble(NO_CONTROLLER, "cluster", f"{age}: {error}")
            return worst_first([unheard, *self._old(), *await self._look()])
        return worst_first([*self._old(), *found])

    async def account(self) -> Sequence[Trouble]:
        """As the controller; raises `NotController` elsewhere."""
        self._cluster.check_decides()
        now_ms = self._clock.monotonic_ms()
        if self._told_at_ms is None or now_ms - self._told_at_ms > HEALTH_FRESH_MS:
            self._told = (await self._look())[:TROUBLES_TOLD_MAX]
            self._told_at_ms = now_ms
            self._cluster.check_decides()
        return self._told

    def collect(self, sheet: Sheet) -> Iterator[None]:
        yield from self._knowledge.collect(sheet)
        if not self._cluster.decides:
            return
        survey = Survey(self._cluster.image, self._settings)
        yield from survey.walk()
        sheet.add(metrics.PARTITIONS_LEADERLESS, survey.count(NOBODY_LEADS))
        sheet.add(metrics.PARTITIONS_BELOW_MINIMUM, survey.count(BELOW_MINIMUM))
        sheet.add(metrics.PARTITIONS_UNDER_REPLICATED, survey.count(UNDER_REPLICATED))
        sheet.add(metrics.NODES_BEHIND, len(self._reports.behind(self._now_ms())))
        unwell = [node_id for node_id in self._cluster.image.brokers if self._reports.complaints(node_id)]
        sheet.add(metrics.NODES_UNWELL, len(unwell))
        yield

    async def _ask(self) -> list[Trouble]:
        if self._link is None:
            raise NotController("this node is alone and does not decide")
        deadline_ms = self._clock.monotonic_ms() + HEALTH_ASK_MS_MAX
        return await self._link.call(cluster_health(), deadline_ms=deadline_ms)

    async def _look(self) -> list[Trouble]:
        """A walk over the image, in turns."""
        image, now_ms = self._cluster.image, self._now_ms()
        survey = Survey(image, self._settings)
        pace = Pace(1)
        for _ in survey.walk():
            await pace.next()
        # One's own word is at hand, whether or not heartbeats carry it.
        self._reports.on_heartbeat(
            self._node_id,
            self._knowledge.metadata_offset,
            self._complaints(),
            end_offset=image.end_offset,
            now_ms=now_ms,
        )
        return worst_first([*troubles_of_nodes(image, self._reports, now_ms), *survey.troubles()])

    def _old(self) -> list[Trouble]:
        if not self._knowledge.is_old:
            return []
        why = f"nothing was heard for {self._knowledge.age_ms / 1000:.0f} s; what is said of the cluster may be wrong"
        return [Trouble(KNOWLEDGE_OLD, f"node {self._node_id}", why)]

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())
