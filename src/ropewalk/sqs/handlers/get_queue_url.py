"""GetQueueUrl: the address of a queue, by its name."""

from typing import ClassVar

from msgspec import field

from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import no_such_queue
from ropewalk.sqs.shapes import Input, Output


class GetQueueUrlRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_name",)

    queue_name: str = ""
    owner_account: str | None = field(name="QueueOwnerAWSAccountId", default=None)


class GetQueueUrlResult(Output, frozen=True, kw_only=True):
    queue_url: str


async def handle(request: GetQueueUrlRequest, desk: Desk, caller: Caller) -> GetQueueUrlResult:
    if desk.engine.facts.get(request.queue_name) is None:
        raise no_such_queue()
    return GetQueueUrlResult(queue_url=desk.url(caller, request.queue_name))
