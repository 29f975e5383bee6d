"""ApiVersions (key 18): which APIs, versions and features a broker offers. The first request on a connection.

v1  throttle_ms in the response
v3  flexible encoding; the client names its software; features in the response's tagged section
v4  a feature may have a minimum version of 0
v5  the client may say which cluster and node it means to talk to

The response header never has a tagged section, and a broker that does not know the version asked for answers in
the layout of v0.
"""

from typing import Annotated, Final

from ropewalk.wire.api import API_VERSIONS_KEY, Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since, tagged


class ApiVersionsRequest(Message, frozen=True):
    client_software_name: Annotated[str, since(3)] = ""
    client_software_version: Annotated[str, since(3)] = ""
    cluster_id: Annotated[str | None, since(5)] = None
    node_id: Annotated[Int32, since(5)] = -1


class ApiVersion(Message, frozen=True):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Message, frozen=True):
    name: str
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Message, frozen=True):
    name: str
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Message, frozen=True):
    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], since(3), tagged(0)] = ()
    finalized_features_epoch: Annotated[Int64, since(3), tagged(1)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], since(3), tagged(2)] = ()
    zk_migration_ready: Annotated[bool, since(3), tagged(3)] = False


API: Final = Api(
    key=API_VERSIONS_KEY,
    name="ApiVersions",
    versions=range(0, 5 + 1),
    flexible_since=3,
    request=ApiVersionsRequest,
    response=ApiVersionsResponse,
)
