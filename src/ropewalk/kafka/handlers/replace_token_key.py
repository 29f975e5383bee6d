"""ReplaceTokenKey: have another key sign the cluster's own tokens.

Behaviour worth knowing
    Tokens that a former key signed count until they end; where that key is known to others, none of them counts any more, and sessions that
    they began end with their next requests.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.administration.tokens import Tokens
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.replace_token_key import API, ReplaceTokenKeyRequest, ReplaceTokenKeyResponse


async def handle(
    request: ReplaceTokenKeyRequest, caller: Caller, *, tokens: Tokens
) -> ReplaceTokenKeyResponse:
    try:
        with caller.hold():
            key_id = await tokens.replace_key(
                caller.mandate(API.name), is_known_to_others=request.is_known_to_others
            )
    except RopewalkError as error:
        return ReplaceTokenKeyResponse(0, code_for(error), str(error))
    return ReplaceTokenKeyResponse(0, ErrorCode.NONE, None, key_id)
