"""What every answer of a controller begins with, so that whoever asked can tell a refusal without knowing the API."""

from ropewalk.wire.types import Int16, Message


class ControllerAnswer(Message, frozen=True):
    error_code: Int16
    error_message: str | None = None
