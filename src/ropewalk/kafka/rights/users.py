"""The guard of tokens for users."""

from typing import Final

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.security.access import Operation
from ropewalk.security.identity import ANONYMOUS, BY_OAUTH, BY_TOKEN
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.issue_token import IssueTokenRequest, IssueTokenResponse
from ropewalk.wire.types import Message

_NOT_BY_ITSELF: Final = (ANONYMOUS, BY_OAUTH, BY_TOKEN)
"""Whose name ends soon, or is none: a token of their own would outlast what they came with."""


async def issue_token(
    request: IssueTokenRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    user = request.user or caller.identity.name
    is_own = caller.principal == f"User:{user}" and caller.identity.method not in _NOT_BY_ITSELF
    if not is_own and not rights.user(caller, Operation.CREATE_TOKENS, user):
        return IssueTokenResponse(
            0, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "not authorized to issue tokens for the user"
        )
    return await handle(request, caller)
