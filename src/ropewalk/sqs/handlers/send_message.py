"""SendMessage: put a message into a queue; answered when it is committed."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import field

from ropewalk.base.errors import RopewalkError
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import INVALID_PARAMETER_VALUE, SqsRefusal
from ropewalk.sqs.messages import AttributeValue
from ropewalk.sqs.sending import check_ids, id_of, prepare, sequence_number, size_max, terms_of
from ropewalk.sqs.shapes import Flat, Input, Output


class SendMessageRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "message_body")

    queue_url: str = ""
    message_body: str = ""
    delay_seconds: int | None = None
    message_attributes: Annotated[Mapping[str, AttributeValue] | None, Flat("MessageAttribute")] = None
    message_system_attributes: Annotated[
        Mapping[str, AttributeValue] | None, Flat("MessageSystemAttribute")
    ] = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageResult(Output, frozen=True, kw_only=True):
    body_md5: str = field(name="MD5OfMessageBody")
    attributes_md5: str | None = field(name="MD5OfMessageAttributes", default=None)
    system_attributes_md5: str | None = field(name="MD5OfMessageSystemAttributes", default=None)
    message_id: str
    sequence_number: str | None = None


async def handle(request: SendMessageRequest, desk: Desk, caller: Caller) -> SendMessageResult:
    queue = desk.queue(request.queue_url)
    terms = terms_of(queue, sender=caller.access_key, now_ms=desk.clock.now_ms())
    if terms.is_fifo:
        check_ids(request, queue)
    prepared = prepare(request, terms)
    bytes_max = size_max(queue)
    if prepared.size_bytes > bytes_max:
        text = f"One or more parameters are invalid. Reason: Message must be shorter than {bytes_max} bytes."
        raise SqsRefusal(INVALID_PARAMETER_VALUE, text)
    (sent,) = await desk.engine.messages.send(queue, (prepared.outgoing,))
    if isinstance(sent, RopewalkError):
        raise sent
    return SendMessageResult(
        body_md5=prepared.body_md5,
        attributes_md5=prepared.attributes_md5,
        system_attributes_md5=prepared.system_attributes_md5,
        message_id=id_of(queue, sent),
        sequence_number=sequence_number(queue, sent.offset) if terms.is_fifo else None,
    )
