"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings.

v1  flexible encoding
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class AlterableConfig(Message, frozen=True):
    name: str
    config_operation: Int8
    value: str | None


class AlterConfigsResource(Message, frozen=True):
    resource_type: Int8
    resource_name: str
    configs: tuple[AlterableConfig, ...]


class IncrementalAlterConfigsRequest(Message, frozen=True):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool


class AlterConfigsResourceResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str


class IncrementalAlterConfigsResponse(Message, frozen=True):
    throttle_ms: Int32
    responses: tuple[AlterConfigsResourceResponse, ...]


API: Final = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=range(0, 1 + 1),
    flexible_since=1,
    request=IncrementalAlterConfigsRequest,
    response=IncrementalAlterConfigsResponse,
)
