"""PurgeQueue: drop all messages of a queue, those that somebody has received included; once a minute."""

from typing import ClassVar

from ropewalk.base.errors import PurgeInProgress
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import PURGE_IN_PROGRESS, SqsRefusal
from ropewalk.sqs.shapes import EMPTY, Empty, Input


class PurgeQueueRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""


async def handle(request: PurgeQueueRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    if desk.rules.deletes_need_admin:
        desk.require_admin(caller, "PurgeQueue")
    try:
        await desk.engine.messages.purge(queue)
    except PurgeInProgress:
        text = f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
        raise SqsRefusal(PURGE_IN_PROGRESS, text) from None
    return EMPTY
