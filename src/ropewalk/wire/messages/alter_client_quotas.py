"""AlterClientQuotas (key 49): set or remove quotas of users, clients and addresses.

v1  flexible encoding

Kafka calls the entries of both directions `EntryData`; ours are told apart.
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Float64, Int16, Int32, Message


class EntityData(Message, frozen=True):
    entity_type: str
    entity_name: str | None


class OpData(Message, frozen=True):
    key: str
    value: Float64
    remove: bool


class EntryData(Message, frozen=True):
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


class AlterClientQuotasRequest(Message, frozen=True):
    entries: tuple[EntryData, ...]
    validate_only: bool


class EntryDataResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    entity: tuple[EntityData, ...]


class AlterClientQuotasResponse(Message, frozen=True):
    throttle_ms: Int32
    entries: tuple[EntryDataResponse, ...]


API: Final = Api(
    key=49,
    name="AlterClientQuotas",
    versions=range(0, 1 + 1),
    flexible_since=1,
    request=AlterClientQuotasRequest,
    response=AlterClientQuotasResponse,
)
