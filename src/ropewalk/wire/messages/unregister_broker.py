"""UnregisterBroker (key 64): forget a broker that is gone for good. There is one version.

Ours, for those who ask: the broker is to leave, and is drained first; or it is to stay after all; or others are to lead while somebody works on it.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, tagged


class UnregisterBrokerRequest(Message, frozen=True):
    broker_id: Int32
    drain: Annotated[bool, tagged(10_000)] = False
    keep: Annotated[bool, tagged(10_001)] = False
    """Take back a `drain`."""
    maintenance: Annotated[Int8, tagged(10_002)] = -1
    """1: somebody works on the broker, and others lead; 0: no longer. Said together with `keep`, which a broker without maintenance obeys."""


class UnregisterBrokerResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16 = 0
    error_message: str | None = None
    stage: Annotated[str, tagged(10_000)] = ""
    """How far the broker is on its way out, where it was to be drained: draining, drained or removed."""
    held_count: Annotated[Int32, tagged(10_001)] = 0
    """Partitions of which it still keeps a copy."""


API: Final = Api(
    key=64,
    name="UnregisterBroker",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=UnregisterBrokerRequest,
    response=UnregisterBrokerResponse,
)
