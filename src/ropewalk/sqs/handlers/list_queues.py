"""ListQueues: the addresses of all queues, or of those whose names begin so, in pages where that is asked for."""

from collections.abc import Sequence
from typing import Annotated

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.listing import page
from ropewalk.sqs.shapes import Flat, Input, Output


class ListQueuesRequest(Input, frozen=True, kw_only=True):
    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class ListQueuesResult(Output, frozen=True, kw_only=True):
    queue_urls: Annotated[Sequence[str] | None, Flat("QueueUrl")] = None
    next_token: str | None = None


async def handle(request: ListQueuesRequest, desk: Desk, caller: Caller) -> ListQueuesResult:
    names = desk.engine.facts.names(request.queue_name_prefix or "")
    shown, next_token = page(names, count_max=request.max_results, token=request.next_token)
    urls = [desk.url(caller, name) for name in shown]
    return ListQueuesResult(queue_urls=urls or None, next_token=next_token)
