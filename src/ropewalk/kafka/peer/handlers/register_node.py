"""RegisterNode: a node has started and asks to be let in.

Behaviour worth knowing
    A node speaks for itself only: the id must be the one that was given when the connection began.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.wire.peer.register_node import RegisterNodeRequest, RegisterNodeResponse


class Registrations(Protocol):
    async def register(self, request: RegisterNodeRequest) -> RegisterNodeResponse:
        """Returns when the registration is committed. Raises `NotController` where another node decides."""


async def handle(
    request: RegisterNodeRequest, caller: Caller, *, registrations: Registrations
) -> RegisterNodeResponse:
    try:
        check_identity(caller, request.node_id)
        return await registrations.register(request)
    except RopewalkError as error:
        return RegisterNodeResponse(code_for(error), str(error))
