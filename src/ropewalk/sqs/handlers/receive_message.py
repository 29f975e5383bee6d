"""ReceiveMessage: be given messages, which are hidden from others for a while; waits for some if asked to."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from ropewalk.sqs.attributes import VISIBILITY_TIMEOUT, WAIT_TIME, integer_of, out_of_range
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import invalid
from ropewalk.sqs.messages import check_id
from ropewalk.sqs.receiving import Message, Rendering, asked_system_attributes, wanted_attributes
from ropewalk.sqs.sending import NOT_FOR_THIS_TYPE
from ropewalk.sqs.shapes import Flat, Input, Output

COUNT_MAX: Final = 10
WAIT_S_MAX: Final = 20
VISIBILITY_S_MAX: Final = 43_200


class ReceiveMessageRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str = ""
    attribute_names: Annotated[tuple[str, ...] | None, Flat("AttributeName")] = None
    message_system_attribute_names: Annotated[tuple[str, ...] | None, Flat("MessageSystemAttributeName")] = (
        None
    )
    message_attribute_names: Annotated[tuple[str, ...] | None, Flat("MessageAttributeName")] = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class ReceiveMessageResult(Output, frozen=True, kw_only=True):
    messages: Annotated[Sequence[Message] | None, Flat("Message")] = None


async def handle(request: ReceiveMessageRequest, desk: Desk, caller: Caller) -> ReceiveMessageResult:
    queue = desk.queue(request.queue_url)
    count_max = 1 if request.max_number_of_messages is None else request.max_number_of_messages
    if not 1 <= count_max <= COUNT_MAX:
        reason = f"Must be between 1 and {COUNT_MAX}, if provided."
        raise invalid("MaxNumberOfMessages", count_max, reason)
    wait_s = request.wait_time_seconds
    if wait_s is None:
        wait_s = integer_of(queue, WAIT_TIME)
    elif not 0 <= wait_s <= WAIT_S_MAX:
        raise out_of_range("WaitTimeSeconds", wait_s, 0, WAIT_S_MAX)
    visibility_s = request.visibility_timeout
    if visibility_s is None:
        visibility_s = integer_of(queue, VISIBILITY_TIMEOUT)
    elif not 0 <= visibility_s <= VISIBILITY_S_MAX:
        raise out_of_range(VISIBILITY_TIMEOUT, visibility_s, 0, VISIBILITY_S_MAX)
    attempt_id = request.receive_request_attempt_id
    if attempt_id is not None:
        check_id("ReceiveRequestAttemptId", attempt_id)
        if not queue.is_fifo:
            raise invalid("ReceiveRequestAttemptId", attempt_id, NOT_FOR_THIS_TYPE)
    asked = asked_system_attributes(request.attribute_names, request.message_system_attribute_names)
    delivered = await desk.engine.messages.receive(
        queue,
        count_max=count_max,
        visibility_ms=1_000 * visibility_s,
        wait_ms=1_000 * wait_s,
        request_id=attempt_id.encode() if attempt_id else b"",
        hold=caller.hold,
    )
    if not delivered:
        return ReceiveMessageResult()
    rendering = Rendering(desk, caller, queue, asked, wanted_attributes(request.message_attribute_names))
    return ReceiveMessageResult(
        messages=[
            rendering.message(
                each.receipt.partition,
                each.record,
                receipt=each.receipt,
                receive_count=each.receive_count,
                first_received_at_ms=each.first_received_at_ms,
            )
            for each in delivered
        ]
    )
