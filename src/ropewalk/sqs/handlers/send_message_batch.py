"""SendMessageBatch: up to ten messages at once, each answered for itself.

Behaviour worth knowing
    What a FIFO queue demands and an entry lacks fails the whole request; what is wrong with one message fails its entry.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import field

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import SQS_MESSAGE_BYTES_MAX
from ropewalk.metadata.queues import Queue
from ropewalk.sqs import batches
from ropewalk.sqs.batches import FailedEntry
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import (
    BATCH_REQUEST_TOO_LONG,
    INVALID_PARAMETER_VALUE,
    SqsRefusal,
    missing,
)
from ropewalk.sqs.message_ids import message_id
from ropewalk.sqs.messages import AttributeValue
from ropewalk.sqs.sending import Prepared, check_ids, prepare, sequence_number, size_max, terms_of
from ropewalk.sqs.shapes import Flat, Input, Output

_ENTRY = "SendMessageBatchRequestEntry"


class SendMessageBatchEntry(Input, frozen=True, kw_only=True):
    id: str = ""
    message_body: str = ""
    delay_seconds: int | None = None
    message_attributes: Annotated[Mapping[str, AttributeValue] | None, Flat("MessageAttribute")] = None
    message_system_attributes: Annotated[
        Mapping[str, AttributeValue] | None, Flat("MessageSystemAttribute")
    ] = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageBatchRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    entries: Annotated[tuple[SendMessageBatchEntry, ...], Flat(_ENTRY)] = ()


class SentEntry(Output, frozen=True, kw_only=True):
    id: str
    message_id: str
    body_md5: str = field(name="MD5OfMessageBody")
    attributes_md5: str | None = field(name="MD5OfMessageAttributes", default=None)
    system_attributes_md5: str | None = field(name="MD5OfMessageSystemAttributes", default=None)
    sequence_number: str | None = None


class SendMessageBatchResult(Output, frozen=True, kw_only=True):
    successful: Annotated[Sequence[SentEntry], Flat("SendMessageBatchResultEntry")]
    failed: Annotated[Sequence[FailedEntry], Flat("BatchResultErrorEntry")]


async def handle(request: SendMessageBatchRequest, desk: Desk, caller: Caller) -> SendMessageBatchResult:
    queue = desk.queue(request.queue_url)
    batches.check(request.entries, kind=_ENTRY)
    terms = terms_of(queue, sender=caller.access_key, now_ms=desk.clock.now_ms())
    _check_whole(request.entries, queue, is_fifo=terms.is_fifo)
    failed: list[FailedEntry] = []
    prepared: list[tuple[str, Prepared]] = []
    bytes_max = size_max(queue)
    total_bytes = 0
    for entry in request.entries:
        try:
            each = prepare(entry, terms)
            total_bytes += each.size_bytes
            if each.size_bytes > bytes_max:
                raise _too_large(bytes_max)
            prepared.append((entry.id, each))
        except SqsRefusal as refusal:
            failed.append(batches.failed(entry.id, refusal))
    if total_bytes > SQS_MESSAGE_BYTES_MAX:
        text = f"Batch requests cannot be longer than {SQS_MESSAGE_BYTES_MAX} bytes. You have sent {total_bytes} bytes."
        raise SqsRefusal(BATCH_REQUEST_TOO_LONG, text)
    successful: list[SentEntry] = []
    if prepared:
        outcomes = await desk.engine.messages.send(queue, [each.outgoing for _, each in prepared])
        is_fifo, topic_id = terms.is_fifo, queue.topic_id
        for (entry_id, each), sent in zip(prepared, outcomes, strict=True):
            if isinstance(sent, RopewalkError):
                failed.append(batches.failed(entry_id, sent))
                continue
            successful.append(
                SentEntry(
                    id=entry_id,
                    message_id=message_id(topic_id, sent.partition, sent.offset),
                    body_md5=each.body_md5,
                    attributes_md5=each.attributes_md5,
                    system_attributes_md5=each.system_attributes_md5,
                    sequence_number=sequence_number(queue, sent.offset) if is_fifo else None,
                )
            )
    return SendMessageBatchResult(successful=successful, failed=failed)


def _check_whole(entries: Sequence[SendMessageBatchEntry], queue: Queue, *, is_fifo: bool) -> None:
    for entry in entries:
        if not entry.message_body:
            raise missing("MessageBody")
        if is_fifo:
            if entry.message_group_id is None:  # SendMessage has another code for the same words
                raise SqsRefusal(INVALID_PARAMETER_VALUE, str(missing("MessageGroupId")))
            check_ids(entry, queue)


def _too_large(bytes_max: int) -> SqsRefusal:
    text = (
        f"One or more parameters cannot be validated. Reason: Message must be shorter than {bytes_max} bytes."
    )
    return SqsRefusal(INVALID_PARAMETER_VALUE, text)
