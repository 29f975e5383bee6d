"""Adding and removing rules about who may do what, as any door may ask for it."""

from collections.abc import Sequence

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.acls import decide_add_acls, decide_remove_acls
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord
from ropewalk.security.access import Filter, Rule


class AclChanges:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def add(self, rules: Sequence[Rule], mandate: Mandate | None) -> list[RopewalkError | None]:
        """All that can be added, at once; for each why it was not, or None. Raises `NotInForce`, or `PolicyViolation` for too many."""
        refusals: list[RopewalkError | None] = []

        def decide(image: Image) -> Sequence[MetadataRecord]:
            nonlocal refusals
            records, refusals = decide_add_acls(image, rules)
            return records

        await self._cluster.propose(decide, mandate)
        return refusals

    async def remove(self, filters: Sequence[Filter], mandate: Mandate | None) -> list[list[Rule]]:
        """What each filter matched, all removed at once. Raises `NotInForce`, or `PolicyViolation` where that is too much."""
        matched: list[list[Rule]] = []

        def decide(image: Image) -> Sequence[MetadataRecord]:
            nonlocal matched
            records, matched = decide_remove_acls(image, filters)
            return records

        await self._cluster.propose(decide, mandate)
        return matched
