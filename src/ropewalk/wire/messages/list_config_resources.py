"""ListConfigResources (key 74): what has settings, by type and name.

v0  was ListClientMetricsResources: subscriptions of client metrics alone
v1  all types, or those that are asked for
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, since


class ListConfigResourcesRequest(Message, frozen=True):
    resource_types: Annotated[tuple[Int8, ...], since(1)] = ()


class ConfigResource(Message, frozen=True):
    resource_name: str
    resource_type: Annotated[Int8, since(1)] = 16


class ListConfigResourcesResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    config_resources: tuple[ConfigResource, ...] = ()


API: Final = Api(
    key=74,
    name="ListConfigResources",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=ListConfigResourcesRequest,
    response=ListConfigResourcesResponse,
)
