"""AWS JSON 1.0: the action is in the header `X-Amz-Target`, and bodies are objects with the names of the declarations."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from ropewalk.base.errors import RopewalkError
from ropewalk.http1.message import Answer, Request
from ropewalk.sqs.errors import SERIALIZATION, SqsRefusal, fault_of, text_of
from ropewalk.sqs.shapes import Input, Output

CONTENT_TYPE: Final = "application/x-amz-json-1.0"
TARGET: Final = "x-amz-target"
REQUEST_ID: Final = "x-amzn-requestid"
QUERY_ERROR: Final = "x-amzn-query-error"

Q = TypeVar("Q", bound=Input)

_encode: Final = msgspec.json.Encoder().encode


def decoder_of(shape: type[Q]) -> Callable[[bytes], Q]:
    """Raises `SqsRefusal` where the body is not what the action takes."""
    decode = msgspec.json.Decoder(shape).decode

    def decode_body(body: bytes) -> Q:
        try:
            return decode(body or b"{}")
        except msgspec.DecodeError as error:  # also where values have another type
            raise SqsRefusal(SERIALIZATION, str(error)) from None
        except RecursionError:
            raise SqsRefusal(SERIALIZATION, "the body is nested too deeply") from None
        except UnicodeDecodeError:
            raise SqsRefusal(SERIALIZATION, "the body is not UTF-8") from None

    return decode_body


def answer(output: Output, request_id: str) -> Answer:
    return Answer(HTTPStatus.OK, (_encode(output),), CONTENT_TYPE, ((REQUEST_ID, request_id),))


def refuse(error: RopewalkError, request_id: str) -> Answer:
    fault = fault_of(error)
    document = {"__type": fault.json_type, "message": text_of(error, fault)}
    whose = "Sender" if fault.is_senders else "Receiver"
    headers = ((REQUEST_ID, request_id), (QUERY_ERROR, f"{fault.query_code};{whose}"))
    return Answer(fault.status, (_encode(document),), CONTENT_TYPE, headers)


def is_json(request: Request) -> bool:
    return TARGET in request.headers
