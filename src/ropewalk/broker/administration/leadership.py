"""Elections and reassignments, as any door may ask for them.

Behaviour worth knowing
    Where a replica out of sync is to lead, it is the one that holds most of those that say what they hold. They are asked before
    it is decided, so what is told is a little old; nobody writes to a partition that nobody leads.
"""

from collections.abc import Iterator, Sequence

from ropewalk.base.ids import NodeId
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.broker.dispatch.furthest import FurthestCopy
from ropewalk.controller.leadership import decide_elect_preferred, decide_elect_unclean
from ropewalk.controller.reassignment import decide_reassign, moves
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.runtime.errands import Errands


class Leadership:
    def __init__(
        self,
        cluster: Cluster,
        settings: AppliedSettings,
        clock: Clock,
        *,
        furthest: FurthestCopy,
        errands: Errands,
    ) -> None:
        self._cluster = cluster
        self._furthest = furthest
        self._errands = errands
        self._settings = settings
        self._clock = clock

    @property
    def image(self) -> Image:
        return self._cluster.image

    def moves(self) -> Iterator[tuple[Topic, Partition]]:
        """Partitions that are being moved, as far as this node has followed."""
        return moves(self._cluster.image)

    async def elect(self, topic: str, index: int, mandate: Mandate | None, *, preferred: bool) -> None:
        """Otherwise by force, where nobody leads. Raises ElectionNotNeeded where there is nothing to do."""
        if preferred:
            await self._cluster.propose(
                lambda image: decide_elect_preferred(
                    image, topic, index, settings=self._settings, now_ms=self._clock.now_ms()
                ),
                mandate,
            )
            return
        self._cluster.check_decides()
        furthest = None
        if self.image.partition(topic, index).leader is None:
            furthest = await self._errands.begin(self._furthest.find(topic, index))
        await self._cluster.propose(
            lambda image: decide_elect_unclean(
                image,
                topic,
                index,
                settings=self._settings,
                now_ms=self._clock.now_ms(),
                leader=furthest,
            ),
            mandate,
        )

    async def reassign(
        self,
        topic: str,
        index: int,
        replicas: Sequence[NodeId] | None,
        mandate: Mandate | None,
        *,
        may_change_factor: bool,
    ) -> None:
        """With no replicas: give up a move; raises NoReassignment where none is under way."""
        await self._cluster.propose(
            lambda image: decide_reassign(
                image,
                topic,
                index,
                replicas,
                settings=self._settings,
                now_ms=self._clock.now_ms(),
                may_change_factor=may_change_factor,
            ),
            mandate,
        )
