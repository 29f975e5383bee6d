"""Setting and finding the quotas of clients.

Behaviour worth knowing
    A quota is for a user, a client id, both together, or an address; each named, or by default for whoever has none.
    Bytes and connections are counted in whole numbers; time and changes of the cluster may be fractions.
    An address is written as a number. Kafka takes the names of hosts too and looks them up; here nothing is looked up
    while a decision is made.
    Taking a quota away that was not set is a success.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidRequest, PolicyViolation
from ropewalk.base.limits import CLIENT_QUOTAS_MAX, QUOTA_NAME_CHARACTERS_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import ClientQuotasChanged, MetadataRecord, QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


class Quota(StrEnum):
    """What can be limited, by Kafka's names."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"
    CONNECTION = "connection_creation_rate"


_OF_CLIENTS: Final = (Quota.PRODUCE, Quota.FETCH, Quota.REQUEST, Quota.MUTATION)
_OF_ADDRESSES: Final = (Quota.CONNECTION,)
_FRACTIONAL: Final = (Quota.REQUEST, Quota.MUTATION)
_WHOLE_TOLERANCE: Final = 1e-6
_WHOLE_MAX: Final = 2**63 - 1


class Match(Struct, frozen=True):
    """What one kind of name must be in the entities that are looked for."""

    kind: str
    name: str | None = None
    is_any: bool = False
    """Any name or the default will do; otherwise no name means the default."""

    def accepts(self, name: str | None) -> bool:
        return self.is_any or name == self.name


def decide_alter_client_quotas(
    image: Image, parts: Sequence[tuple[str, str | None]], changes: Mapping[str, float | None]
) -> list[MetadataRecord]:
    """None takes a quota away."""
    entity = checked_entity(parts)
    for name, value in changes.items():
        if value is not None:
            _check_quota(entity, name, value)
    held = image.client_quotas.get(entity, {})
    changes = {name: value for name, value in changes.items() if held.get(name) != value}
    if not changes:
        return []
    if entity not in image.client_quotas and len(image.client_quotas) >= CLIENT_QUOTAS_MAX:
        raise PolicyViolation(f"{len(image.client_quotas)} entities have quotas, no more are allowed")
    return [ClientQuotasChanged(entity, dict(changes))]


def checked_entity(parts: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    """The entity in its one spelling, or `InvalidRequest`."""
    if not parts:
        raise InvalidRequest("a quota must be for somebody: the entity is empty")
    kinds = [kind for kind, _ in parts]
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"there are no quotas for {kind!r}, only for {USER}, {CLIENT_ID} and {IP}")
        if kinds.count(kind) > 1:
            raise InvalidRequest(f"the entity names a {kind} twice")
        if name == "":
            raise InvalidRequest(f"the {kind} has an empty name")
        if name is not None and len(name) > QUOTA_NAME_CHARACTERS_MAX:
            raise InvalidRequest(
                f"the {kind} has {len(name)} characters, at most {QUOTA_NAME_CHARACTERS_MAX} are allowed"
            )
    if IP in kinds and len(kinds) > 1:
        raise InvalidRequest(f"a quota for an {IP} cannot be for a {USER} or {CLIENT_ID} too")
    return tuple(sorted(((kind, _address(name) if kind == IP else name) for kind, name in parts), key=_kind))


def find_client_quotas(
    image: Image, matches: Sequence[Match], *, strict: bool
) -> Iterator[tuple[QuotaEntity, Mapping[str, float]]]:
    """The entities that have all kinds of the matches, and with `strict` no others."""
    wanted = {match.kind for match in matches}
    if len(wanted) < len(matches):
        raise InvalidRequest("a kind of name may be looked for once")
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequest(f"no quota is for an {IP} and somebody else")
    for entity, quotas in image.client_quotas.items():
        names = dict(entity)
        if strict and names.keys() != wanted:
            continue
        if all(match.kind in names and match.accepts(names[match.kind]) for match in matches):
            yield entity, quotas


def _check_quota(entity: QuotaEntity, name: str, value: float) -> None:
    known = _OF_ADDRESSES if entity[0][0] == IP else _OF_CLIENTS
    if name not in known:
        raise InvalidRequest(f"there is no quota {name!r} for {_said(entity)}, only {', '.join(known)}")
    if not math.isfinite(value) or value <= 0:
        raise InvalidRequest(f"{name} is {value}, must be a number greater than 0")
    if name in _FRACTIONAL:
        return
    if value > _WHOLE_MAX:
        raise InvalidRequest(f"{name} is {value}, must fit in 64 bits")
    if abs(value - round(value)) > _WHOLE_TOLERANCE:
        raise InvalidRequest(f"{name} is {value}, must be a whole number")


def _address(text: str | None) -> str | None:
    try:
        return None if text is None else str(ip_address(text))
    except ValueError:
        raise InvalidRequest(f"{text!r} is not an address such as 192.0.2.1") from None


def _kind(part: tuple[str, str | None]) -> str:
    return part[0]


def _said(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {'by default' if name is None else repr(name)}" for kind, name in entity)
