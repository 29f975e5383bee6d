"""UpdateFeatures: what is answered for each feature, in every version."""

import pytest

from ropewalk.base.levels import OURS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import update_features
from tests.kafka.door import Door, at_the_door

REFUSED = ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("version", update_features.API.versions)
@pytest.mark.parametrize(
    ("feature", "level", "code", "reason"),
    [
        pytest.param("ropewalk.level", OURS.level_max, ErrorCode.NONE, None, id="as it is"),
        pytest.param("ropewalk.level", 0, ErrorCode.NONE, None, id="the newest that all know"),
        pytest.param("ropewalk.level", OURS.level_max - 1, REFUSED, "never goes down", id="down"),
        pytest.param("ropewalk.level", OURS.level_max + 1, REFUSED, "is not known to all", id="too far"),
        pytest.param("transaction.version", 2, ErrorCode.NONE, None, id="Kafka's own, as it is"),
        pytest.param("transaction.version", 1, REFUSED, "is at level 2", id="Kafka's own, another level"),
        pytest.param("colour", 1, REFUSED, "there is no feature 'colour'", id="unknown"),
    ],
)
def test_answers(version: int, feature: str, level: int, code: ErrorCode, reason: str | None) -> None:
    async def story(door: Door) -> update_features.UpdateFeaturesResponse:
        update = update_features.FeatureUpdateKey(feature, level)
        request = update_features.UpdateFeaturesRequest(1000, (update,))
        return await door.call(update_features.API, version, request)

    answer = at_the_door(story)
    if version < 2:
        assert answer.error_code == ErrorCode.NONE
        (told,) = [(each.error_code, each.error_message) for each in answer.results]
    else:
        told = (answer.error_code, answer.error_message)
    assert told[0] == code
    assert (reason or "") in (told[1] or "")
