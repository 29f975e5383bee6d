"""DeleteMessageBatch: up to ten messages that the receiver is done with, each answered for itself."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from ropewalk.sqs import batches
from ropewalk.sqs.batches import FailedEntry
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import SqsRefusal
from ropewalk.sqs.handles import in_words
from ropewalk.sqs.shapes import Flat, Input, Output

_ENTRY = "DeleteMessageBatchRequestEntry"


class DeleteMessageBatchEntry(Input, frozen=True, kw_only=True):
    id: str = ""
    receipt_handle: str = ""


class DeleteMessageBatchRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    entries: Annotated[tuple[DeleteMessageBatchEntry, ...], Flat(_ENTRY)] = ()


class DeletedEntry(Output, frozen=True, kw_only=True):
    id: str


class DeleteMessageBatchResult(Output, frozen=True, kw_only=True):
    successful: Annotated[Sequence[DeletedEntry], Flat("DeleteMessageBatchResultEntry")]
    failed: Annotated[Sequence[FailedEntry], Flat("BatchResultErrorEntry")]


async def handle(request: DeleteMessageBatchRequest, desk: Desk, _caller: Caller) -> DeleteMessageBatchResult:
    queue = desk.queue(request.queue_url)
    batches.check(request.entries, kind=_ENTRY)
    failed: list[FailedEntry] = []
    readable, receipts = [], []
    for entry in request.entries:
        try:
            receipts.append(desk.receipts.read(queue.queue_id, entry.receipt_handle))
            readable.append(entry)
        except SqsRefusal as refusal:
            failed.append(batches.failed(entry.id, refusal, handle=entry.receipt_handle))
    outcomes = await desk.engine.messages.delete(queue, receipts) if receipts else ()
    successful: list[DeletedEntry] = []
    for entry, error in zip(readable, outcomes, strict=True):
        if error is None:
            successful.append(DeletedEntry(id=entry.id))
        else:
            failed.append(batches.failed(entry.id, in_words(error, entry.receipt_handle)))
    return DeleteMessageBatchResult(successful=successful, failed=failed)
