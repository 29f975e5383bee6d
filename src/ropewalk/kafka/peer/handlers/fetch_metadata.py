"""FetchMetadata: the metadata log from an offset on, waiting for news if there is none.

Behaviour worth knowing
    While it waits, the connection's next request is kept back; nodes have a connection for it. When the node goes away the wait
    ends.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import METADATA_WAIT_MS_MAX
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.peer.fetch_metadata import FetchMetadataRequest, FetchMetadataResponse


class MetadataFeed(Protocol):
    async def fetch(self, start_offset: int, *, wait_ms: int) -> FetchMetadataResponse:
        """Records from `start_offset` on, or a snapshot; empty after `wait_ms` without news. Raises `NotController` where another
        node decides."""


async def handle(
    request: FetchMetadataRequest, caller: Caller, *, feed: MetadataFeed
) -> FetchMetadataResponse:
    del caller
    try:
        wait_ms = max(0, min(request.wait_ms, METADATA_WAIT_MS_MAX))
        return await feed.fetch(request.start_offset, wait_ms=wait_ms)
    except RopewalkError as error:
        return FetchMetadataResponse(code_for(error), str(error))
