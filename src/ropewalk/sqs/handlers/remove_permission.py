"""RemovePermission: take a statement out of a queue's policy."""

from typing import ClassVar

from ropewalk.sqs.attributes import POLICY
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.permissions import without_statement
from ropewalk.sqs.shapes import EMPTY, Empty, Input


class RemovePermissionRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "label")

    queue_url: str = ""
    label: str = ""


async def handle(request: RemovePermissionRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    policy = without_statement(queue.attributes.get(POLICY), label=request.label)
    await desk.engine.changes.change(queue.name, {POLICY: policy}, mandate=caller.mandate("RemovePermission"))
    return EMPTY
