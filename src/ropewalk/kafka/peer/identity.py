"""A node speaks for itself only."""

from ropewalk.base.errors import InvalidRequest
from ropewalk.kafka.caller import Caller


def check_identity(caller: Caller, node_id: int) -> None:
    if caller.peer_id != node_id:
        raise InvalidRequest(f"node {caller.peer_id} speaks in the name of node {node_id}")
