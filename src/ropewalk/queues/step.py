"""What the core of a queue's partition answers with."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.state_machine import Reply
from ropewalk.queues.answers import Answer
from ropewalk.queues.errors import QueueError

QueueReply: TypeAlias = Reply[Answer | QueueError]


class QueueStep(Struct, frozen=True):
    """Events are not in it: the core has applied them, and gives them out with the next delta."""

    replies: tuple[QueueReply, ...] = ()
    """To be sent when the log is committed up to where it ends after this turn, also if the turn itself wrote nothing: what is said again, such as that a
    message is deleted or a duplicate, may rest on what an earlier turn wrote."""
    prompts: tuple[QueueReply, ...] = ()
    """To be sent at once."""


class QueueDraft:
    """A step in the making."""

    __slots__ = ("prompts", "replies")

    def __init__(self) -> None:
        self.replies: list[QueueReply] = []
        self.prompts: list[QueueReply] = []

    def finish(self) -> QueueStep:
        return QueueStep(tuple(self.replies), tuple(self.prompts))
