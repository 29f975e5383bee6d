"""ListQueueTags: the tags of a queue."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.shapes import KEY_AND_VALUE, Input, Output


class ListQueueTagsRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""


class ListQueueTagsResult(Output, frozen=True, kw_only=True):
    tags: Annotated[Mapping[str, str] | None, KEY_AND_VALUE] = None


async def handle(request: ListQueueTagsRequest, desk: Desk, _caller: Caller) -> ListQueueTagsResult:
    queue = desk.queue(request.queue_url)
    return ListQueueTagsResult(tags=dict(queue.tags) or None)
