"""AlterClientQuotas: set and remove quotas of users, client ids and addresses.

Behaviour worth knowing
    Each entity is changed as a whole or not at all, and by itself. One that is named twice keeps what it was given
    first, and a quota that is given twice is refused, as in Kafka.
"""

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.broker.administration.quota_changes import QuotaChanges
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.alter_client_quotas import (
    API,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    EntryDataResponse,
)


async def handle(
    request: AlterClientQuotasRequest, caller: Caller, *, quota_changes: QuotaChanges
) -> AlterClientQuotasResponse:
    seen: set[frozenset[tuple[str, str | None]]] = set()
    answers: list[EntryDataResponse] = []
    mandate = caller.mandate(API.name)
    with caller.hold():
        for entry in request.entries:
            parts = [(part.entity_type, part.entity_name) for part in entry.entity]
            code, message = ErrorCode.NONE, None
            try:
                if frozenset(parts) in seen:
                    raise InvalidRequest("the entity is named more than once")
                seen.add(frozenset(parts))
                await quota_changes.alter(
                    parts, _changes(entry), mandate, validate_only=request.validate_only
                )
            except RopewalkError as error:
                code, message = code_for(error), str(error)
            answers.append(EntryDataResponse(code, message, entry.entity))
    return AlterClientQuotasResponse(throttle_ms=0, entries=tuple(answers))


def _changes(entry: EntryData) -> dict[str, float | None]:
    changes: dict[str, float | None] = {}
    for operation in entry.ops:
        if operation.key in changes:
            raise InvalidRequest(f"{operation.key} is given more than once")
        changes[operation.key] = None if operation.remove else operation.value
    return changes
