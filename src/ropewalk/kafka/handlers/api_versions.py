"""ApiVersions: what this node serves, told to every client before anything else.

Behaviour worth knowing
    The list is made from the table in `apis.py`, so nothing is advertised that is not served.
    No feature is finalized that does not work: clients act upon them (`features.py`).
    A client name outside Kafka's pattern is refused with INVALID_REQUEST, as Kafka does, since it ends up in logs.
"""

import re
from typing import Final

from ropewalk.base.levels import OURS, Software
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.features import features_epoch, finalized, supported
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(
    request: ApiVersionsRequest,
    caller: Caller,
    *,
    advertised: tuple[ApiVersion, ...],
    image: Image,
    software: Software = OURS,
) -> ApiVersionsResponse:
    if caller.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=advertised,
        supported_features=supported(caller.version, software),
        finalized_features_epoch=features_epoch(image.level),
        finalized_features=finalized(image.level),
    )
