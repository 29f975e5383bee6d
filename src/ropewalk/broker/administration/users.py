"""Setting and removing what users log in with, as any door may ask for it."""

from collections.abc import Mapping, Sequence

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ports import Rng
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.users import Outcome, Removal, Upsertion, decide_alter_users
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord
from ropewalk.security.decoys import DECOY_KEY_BYTES


class UserChanges:
    def __init__(self, cluster: Cluster, rng: Rng) -> None:
        self._cluster = cluster
        self._rng = rng

    async def alter(
        self, changes: Sequence[Removal | Upsertion], mandate: Mandate | None
    ) -> Mapping[str, RopewalkError | None]:
        """Of every user that is named why it was refused, or None: what is valid is done together. Raises what concerns all."""
        outcome = Outcome([], {})
        decoy_key = self._rng.randbytes(DECOY_KEY_BYTES)

        def decide(image: Image) -> Sequence[MetadataRecord]:
            nonlocal outcome
            outcome = decide_alter_users(image, changes, decoy_key=decoy_key)
            return outcome.records

        await self._cluster.propose(decide, mandate)
        return outcome.refusals
