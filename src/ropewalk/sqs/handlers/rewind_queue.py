"""RewindQueue: as if nothing since a moment had been received; an action of Ropewalk's own."""

from typing import ClassVar, Final

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import invalid, missing
from ropewalk.sqs.shapes import EMPTY, Empty, Input

_TIMESTAMP_MAX: Final = 2**63 - 1
"""As large as a record's timestamp can be."""


class RewindQueueRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    timestamp: int | None = None
    """In milliseconds since 1970."""


async def handle(request: RewindQueueRequest, desk: Desk, caller: Caller) -> Empty:
    desk.require_admin(caller, "RewindQueue")
    queue = desk.queue(request.queue_url)
    if request.timestamp is None:
        raise missing("Timestamp")
    if not 0 <= request.timestamp <= _TIMESTAMP_MAX:
        raise invalid("Timestamp", request.timestamp, f"Must be between 0 and {_TIMESTAMP_MAX}.")
    await desk.engine.messages.rewind(queue, to_ms=request.timestamp)
    return EMPTY
