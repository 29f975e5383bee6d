"""SaslHandshake: by which mechanism a client will say who it is.

Behaviour worth knowing
    A mechanism that is not offered is answered with those that are, and the connection is closed.
    After version 0 the login follows in frames without headers, as clients of Kafka 0.10 send it.
    Once it is known who it is, it begins another login, which a client needs where sessions end (`connections.max.reauth.ms`).
    On a listener without SASL it is out of order, whatever it asks for.
"""

from ropewalk.kafka.authentication import Authentication
from ropewalk.kafka.caller import Caller
from ropewalk.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(
    request: SaslHandshakeRequest, caller: Caller, *, authentication: Authentication
) -> SaslHandshakeResponse:
    return authentication.on_handshake(request, caller)
