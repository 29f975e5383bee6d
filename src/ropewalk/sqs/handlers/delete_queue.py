"""DeleteQueue: take a queue away with all its messages."""

from typing import ClassVar

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.shapes import EMPTY, Empty, Input


class DeleteQueueRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""


async def handle(request: DeleteQueueRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    if desk.rules.deletes_need_admin:
        desk.require_admin(caller, "DeleteQueue")
    await desk.engine.changes.delete(queue.name, mandate=caller.mandate("DeleteQueue"))
    return EMPTY
