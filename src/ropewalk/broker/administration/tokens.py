"""Tokens of the cluster's own, and the keys that sign them, as any door may ask for them."""

from collections.abc import Sequence

from ropewalk.base.ports import Clock, Rng
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.tokens import IssuedToken, NewKey, decide_issue, decide_replace_key
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord
from ropewalk.security.tokens import KEY_BYTES, KEY_ID_BYTES, Issued


class Tokens:
    def __init__(self, cluster: Cluster, clock: Clock, rng: Rng) -> None:
        self._cluster = cluster
        self._clock = clock
        self._rng = rng

    async def issue(
        self, user: str, mandate: Mandate | None, *, lifetime_ms: int, is_session: bool = False
    ) -> Issued:
        """Raises `UnknownUser`, `InvalidRequest`, `NotInForce`, and what keeps a change from being made."""
        new, decided = self._draw(), list[IssuedToken]()

        def decide(image: Image) -> Sequence[MetadataRecord]:
            decided[:] = [
                decide_issue(
                    image,
                    user,
                    lifetime_ms=lifetime_ms,
                    new=new,
                    now_ms=self._clock.now_ms(),
                    is_session=is_session,
                )
            ]
            return decided[0].records

        await self._cluster.propose(decide, mandate)
        return decided[0].issued

    async def replace_key(self, mandate: Mandate | None, *, is_known_to_others: bool) -> str:
        """The id of the new key."""
        new = self._draw()

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_replace_key(
                image, new=new, is_known_to_others=is_known_to_others, now_ms=self._clock.now_ms()
            )

        await self._cluster.propose(decide, mandate)
        return new.key_id

    def _draw(self) -> NewKey:
        return NewKey(self._rng.randbytes(KEY_ID_BYTES).hex(), self._rng.randbytes(KEY_BYTES))
