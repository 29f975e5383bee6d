"""How the controller's refusals are spelled to the nodes that ask it."""

from ropewalk.base.errors import NodeStopping, RopewalkError
from ropewalk.kafka.errors import code_for as code_for_clients
from ropewalk.wire.error_code import ErrorCode


def code_for(error: RopewalkError) -> ErrorCode:
    """As for clients; but one that is shutting down decides no more, so whoever asked looks for the next one."""
    return ErrorCode.NOT_CONTROLLER if isinstance(error, NodeStopping) else code_for_clients(error)
