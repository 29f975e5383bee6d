"""DescribeClientQuotas (key 48): the quotas of users, clients and addresses.

v1  flexible encoding
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Float64, Int8, Int16, Int32, Message


class ComponentData(Message, frozen=True):
    entity_type: str
    match_type: Int8
    match: str | None


class DescribeClientQuotasRequest(Message, frozen=True):
    components: tuple[ComponentData, ...]
    strict: bool


class EntityData(Message, frozen=True):
    entity_type: str
    entity_name: str | None


class ValueData(Message, frozen=True):
    key: str
    value: Float64


class EntryData(Message, frozen=True):
    entity: tuple[EntityData, ...]
    values: tuple[ValueData, ...]


class DescribeClientQuotasResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None
    entries: tuple[EntryData, ...] | None


API: Final = Api(
    key=48,
    name="DescribeClientQuotas",
    versions=range(0, 1 + 1),
    flexible_since=1,
    request=DescribeClientQuotasRequest,
    response=DescribeClientQuotasResponse,
)
