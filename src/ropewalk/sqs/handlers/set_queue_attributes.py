"""SetQueueAttributes: change what a queue is set to; what is not named stays as it is."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from ropewalk.sqs.attributes import FIFO_QUEUE, TRUE, canonical, check_together, stripped
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import INVALID_ATTRIBUTE_VALUE, SqsRefusal
from ropewalk.sqs.shapes import EMPTY, NAME_AND_VALUE, Empty, Input


class SetQueueAttributesRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "attributes")

    queue_url: str = ""
    attributes: Annotated[Mapping[str, str], NAME_AND_VALUE] = {}


async def handle(request: SetQueueAttributesRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    attributes = stripped(request.attributes)
    fifo = attributes.pop(FIFO_QUEUE, None) if queue.is_fifo else None
    if fifo is not None and fifo.lower() != TRUE:
        text = f"Invalid value for the parameter {FIFO_QUEUE}. Reason: Modifying queue type is not supported."
        raise SqsRefusal(INVALID_ATTRIBUTE_VALUE, text)
    checked = canonical(attributes, name=queue.name, is_fifo=queue.is_fifo, find=desk.target)
    changes = check_together(checked, queue.attributes, is_fifo=queue.is_fifo)
    if changes:
        await desk.engine.changes.change(queue.name, changes, mandate=caller.mandate("SetQueueAttributes"))
    return EMPTY
