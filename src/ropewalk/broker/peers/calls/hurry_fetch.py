"""HurryFetch: have a leader answer a fetch that it may be holding."""

from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.wire.peer import hurry_fetch as wire


def hurry_fetch(session_id: int, session_epoch: int) -> Call[None]:
    return call(wire.API, wire.HurryFetchRequest(session_id, session_epoch), lambda _: None)
