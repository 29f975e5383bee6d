"""ChangeQueue (key 10020): a queue is to be made, changed or deleted, or its messages moved, as another node wants it."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int8, Int32, Int64, Message

CREATE: Final = 0
CHANGE: Final = 1
DELETE: Final = 2
START_MOVE: Final = 3
END_MOVE: Final = 4
CANCEL_MOVE: Final = 5


class NamedText(Message, frozen=True):
    """An attribute or a tag; without a value it is taken away."""

    name: str
    value: str | None


class ChangeQueueRequest(Message, frozen=True):
    action: Int8
    name: str
    attributes: tuple[NamedText, ...] = ()
    tags: tuple[NamedText, ...] = ()
    owner: str | None = None
    partition_count: Int32 = 1
    topic: str | None = None
    """To be made: of a topic that exists; null: with a topic of its own."""
    starts: tuple[Int64, ...] = ()
    task_id: bytes = b""
    """Of messages that are to be moved, or were, and so all that follows."""
    target: str | None = None
    messages_per_second_max: Int32 = -1
    """-1: whatever is possible."""
    message_count: Int64 = 0
    status: str = ""
    reason: str | None = None
    operation: str = ""
    """By which action it was asked for, in whose name, and so all that follows; empty where the node wants it itself."""
    principal: str = ""
    groups: tuple[str, ...] = ()
    method: str = ""
    client_id: str | None = None
    host: str = ""
    listener: str = ""


class ChangeQueueResponse(ControllerAnswer, frozen=True):
    """Where a queue of the name exists and differs, the message is the name of the attribute."""

    metadata_offset: Int64 = 0
    """Where the controller's metadata ends. Whoever asked waits for it."""


API: Final = Api(
    key=10020,
    name="ChangeQueue",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=ChangeQueueRequest,
    response=ChangeQueueResponse,
)
