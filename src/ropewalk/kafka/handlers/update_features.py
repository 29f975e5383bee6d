"""UpdateFeatures: raise the level that the cluster works at.

Behaviour worth knowing
    `ropewalk.level` is the one feature that can be raised; 0 stands for the newest level that all nodes know. It never goes down, by force
    neither. Kafka's own features are in force as they are: asking for that is a success, and for anything else a refusal.
    Until version 1 each feature has an outcome; from version 2 on the first refusal is that of the whole, and what came before it is done.
"""

from ropewalk.base.errors import LevelRefused, RopewalkError
from ropewalk.broker.administration.levels import Levels
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.features import LEVEL_FEATURE, fixed_level
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.update_features import (
    API,
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_SINCE_ONE_OUTCOME = 2
NEWEST_KNOWN = 0
"""As a level: whichever all nodes know."""


async def handle(request: UpdateFeaturesRequest, caller: Caller, *, levels: Levels) -> UpdateFeaturesResponse:
    results: list[UpdatableFeatureResult] = []
    with caller.hold():
        for update in request.feature_updates:
            try:
                await _update(update, levels, caller, validate_only=request.validate_only)
            except RopewalkError as error:
                code = code_for(error)
                if code is ErrorCode.NOT_CONTROLLER or caller.version >= _SINCE_ONE_OUTCOME:
                    return UpdateFeaturesResponse(0, code, str(error))
                results.append(UpdatableFeatureResult(update.feature, code, str(error)))
            else:
                results.append(UpdatableFeatureResult(update.feature, ErrorCode.NONE))
    return UpdateFeaturesResponse(0, ErrorCode.NONE, None, tuple(results))


async def _update(update: FeatureUpdateKey, levels: Levels, caller: Caller, *, validate_only: bool) -> None:
    if update.feature == LEVEL_FEATURE:
        wanted = None if update.max_version_level == NEWEST_KNOWN else update.max_version_level
        await levels.raise_to(wanted, caller.mandate(API.name), validate_only=validate_only)
        return
    fixed = fixed_level(update.feature)
    if fixed is None:
        raise LevelRefused(f"there is no feature {update.feature!r}; {LEVEL_FEATURE} can be raised")
    if update.max_version_level != fixed:
        raise LevelRefused(f"{update.feature} is at level {fixed}, and only {LEVEL_FEATURE} can be raised")
