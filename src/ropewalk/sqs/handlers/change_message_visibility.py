"""ChangeMessageVisibility: hide a message that was received for longer, or show it again."""

from typing import ClassVar

from ropewalk.sqs.attributes import VISIBILITY_TIMEOUT, out_of_range
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import missing
from ropewalk.sqs.handlers.receive_message import VISIBILITY_S_MAX
from ropewalk.sqs.handles import in_words
from ropewalk.sqs.shapes import EMPTY, Empty, Input


class ChangeMessageVisibilityRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "receipt_handle")

    queue_url: str = ""
    receipt_handle: str = ""
    visibility_timeout: int | None = None


async def handle(request: ChangeMessageVisibilityRequest, desk: Desk, _caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    visibility_s = check_visibility(request.visibility_timeout)
    receipt = desk.receipts.read(queue.queue_id, request.receipt_handle)
    (error,) = await desk.engine.messages.change_visibility(queue, ((receipt, 1_000 * visibility_s),))
    if error is not None:
        raise in_words(error, request.receipt_handle, visibility_s)
    return EMPTY


def check_visibility(visibility_s: int | None) -> int:
    """Raises `SqsRefusal`."""
    if visibility_s is None:
        raise missing(VISIBILITY_TIMEOUT)
    if not 0 <= visibility_s <= VISIBILITY_S_MAX:
        raise out_of_range(VISIBILITY_TIMEOUT, visibility_s, 0, VISIBILITY_S_MAX)
    return visibility_s
