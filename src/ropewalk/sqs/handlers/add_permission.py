"""AddPermission: add a statement to a queue's policy, which is kept and not enforced."""

from typing import Annotated, ClassVar

from msgspec import field

from ropewalk.sqs.attributes import POLICY
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.permissions import with_statement
from ropewalk.sqs.shapes import EMPTY, Empty, Flat, Input


class AddPermissionRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "label", "actions")

    queue_url: str = ""
    label: str = ""
    account_ids: Annotated[tuple[str, ...], Flat("AWSAccountId")] = field(name="AWSAccountIds", default=())
    actions: Annotated[tuple[str, ...], Flat("ActionName")] = ()


async def handle(request: AddPermissionRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    policy = with_statement(
        queue.attributes.get(POLICY),
        arn=desk.arn(caller, queue.name),
        label=request.label,
        accounts=request.account_ids,
        actions=request.actions,
    )
    await desk.engine.changes.change(queue.name, {POLICY: policy}, mandate=caller.mandate("AddPermission"))
    return EMPTY
