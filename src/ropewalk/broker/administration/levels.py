"""The level that the cluster works at, as an operator sees and raises it; on the node that decides."""

from functools import partial

from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.levels import decide_raise_level


class Levels:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def in_force(self) -> int:
        return self._cluster.image.level

    async def raise_to(
        self, level: int | None, mandate: Mandate | None, *, validate_only: bool = False
    ) -> int:
        """To `level`, or with None to the newest that all nodes know; answers the one in force.

        Raises `LevelRefused`, with what holds it back.
        """
        self._cluster.check_decides()
        decide = partial(decide_raise_level, software=self._cluster.facts.software, level=level)
        decide(self._cluster.image)
        if not validate_only:
            await self._cluster.propose(decide, mandate)
        return self.in_force
