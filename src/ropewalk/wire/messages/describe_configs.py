"""DescribeConfigs (key 32): settings of topics and brokers, where each value comes from, and what it would be otherwise.

v1  synonyms, and the source of a value
v3  type and documentation
v4  flexible encoding
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, since


class DescribeConfigsResource(Message, frozen=True):
    resource_type: Int8
    resource_name: str
    configuration_keys: tuple[str, ...] | None
    """Null asks for all."""


class DescribeConfigsRequest(Message, frozen=True):
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = False
    include_documentation: Annotated[bool, since(3)] = False


class DescribeConfigsSynonym(Message, frozen=True):
    name: str
    value: str | None
    source: Int8


class DescribeConfigsResourceResult(Message, frozen=True):
    name: str
    value: str | None
    read_only: bool
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: Annotated[Int8, since(3)] = 0
    documentation: Annotated[str | None, since(3)] = None


class DescribeConfigsResult(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...]


class DescribeConfigsResponse(Message, frozen=True):
    throttle_ms: Int32
    results: tuple[DescribeConfigsResult, ...]


API: Final = Api(
    key=32,
    name="DescribeConfigs",
    versions=range(1, 4 + 1),
    flexible_since=4,
    request=DescribeConfigsRequest,
    response=DescribeConfigsResponse,
)
