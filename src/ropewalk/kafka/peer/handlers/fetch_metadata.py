"""FetchMetadata: the metadata log from an offset on, waiting for news if there is none.

Behaviour worth knowing
    The answers of one connection come in order, so a wait delays all behind it; nodes have a connection for this alone.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import METADATA_WAIT_MS_MAX
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.metadata.lineage import Position
from ropewalk.runtime.errands import Errands
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.fetch_metadata import FetchMetadataRequest, FetchMetadataResponse


class MetadataPage(Protocol):
    @property
    def controller_epoch(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def snapshot(self) -> bytes | None: ...

    @property
    def records(self) -> bytes | None: ...


class MetadataFeed(Protocol):
    async def fetch(self, position: Position, wait_ms: int) -> MetadataPage:
        """Records from `position` on, or a snapshot; no records after `wait_ms` without news.

        Raises `HistoryParted` for a position of another history.
        """


async def handle(
    request: FetchMetadataRequest, caller: Caller, *, feed: MetadataFeed, errands: Errands
) -> FetchMetadataResponse:
    del caller
    wait_ms = max(0, min(request.wait_ms, METADATA_WAIT_MS_MAX))
    position = Position(request.start_offset, request.applied_epoch, request.applied_reign)
    try:
        page = await errands.begin(feed.fetch(position, wait_ms))
    except RopewalkError as error:
        return FetchMetadataResponse(code_for(error), str(error))
    return FetchMetadataResponse(
        ErrorCode.NONE, None, page.controller_epoch, page.snapshot, page.end_offset, page.records
    )
