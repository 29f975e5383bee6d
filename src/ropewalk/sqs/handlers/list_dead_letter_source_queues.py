"""ListDeadLetterSourceQueues: the addresses of the queues whose dead letters go to this one."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import field

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.listing import page
from ropewalk.sqs.shapes import Flat, Input, Output


class ListDeadLetterSourceQueuesRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    next_token: str | None = None
    max_results: int | None = None


class ListDeadLetterSourceQueuesResult(Output, frozen=True, kw_only=True):
    queue_urls: Annotated[Sequence[str], Flat("QueueUrl")] = field(name="queueUrls")
    next_token: str | None = None


async def handle(
    request: ListDeadLetterSourceQueuesRequest, desk: Desk, caller: Caller
) -> ListDeadLetterSourceQueuesResult:
    queue = desk.queue(request.queue_url)
    names = desk.engine.facts.sources_of(queue.name)
    shown, next_token = page(names, count_max=request.max_results, token=request.next_token)
    return ListDeadLetterSourceQueuesResult(
        queue_urls=[desk.url(caller, name) for name in shown], next_token=next_token
    )
