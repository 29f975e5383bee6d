"""Elections and reassignments, as any door may ask for them."""

from collections.abc import Sequence

from ropewalk.base.ids import NodeId
from ropewalk.broker.cluster import Cluster
from ropewalk.controller.leadership import decide_elect_any, decide_elect_preferred, decide_reassign
from ropewalk.metadata.image import Image


class Leadership:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def image(self) -> Image:
        return self._cluster.image

    async def elect(self, topic: str, index: int, *, preferred: bool) -> None:
        """Raises ElectionNotNeeded where there is nothing to do."""
        decide = decide_elect_preferred if preferred else decide_elect_any
        await self._cluster.propose(lambda image: decide(image, topic, index))

    async def reassign(
        self, topic: str, index: int, replicas: Sequence[NodeId] | None, *, may_change_factor: bool
    ) -> None:
        """With no replicas: give up a move; raises NoReassignment where none is under way."""
        await self._cluster.propose(
            lambda image: decide_reassign(image, topic, index, replicas, may_change_factor=may_change_factor)
        )
