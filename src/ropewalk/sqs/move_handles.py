"""The handle of a move task: base64 of JSON that names the task and its source, as SQS has it."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final
from uuid import UUID

import msgspec
from msgspec import Struct

from ropewalk.base.limits import MOVE_TASK_ID_BYTES
from ropewalk.sqs.errors import INVALID_PARAMETER_VALUE, SqsRefusal

_INVALID: Final = "Value for parameter TaskHandle is invalid."


class MoveHandle(Struct, frozen=True, rename="camel"):
    task_id: str
    source_arn: str

    def task(self) -> bytes | None:
        """The id as the cluster has it; None: no task has such an id."""
        try:
            return UUID(self.task_id).bytes
        except ValueError:
            return None


def make_move_handle(task_id: bytes, source_arn: str) -> str:
    assert len(task_id) == MOVE_TASK_ID_BYTES, "so many make a UUID"
    handle = MoveHandle(str(UUID(bytes=task_id)), source_arn)
    return b64encode(msgspec.json.encode(handle)).decode()


def parse_move_handle(text: str) -> MoveHandle:
    """Raises `SqsRefusal`."""
    try:
        return msgspec.json.decode(b64decode(text, validate=True), type=MoveHandle)
    except (Base64Error, ValueError):  # msgspec's errors are ValueErrors
        raise SqsRefusal(INVALID_PARAMETER_VALUE, _INVALID) from None
