"""UpdateFeatures (key 57): raise the level of features, or see whether that would be allowed.

v1  upgrade_type in place of allow_downgrade; validate_only
v2  one outcome for all features

With a name of our own, `ropewalk.level`, it is the level that the cluster works at.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, since, until


class FeatureUpdateKey(Message, frozen=True):
    feature: str
    max_version_level: Int16
    allow_downgrade: Annotated[bool, until(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


class UpdateFeaturesRequest(Message, frozen=True):
    timeout_ms: Int32
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: Annotated[bool, since(1)] = False


class UpdatableFeatureResult(Message, frozen=True):
    feature: str
    error_code: Int16
    error_message: str | None = None


class UpdateFeaturesResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None = None
    results: Annotated[tuple[UpdatableFeatureResult, ...], until(1)] = ()


API: Final = Api(
    key=57,
    name="UpdateFeatures",
    versions=range(0, 2 + 1),
    flexible_since=0,
    request=UpdateFeaturesRequest,
    response=UpdateFeaturesResponse,
)
