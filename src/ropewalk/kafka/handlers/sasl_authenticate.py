"""SaslAuthenticate: one message of a login, and the answer to it.

Behaviour worth knowing
    A failure is answered after `connection.failed.authentication.delay.ms`, in the same words whatever was wrong, and the connection is closed.
    The last answer says how long the session lasts, from version 1 on.
"""

from ropewalk.kafka.authentication import Authentication
from ropewalk.kafka.caller import Caller
from ropewalk.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(
    request: SaslAuthenticateRequest, caller: Caller, *, authentication: Authentication
) -> SaslAuthenticateResponse:
    return await authentication.on_authenticate(request, caller)
