"""Setting client quotas, as any door may ask for it."""

from collections.abc import Mapping, Sequence

from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.client_quotas import decide_alter_client_quotas
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord


class QuotaChanges:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def alter(
        self,
        entity: Sequence[tuple[str, str | None]],
        changes: Mapping[str, float | None],
        mandate: Mandate | None,
        *,
        validate_only: bool = False,
    ) -> None:
        """None takes a quota away. All or nothing."""

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_alter_client_quotas(image, entity, changes)

        if validate_only:
            decide(self._cluster.image)
        else:
            await self._cluster.propose(decide, mandate)
