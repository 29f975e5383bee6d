"""Whose wish a change is: it goes from the door where somebody asked to the log that takes the change.

What a reader could get wrong
    A node that wants something itself has no mandate, wherever that is decided, and leaves no trace in the audit.
    A request that was forwarded has the name of the client, not of the node that passed it on.
"""

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.broker.access import NODE
from ropewalk.broker.peers.calls.forward import Sender


class Mandate(Struct, frozen=True):
    sender: Sender
    operation: str
    """The API or action by which it was asked for."""
    forwarded_by: NodeId | None = None
    """The node that the client is connected to, where that is another."""


def mandate(sender: Sender, operation: str, forwarded_by: NodeId | None = None) -> Mandate | None:
    """None where a node asks for what it needs itself."""
    return None if sender.principal == NODE else Mandate(sender, operation, forwarded_by)
