"""What those hear who ask something of a queue's partition."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.queues.errors import QueueError
from ropewalk.queues.events import MoveIntended


class Admitted(Struct, frozen=True):
    """Of every message sent: the offset it has, or that of the first one with its deduplication id."""

    offsets: tuple[int, ...]
    are_duplicates: tuple[bool, ...]
    """Those are not to be appended."""


class Given(Struct, frozen=True, gc=False):
    """A message for a receiver. What it says is in the log."""

    offset: int
    receive_count: int
    first_received_at_ms: int


class Received(Struct, frozen=True):
    """Nothing, if `messages` is empty."""

    attempt: int
    messages: tuple[Given, ...] = ()


class Done(Struct, frozen=True):
    """For each message that was asked about: nothing, or why it was refused."""

    refusals: tuple[QueueError | None, ...]


class Noted(Struct, frozen=True):
    """It is so, and lasts."""


class MoveOrder(Struct, frozen=True):
    """The intent is committed: append these messages under its identity, then say how it ended."""

    move: MoveIntended


Answer: TypeAlias = Admitted | Received | Done | Noted | MoveOrder
