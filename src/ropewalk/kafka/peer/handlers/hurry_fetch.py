"""HurryFetch: answer a replica's fetch without waiting any longer for records.

Behaviour worth knowing
    A session that is not there any more, or has gone on already, is no error: the fetch has been answered.
"""

from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.kafka.caller import Caller
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.hurry_fetch import HurryFetchRequest, HurryFetchResponse


async def handle(
    request: HurryFetchRequest, caller: Caller, *, sessions: FetchSessions
) -> HurryFetchResponse:
    del caller  # any node of the cluster: it costs the other one a look at what it follows
    sessions.hurry(request.session_id, request.session_epoch)
    return HurryFetchResponse(ErrorCode.NONE)
