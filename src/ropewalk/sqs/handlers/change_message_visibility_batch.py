"""ChangeMessageVisibilityBatch: up to ten messages to be hidden for longer or shown again, each answered for itself."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from ropewalk.sqs import batches
from ropewalk.sqs.batches import FailedEntry
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import SqsRefusal
from ropewalk.sqs.handlers.change_message_visibility import check_visibility
from ropewalk.sqs.handles import in_words
from ropewalk.sqs.shapes import Flat, Input, Output

_ENTRY = "ChangeMessageVisibilityBatchRequestEntry"


class ChangeMessageVisibilityBatchEntry(Input, frozen=True, kw_only=True):
    id: str = ""
    receipt_handle: str = ""
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatchRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    entries: Annotated[tuple[ChangeMessageVisibilityBatchEntry, ...], Flat(_ENTRY)] = ()


class ChangedEntry(Output, frozen=True, kw_only=True):
    id: str


class ChangeMessageVisibilityBatchResult(Output, frozen=True, kw_only=True):
    successful: Annotated[Sequence[ChangedEntry], Flat("ChangeMessageVisibilityBatchResultEntry")]
    failed: Annotated[Sequence[FailedEntry], Flat("BatchResultErrorEntry")]


async def handle(
    request: ChangeMessageVisibilityBatchRequest, desk: Desk, _caller: Caller
) -> ChangeMessageVisibilityBatchResult:
    queue = desk.queue(request.queue_url)
    batches.check(request.entries, kind=_ENTRY)
    failed: list[FailedEntry] = []
    changes = []
    for entry in request.entries:
        try:
            visibility_s = check_visibility(entry.visibility_timeout)
            changes.append((entry, visibility_s, desk.receipts.read(queue.queue_id, entry.receipt_handle)))
        except SqsRefusal as refusal:
            failed.append(batches.failed(entry.id, refusal, handle=entry.receipt_handle))
    outcomes = (
        await desk.engine.messages.change_visibility(
            queue, [(receipt, 1_000 * visibility_s) for _, visibility_s, receipt in changes]
        )
        if changes
        else ()
    )
    successful: list[ChangedEntry] = []
    for (entry, visibility_s, _), error in zip(changes, outcomes, strict=True):
        if error is None:
            successful.append(ChangedEntry(id=entry.id))
        else:
            failed.append(batches.failed(entry.id, in_words(error, entry.receipt_handle, visibility_s)))
    return ChangeMessageVisibilityBatchResult(successful=successful, failed=failed)
