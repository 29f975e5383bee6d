"""AlterConfigs (key 33): replace all settings of a resource at once; what is not named goes back to its default.

v2  flexible encoding
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class AlterableConfig(Message, frozen=True):
    name: str
    value: str | None


class AlterConfigsResource(Message, frozen=True):
    resource_type: Int8
    resource_name: str
    configs: tuple[AlterableConfig, ...]


class AlterConfigsRequest(Message, frozen=True):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool


class AlterConfigsResourceResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str


class AlterConfigsResponse(Message, frozen=True):
    throttle_ms: Int32
    responses: tuple[AlterConfigsResourceResponse, ...]


API: Final = Api(
    key=33,
    name="AlterConfigs",
    versions=range(0, 2 + 1),
    flexible_since=2,
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
)
