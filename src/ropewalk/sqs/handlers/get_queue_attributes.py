"""GetQueueAttributes: what a queue is set to, and how many messages it has.

Behaviour worth knowing
    The leaders are asked only where their figures are asked for.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from ropewalk.sqs.attributes import COUNTS, asked_names, settled
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.shapes import NAME_AND_VALUE, Flat, Input, Output


class GetQueueAttributesRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    attribute_names: Annotated[tuple[str, ...] | None, Flat("AttributeName")] = None


class GetQueueAttributesResult(Output, frozen=True, kw_only=True):
    attributes: Annotated[Mapping[str, str] | None, NAME_AND_VALUE] = None


async def handle(request: GetQueueAttributesRequest, desk: Desk, caller: Caller) -> GetQueueAttributesResult:
    queue = desk.queue(request.queue_url)
    asked = asked_names(request.attribute_names or (), is_fifo=queue.is_fifo)
    values = dict(settled(queue))
    values["CreatedTimestamp"] = str(queue.created_at_ms // 1_000)
    values["LastModifiedTimestamp"] = str(queue.modified_at_ms // 1_000)
    values["QueueArn"] = desk.arn(caller, queue.name)
    if asked & COUNTS:
        totals = await desk.engine.messages.totals(queue)
        values["ApproximateNumberOfMessages"] = str(totals.visible_count)
        values["ApproximateNumberOfMessagesNotVisible"] = str(totals.in_flight_count)
        values["ApproximateNumberOfMessagesDelayed"] = str(totals.delayed_count)
    found = {name: value for name, value in values.items() if name in asked}
    return GetQueueAttributesResult(attributes=found or None)
