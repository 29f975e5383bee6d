"""FindController (key 10002): who decides, as far as the answerer has heard, and which nodes it knows.

Anybody in the cluster can be asked; that is how a node with nothing but seed addresses finds its way.
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message


class FindControllerRequest(Message, frozen=True):
    pass


class PeerNode(Message, frozen=True):
    node_id: Int32
    host: str
    port: Int32
    roles: tuple[str, ...]


class FindControllerResponse(Message, frozen=True):
    error_code: Int16
    cluster_id: str | None = None
    controller_id: Int32 = -1
    controller_epoch: Int64 = 0
    nodes: tuple[PeerNode, ...] = ()
    hears_controller: bool = True
    """Whether the controller answers it at present."""


API: Final = Api(
    key=10002,
    name="FindController",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=FindControllerRequest,
    response=FindControllerResponse,
)
