"""IssueToken: issue a token of the cluster's own, with which a user can log in for a while.

Behaviour worth knowing
    Whoever logged in with a password or a certificate has a token of its own for the asking; for another user it takes CREATE_TOKENS on
    that user, as KIP-373 has it. Where no rights are decided anybody may, as anybody may set passwords there.
    A token is no way to another: who came by one would stay for ever.
    Whoever said no name is given none, but for callers on the node's own machine: the answer could be read on its way.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import TOKEN_LIFETIME_MS
from ropewalk.base.loopback import is_loopback
from ropewalk.broker.administration.tokens import Tokens
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.security.identity import ANONYMOUS, BY_TOKEN
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.issue_token import API, IssueTokenRequest, IssueTokenResponse

_USUAL = -1


async def handle(request: IssueTokenRequest, caller: Caller, *, tokens: Tokens) -> IssueTokenResponse:
    method = caller.identity.method
    if method == BY_TOKEN:
        return _refused(
            "who logged in with a token is given no other; log in with a password or a certificate"
        )
    if method == ANONYMOUS and not (request.user and is_loopback(caller.host)):
        return _refused("who said no name is given no token; log in first")
    lifetime_ms = TOKEN_LIFETIME_MS if request.lifetime_ms == _USUAL else request.lifetime_ms
    try:
        with caller.hold():
            issued = await tokens.issue(
                request.user or caller.identity.name,
                caller.mandate(API.name),
                lifetime_ms=lifetime_ms,
                is_session=request.is_session,
            )
    except RopewalkError as error:
        return IssueTokenResponse(0, code_for(error), str(error))
    return IssueTokenResponse(
        0,
        ErrorCode.NONE,
        None,
        issued.user,
        issued.token,
        issued.issued_at_ms,
        issued.ends_at_ms,
        issued.access_key,
        issued.secret,
    )


def _refused(why: str) -> IssueTokenResponse:
    return IssueTokenResponse(0, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, why)
