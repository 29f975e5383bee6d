"""ClusterHealth (key 10010): the active controller's account of what is wrong in the cluster, the worst first."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int64, Message


class ClusterHealthRequest(Message, frozen=True):
    pass


class ClusterTrouble(Message, frozen=True):
    what: str
    where: str
    why: str


class ClusterHealthResponse(ControllerAnswer, frozen=True):
    metadata_offset: Int64 = -1
    troubles: tuple[ClusterTrouble, ...] = ()


API: Final = Api(
    key=10010,
    name="ClusterHealth",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=ClusterHealthRequest,
    response=ClusterHealthResponse,
)
