"""FetchMetadata (key 10006): the metadata log from an offset on, or a snapshot where it no longer reaches back that far.

Records and snapshot are in the encoding of `metadata/`, which this layer does not know.
A node says which history it has applied so far: OFFSET_OUT_OF_RANGE where that is not the controller's.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int32, Int64, Message, tagged


class FetchMetadataRequest(Message, frozen=True):
    node_id: Int32
    start_offset: Int64
    wait_ms: Int32
    """How long to wait where there is nothing new."""
    applied_epoch: Annotated[Int64, tagged(20)] = 0
    """In which epoch and reign the last record before `start_offset` was appended; 0 where that is not known."""
    applied_reign: Annotated[str, tagged(21)] = ""


class FetchMetadataResponse(ControllerAnswer, frozen=True):
    controller_epoch: Int64 = 0
    snapshot: bytes | None = None
    """To start from instead of `start_offset`."""
    end_offset: Int64 = 0
    """After `records`, or the snapshot's."""
    records: bytes | None = None


API: Final = Api(
    key=10006,
    name="FetchMetadata",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=FetchMetadataRequest,
    response=FetchMetadataResponse,
)
