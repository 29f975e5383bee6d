"""AlterUserScramCredentials: set and remove what users log in with.

Behaviour worth knowing
    What is valid is done together, whatever is refused beside it. Each user has one answer, however often it was named.
    A user whose credential is set anew or removed is logged out: its connections end with their next requests.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.administration.users import UserChanges
from ropewalk.controller.users import Removal, Upsertion
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.alter_user_scram_credentials import (
    API,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


async def handle(
    request: AlterUserScramCredentialsRequest, caller: Caller, *, user_changes: UserChanges
) -> AlterUserScramCredentialsResponse:
    changes: list[Removal | Upsertion] = [
        Removal(deletion.name, deletion.mechanism) for deletion in request.deletions
    ]
    changes += [
        Upsertion(
            upsertion.name,
            upsertion.mechanism,
            upsertion.iterations,
            bytes(upsertion.salt),
            bytes(upsertion.salted_password),
        )
        for upsertion in request.upsertions
    ]
    with caller.hold():
        try:
            refusals = await user_changes.alter(changes, caller.mandate(API.name))
        except RopewalkError as error:
            refusals = dict.fromkeys((change.user for change in changes), error)
    return AlterUserScramCredentialsResponse(
        throttle_ms=0, results=tuple(_result(user, error) for user, error in refusals.items())
    )


def _result(user: str, error: RopewalkError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user, ErrorCode.NONE, None)
    return AlterUserScramCredentialsResult(user, code_for(error), str(error))
