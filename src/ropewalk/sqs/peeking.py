"""A look at a queue's messages that takes none of them, at the address and in the shape that LocalStack has for it.

Behaviour worth knowing
    Shown are visible messages; with `ShowInvisible=true` those in flight, too, and with `ShowDelayed=true` those that are delayed.
    The answer is XML as that of ReceiveMessage, or the same as JSON where `Accept` asks for it.
"""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from ropewalk.base.limits import SQS_PEEK_MESSAGES_MAX
from ropewalk.http1.message import Answer, Request
from ropewalk.sqs import query_protocol
from ropewalk.sqs.admission import Admission
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import missing
from ropewalk.sqs.handlers.receive_message import ReceiveMessageResult
from ropewalk.sqs.json_protocol import REQUEST_ID
from ropewalk.sqs.messages import AttributeValue
from ropewalk.sqs.needs import RECEIVE, at_url
from ropewalk.sqs.receiving import SYSTEM_ATTRIBUTES, Message, Rendering
from ropewalk.sqs.urls import name_in_url

NEEDS: Final = at_url(RECEIVE, is_asked_again=True)
"""As ReceiveMessage: bodies are shown."""
_HANDLE: Final = "SQS/BACKDOOR/ACCESS"
"""What LocalStack shows in place of a receipt handle: nothing can be done with it."""
_JSON: Final = "application/json"

_encode_xml: Final = query_protocol.encoder_of("ReceiveMessage", ReceiveMessageResult)


async def answer(
    request: Request, admission: Admission, caller: Caller, request_id: str, path: str
) -> Answer:
    """Raises `SqsRefusal`."""
    fields = query_protocol.parameters(request)
    url = fields.get("QueueUrl") or request.path.removeprefix(path).strip("/")
    if not url:
        raise missing("QueueUrl")
    messages = await admission.look(NEEDS, name_in_url(url), caller, partial(_seen, url, fields))
    if _JSON not in request.headers.get("accept", ""):
        document = _encode_xml(ReceiveMessageResult(messages=messages), request_id)
        return query_protocol.answer(document, request_id)
    return Answer(
        HTTPStatus.OK,
        (msgspec.json.encode(_as_json(messages, request_id)),),
        _JSON,
        ((REQUEST_ID, request_id),),
    )


async def _seen(url: str, fields: Mapping[str, str], _: None, desk: Desk, caller: Caller) -> list[Message]:
    queue = desk.queue(url)
    shown = {"visible", "unread"}
    if fields.get("ShowInvisible", "").lower() == "true":
        shown |= {"in flight", "resting", "dying", "moving"}
    if fields.get("ShowDelayed", "").lower() == "true":
        shown.add("delayed")
    seen = await desk.engine.messages.peek(queue, count_max=SQS_PEEK_MESSAGES_MAX)
    rendering = Rendering(desk, caller, queue, SYSTEM_ATTRIBUTES, lambda _: True)
    return [
        rendering.message(
            each.partition,
            each.record,
            receipt=None,
            receive_count=each.receive_count,
            first_received_at_ms=each.first_received_at_ms,
            handle=_HANDLE,
        )
        for each in seen
        if each.state in shown
    ]


def _as_json(messages: list[Message], request_id: str) -> Mapping[str, object]:
    """The XML, with an object for each element."""
    return {
        "ReceiveMessageResponse": {
            "ReceiveMessageResult": {"Message": [_message(each) for each in messages]},
            "ResponseMetadata": {"RequestId": request_id},
        }
    }


def _message(message: Message) -> Mapping[str, object]:
    shown: dict[str, object] = {
        "MessageId": message.message_id,
        "ReceiptHandle": message.receipt_handle,
        "MD5OfBody": message.body_md5,
        "Body": message.body,
        "Attribute": _named(message.attributes or {}),
    }
    if message.message_attributes:
        shown["MD5OfMessageAttributes"] = message.attributes_md5
        shown["MessageAttribute"] = _named(message.message_attributes)
    return shown


def _named(values: Mapping[str, str] | Mapping[str, AttributeValue]) -> list[Mapping[str, object]]:
    return [{"Name": name, "Value": value} for name, value in values.items()]
