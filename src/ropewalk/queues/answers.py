"""What those hear who ask something of a queue's partition."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.queues.events import MoveIntended
from ropewalk.queues.state import TaskShare


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

    refusals: tuple[RopewalkError | None, ...]


class Noted(Struct, frozen=True):
    """It is so, and lasts."""


class MoveOrder(Struct, frozen=True):
    """The intent is committed: append these messages under its identity, then say how it ended."""

    move: MoveIntended


class ToMove(Struct, frozen=True):
    """Messages of a move task that can be received now, in order; none: there are no more."""

    offsets: tuple[int, ...]


class Moved(Struct, frozen=True):
    """How a move for a task has ended."""

    moved_count: int
    """The first so many."""
    chosen_count: int
    """So many of those that were named could be received, and went on their way."""


Answer: TypeAlias = Admitted | Received | Done | Noted | MoveOrder | TaskShare | ToMove | Moved
