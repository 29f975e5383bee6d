"""FindController: who decides, as far as this node has heard, and where the nodes are that it knows.

Behaviour worth knowing
    A node that can never follow the metadata again names nobody, and misses nobody: it knows of another history, whose epochs may be higher.
"""

from collections.abc import Callable

from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import PEER_LISTENER
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.find_controller import FindControllerRequest, FindControllerResponse, PeerNode


async def handle(
    request: FindControllerRequest,
    caller: Caller,
    *,
    image: Image,
    hears_controller: Callable[[], bool],
    has_parted: Callable[[], bool],
) -> FindControllerResponse:
    del request, caller
    if has_parted():
        return FindControllerResponse(ErrorCode.NONE, image.cluster_id)
    nodes = [
        PeerNode(broker.node_id, endpoint.host, endpoint.port, broker.roles)
        for broker in image.brokers.values()
        if (endpoint := broker.endpoint(PEER_LISTENER)) is not None
    ]
    return FindControllerResponse(
        ErrorCode.NONE,
        image.cluster_id,
        -1 if image.controller_id is None else image.controller_id,
        image.controller_epoch,
        tuple(nodes),
        hears_controller(),
    )
