"""Evening out the load, and taking brokers away, as an operator asks for it; on the node that decides.

What a reader could get wrong
    Everything here is a step: what it begins goes on by itself, and it may be asked again, by anybody, until nothing is left
    to do. A node that does not decide refuses with `NotController`, also what is only looked at: it has not been told the load.
    A broker is taken away in the order drain, stop, forget. That it is to leave is a fact that outlives whoever decides; the
    upkeep goes on draining by itself, and asking again only tells how far it is. A process that still runs would register
    again, so it is forgotten only when it has stopped.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import BALANCE_CHANGES_MAX, DRAIN_MOVES_MAX
from ropewalk.base.ports import Clock
from ropewalk.broker.administration.rounds import Upkeep
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.balance import Plan, decide_balance, plan_balance
from ropewalk.controller.departure import decide_leave, decide_stay
from ropewalk.controller.elections import InTurns
from ropewalk.controller.hot import HotPartition, hot_partitions
from ropewalk.controller.maintenance import maintenance_in_turns
from ropewalk.controller.membership import decide_remove_broker
from ropewalk.controller.relocation import decide_drain_broker, held_count
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerState, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class Stage(StrEnum):
    """How far a broker is that is being taken away."""

    DRAINING = "draining"
    """What it holds is being moved elsewhere, and it is given nothing more."""

    DRAINED = "drained"
    """It holds nothing; stop its process. Then it is forgotten, sooner if this is asked again."""

    REMOVED = "removed"


class Removal(Struct, frozen=True):
    stage: Stage
    held_count: int
    """Partitions of which it still keeps a copy."""


class Balancing:
    def __init__(self, cluster: Cluster, settings: AppliedSettings, upkeep: Upkeep, clock: Clock) -> None:
        self._cluster = cluster
        self._settings = settings
        self._upkeep = upkeep
        self._clock = clock

    @property
    def wanted(self) -> tuple[str, ...]:
        """Why another node is wanted."""
        self._cluster.check_decides()
        return tuple(reason.text for reason in self._upkeep.reasons)

    def hot_partitions(self, count: int) -> Sequence[HotPartition]:
        self._cluster.check_decides()
        return hot_partitions(self._cluster.image, self._upkeep.load(), count)

    def plan(self) -> Plan:
        """What `balance` would do now."""
        self._cluster.check_decides()
        return plan_balance(self._cluster.image, self._upkeep.load(), changes_max=BALANCE_CHANGES_MAX)

    async def balance(self, plan: Plan, mandate: Mandate | None) -> None:
        """Carry a plan out, as far as the cluster is still what it was made for. Moves go on after this returns."""

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_balance(image, plan.changes, settings=self._settings, now_ms=self._clock.now_ms())

        await self._cluster.propose(decide, mandate)

    async def drain(self, node_id: NodeId, mandate: Mandate | None, *, onto: NodeId | None = None) -> int:
        """Move some of what the broker holds elsewhere, or onto the broker that replaces it; how much is left.

        Raises `InvalidReplicaAssignment` where something has nowhere to go.
        """

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_drain_broker(
                image,
                node_id,
                settings=self._settings,
                now_ms=self._clock.now_ms(),
                moves_max=DRAIN_MOVES_MAX,
                onto=onto,
            )

        await self._cluster.propose(decide, mandate)
        return held_count(self._cluster.image, node_id)

    async def forget(self, node_id: NodeId, mandate: Mandate | None) -> None:
        """Of a broker that holds nothing and has stopped, that there ever was one; anything else is `InvalidRequest`."""
        await self._cluster.propose(lambda image: decide_remove_broker(image, node_id), mandate)

    async def remove(self, node_id: NodeId, mandate: Mandate | None) -> Removal:
        """Begin to take a broker away, or see how far that is; one that has been drained and is gone is forgotten at once.

        Raises `InvalidReplicaAssignment`, and begins nothing, where something that it holds has nowhere to go.
        """

        def decide(image: Image) -> Sequence[MetadataRecord]:
            broker = image.brokers.get(node_id)
            if broker is not None and broker.is_leaving and not held_count(image, node_id):
                return decide_remove_broker(image, node_id) if broker.state is BrokerState.FENCED else ()
            return decide_leave(image, node_id, settings=self._settings, now_ms=self._clock.now_ms())

        await self._cluster.propose(decide, mandate)
        image = self._cluster.image
        if node_id not in image.brokers:
            return Removal(Stage.REMOVED, 0)
        left = held_count(image, node_id)
        return Removal(Stage.DRAINING if left else Stage.DRAINED, left)

    async def set_maintenance(self, node_id: NodeId, mandate: Mandate | None, *, is_on: bool) -> None:
        """Others lead what the broker leads, where they can, until this is taken back."""

        def decide(image: Image) -> InTurns:
            now_ms = self._clock.now_ms()
            return maintenance_in_turns(image, node_id, is_on=is_on, settings=self._settings, now_ms=now_ms)

        await self._cluster.propose(decide, mandate)

    async def keep(self, node_id: NodeId, mandate: Mandate | None) -> None:
        """Take back that a broker is to leave. Moves that have begun go on."""
        await self._cluster.propose(lambda image: decide_stay(image, node_id), mandate)
