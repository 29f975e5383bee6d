"""What clients use of their quotas, and how long one that has used too much must wait.

A quota is a rate. Whoever shares it (all clients of a user, all connections of a client id, …) has a share: what they
have used and not yet worked off. It is worked off at the quota's rate; while something is left, whoever used it waits
just as long as that takes. So a client that goes on as fast as it may is held to its quota exactly, whatever the size
of its requests, and a client below its quota never waits.

What a reader could get wrong
    Unused quota is saved up for a moment only (`_SAVED_MS`), so that a pause is not followed by a flood.
    Each kind of quota is looked up by itself: a client may have one entity's byte rate and another's request rate.
    Nothing here costs anything while `image.client_quotas` is empty; callers look there first.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ropewalk.base.limits import QUOTA_SHARES_MAX, THROTTLE_MS_MAX
from ropewalk.controller.client_quotas import CLIENT_ID, IP, USER, Quota
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import QuotaEntity

_SAVED_MS: Final = {
    Quota.PRODUCE: 250,
    Quota.FETCH: 250,
    Quota.REQUEST: 250,
    Quota.MUTATION: 10_000,
    Quota.CONNECTION: 1_000,
}
"""How much unused quota is kept, as the time in which it comes in. Over ten seconds a quarter of one is 2.5 %. Changes of the
cluster come in bursts by nature: a tool makes its ten topics at once."""

_ROUNDING_MS: Final = 1e-6
"""Whoever has waited as long as it was told owes nothing, though sums of fractions may come to a little more."""

_Key = tuple[Quota, str | None, str | None]
"""Who shares: a user, a client id or both; or an address in the place of the user."""


class _Share:
    """`owed` is what was used beyond the rate; below zero it is what has been saved up."""

    __slots__ = ("at_ms", "owed")

    def __init__(self, owed: float, at_ms: float) -> None:
        self.owed = owed
        self.at_ms = at_ms


class ClientQuotas:
    def __init__(self, image: Image) -> None:
        self.image = image
        self._known: Mapping[QuotaEntity, Mapping[str, float]] = image.client_quotas
        self._applying: dict[_Key, tuple[_Key, float] | None] = {}
        """By user and client: the share and the rate that apply; None where no quota does."""

        self._shares: dict[_Key, _Share] = {}
        """The longest silent first."""

    def charge(self, quota: Quota, user: str, client_id: str, amount: float, now_ms: float) -> float:
        """Note the use of a quota; answers for how many milliseconds the client must not be served."""
        applying = self._find(quota, user, client_id)
        return 0.0 if applying is None else self._charge(*applying, amount, now_ms)

    def charge_connection(self, host: str, now_ms: float) -> float:
        """A connection was made from this address. One that has to wait is to be refused, and does not count."""
        applying = self._find(Quota.CONNECTION, host, None)
        if applying is None:
            return 0.0
        throttle_ms = self._charge(*applying, 1, now_ms)
        if throttle_ms:
            self._charge(*applying, -1, now_ms)
        return throttle_ms

    def rate(self, quota: Quota, user: str, client_id: str) -> float | None:
        """The quota per second that applies to a client; None where there is none."""
        applying = self._find(quota, user, client_id)
        return None if applying is None else applying[1]

    @property
    def share_count(self) -> int:
        return len(self._shares)

    def _charge(self, key: _Key, rate: float, amount: float, now_ms: float) -> float:
        quota = key[0]
        saved = rate * _SAVED_MS[quota] / 1000
        share = self._shares.pop(key, None)
        if share is None:
            if len(self._shares) >= QUOTA_SHARES_MAX:
                del self._shares[next(iter(self._shares))]
            share = _Share(-saved, now_ms)
        worked_off = rate * (now_ms - share.at_ms) / 1000
        share.owed = min(max(share.owed - worked_off, -saved) + amount, rate * THROTTLE_MS_MAX / 1000)
        share.at_ms = now_ms
        self._shares[key] = share
        throttle_ms = share.owed / rate * 1000
        return throttle_ms if throttle_ms > _ROUNDING_MS else 0.0

    def _find(self, quota: Quota, user: str, client_id: str | None) -> tuple[_Key, float] | None:
        if self._known is not self.image.client_quotas:
            self._known = self.image.client_quotas
            self._applying.clear()
        asked = (quota, user, client_id)
        try:
            return self._applying[asked]
        except KeyError:
            pass
        if len(self._applying) >= QUOTA_SHARES_MAX:
            self._applying.clear()
        found = self._applying[asked] = _applying(self._known, quota, user, client_id)
        return found


def _applying(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], quota: Quota, name: str, client_id: str | None
) -> tuple[_Key, float] | None:
    """The first entity that has such a quota, from the most particular to the most general."""
    entities = _of_address(name) if client_id is None else _of_client(name, client_id)
    for entity, shared_by in entities:
        rate = quotas.get(entity, {}).get(quota)
        if rate is not None:
            return (quota, *shared_by), _per_second(quota, rate)
    return None


_SharedBy = tuple[str | None, str | None]


def _of_address(host: str) -> Iterator[tuple[QuotaEntity, _SharedBy]]:
    yield ((IP, host),), (host, None)
    yield ((IP, None),), (host, None)


def _of_client(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, _SharedBy]]:
    """In Kafka's order: the user counts for more than the client id."""
    for named_user in (user, None):
        yield ((CLIENT_ID, client_id), (USER, named_user)), (user, client_id)
        yield ((CLIENT_ID, None), (USER, named_user)), (user, client_id)
        yield ((USER, named_user),), (user, None)
    yield ((CLIENT_ID, client_id),), (None, client_id)
    yield ((CLIENT_ID, None),), (None, client_id)


def _per_second(quota: Quota, rate: float) -> float:
    """Milliseconds of the event loop for requests, whose quota is a percentage of it; else as it is written."""
    return rate * 10 if quota is Quota.REQUEST else rate
