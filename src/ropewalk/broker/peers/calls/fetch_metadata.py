"""FetchMetadata: a node that does not open the metadata's home asks the controller what comes next in the log."""

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.broker.peers.peers import Lane
from ropewalk.metadata.lineage import Position
from ropewalk.wire.peer import fetch_metadata as wire


class MetadataPage(Struct, frozen=True):
    """Either a snapshot to start from, or the next records; `end_offset` is behind them."""

    controller_epoch: int
    end_offset: int
    snapshot: bytes | None
    records: bytes | None


def fetch_metadata(node_id: NodeId, position: Position, wait_ms: int) -> ControllerCall[MetadataPage]:
    request = wire.FetchMetadataRequest(node_id, position.end_offset, wait_ms, position.epoch, position.reign)
    return controller_call(wire.API, request, _page, lane=Lane.METADATA)


def _page(answer: wire.FetchMetadataResponse) -> MetadataPage:
    return MetadataPage(
        answer.controller_epoch,
        answer.end_offset,
        None if answer.snapshot is None else bytes(answer.snapshot),
        None if answer.records is None else bytes(answer.records),
    )
