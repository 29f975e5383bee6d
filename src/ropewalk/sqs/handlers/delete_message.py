"""DeleteMessage: the receiver is done with a message; answered when that is committed."""

from typing import ClassVar

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.handles import in_words
from ropewalk.sqs.shapes import EMPTY, Empty, Input


class DeleteMessageRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "receipt_handle")

    queue_url: str = ""
    receipt_handle: str = ""


async def handle(request: DeleteMessageRequest, desk: Desk, _caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    receipt = desk.receipts.read(queue.queue_id, request.receipt_handle)
    (error,) = await desk.engine.messages.delete(queue, (receipt,))
    if error is not None:
        raise in_words(error, request.receipt_handle)
    return EMPTY
