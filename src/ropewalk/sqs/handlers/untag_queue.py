"""UntagQueue: take tags from a queue; what it does not have is fine."""

from typing import Annotated, ClassVar

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.shapes import EMPTY, Empty, Flat, Input


class UntagQueueRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "tag_keys")

    queue_url: str = ""
    tag_keys: Annotated[tuple[str, ...], Flat("TagKey")] = ()


async def handle(request: UntagQueueRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    gone = {key: None for key in request.tag_keys if key in queue.tags}
    if gone:
        await desk.engine.changes.tag(queue.name, gone, mandate=caller.mandate("UntagQueue"))
    return EMPTY
