"""FindController: any node is asked who decides, as far as it has heard."""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.client.connections.address import Address
from ropewalk.wire.peer import find_controller as wire


class NamedController(Struct, frozen=True):
    node_id: NodeId
    """Negative: it knows of nobody."""
    epoch: int
    is_heard: bool
    """Whether the node that answered hears of that controller at present."""
    nodes: Mapping[NodeId, Address]
    """Where the nodes are that it knows of."""


def find_controller() -> Call[NamedController]:
    return call(wire.API, wire.FindControllerRequest(), _named)


def _named(answer: wire.FindControllerResponse) -> NamedController:
    nodes = {NodeId(node.node_id): Address(node.host, node.port) for node in answer.nodes}
    return NamedController(
        NodeId(answer.controller_id), answer.controller_epoch, answer.hears_controller, nodes
    )
