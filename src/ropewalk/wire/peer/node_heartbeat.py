"""NodeHeartbeat (key 10004): a node is alive, has the metadata up to an offset, carries so much load, and says what is wrong with it."""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int32, Int64, Message, Uuid, tagged


class PartitionLoad(Message, frozen=True):
    """Of one partition that the node leads, per second, over the last minute or so."""

    topic_id: Uuid
    index: Int32
    bytes_in: Int64
    bytes_out: Int64
    records_in: Int64


class NodeLoad(Message, frozen=True):
    cpu_permille: Int32 = 0
    disk_used_bytes: Int64 = 0
    disk_total_bytes: Int64 = 0
    partitions: tuple[PartitionLoad, ...] = ()


class NodeComplaint(Message, frozen=True):
    check: str
    problem: str


class NodeHeartbeatRequest(Message, frozen=True):
    node_id: Int32
    broker_epoch: Int64
    metadata_offset: Int64
    """How far it has followed."""
    wants_to_stop: bool
    """Take leadership away from it: it stops when it has none left."""
    load: NodeLoad | None
    """None: nothing new since the last heartbeat."""
    complaints: Annotated[tuple[NodeComplaint, ...], tagged(10)] = ()
    applied_offset: Annotated[Int64, tagged(20)] = 0
    """How far it has applied the metadata, whether or not it has followed. In which epoch and reign the last record was
    appended says of which history that is."""
    applied_epoch: Annotated[Int64, tagged(21)] = 0
    applied_reign: Annotated[str, tagged(22)] = ""


class NodeHeartbeatResponse(ControllerAnswer, frozen=True):
    is_fenced: bool = True
    may_stop: bool = False
    controller_id: Int32 = -1
    metadata_end_offset: Annotated[Int64, tagged(10)] = -1
    """Where the metadata ends, as the controller has it; -1 where it does not say."""
    clock_ms: Annotated[Int64, tagged(11)] = -1
    """The controller's clock when it answered; -1 where it does not say."""
    hindrance: Annotated[str | None, tagged(20)] = None
    """Why the controller cannot do at present what follows from the heartbeat."""


API: Final = Api(
    key=10004,
    name="NodeHeartbeat",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=NodeHeartbeatRequest,
    response=NodeHeartbeatResponse,
)
