"""DescribeClientQuotas: the quotas whose entities match a filter; an empty filter matches all."""

from typing import Final

from ropewalk.base.errors import InvalidRequest
from ropewalk.controller.client_quotas import CLIENT_ID, IP, USER, Match, find_client_quotas
from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


async def handle(
    request: DescribeClientQuotasRequest, caller: Caller, *, image: Image
) -> DescribeClientQuotasResponse:
    del caller
    for component in request.components:
        if component.entity_type not in (USER, CLIENT_ID, IP, ""):
            return _refused(
                ErrorCode.UNSUPPORTED_VERSION, f"there are no quotas for {component.entity_type!r:.200}"
            )
    try:
        matches = [_match(component) for component in request.components]
        found = list(find_client_quotas(image, matches, strict=request.strict))
    except InvalidRequest as error:
        return _refused(ErrorCode.INVALID_REQUEST, str(error))
    return DescribeClientQuotasResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        entries=tuple(
            EntryData(
                tuple(EntityData(kind, name) for kind, name in entity),
                tuple(ValueData(name, value) for name, value in quotas.items()),
            )
            for entity, quotas in found
        ),
    )


def _match(component: ComponentData) -> Match:
    kind, name = component.entity_type, component.match
    if not kind:
        raise InvalidRequest("a part of the filter has no type")
    if component.match_type == _EXACT:
        if name is None:
            raise InvalidRequest(f"the filter asks for one {kind} and does not name it")
        return Match(kind, name)
    if component.match_type not in (_DEFAULT, _ANY):
        raise InvalidRequest(f"there is no match of type {component.match_type}")
    if name is not None:
        raise InvalidRequest(f"the filter names a {kind} and does not ask for one")
    return Match(kind, is_any=component.match_type == _ANY)


def _refused(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(throttle_ms=0, error_code=code, error_message=message, entries=None)
