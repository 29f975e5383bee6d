"""What senders, receivers, movers and administrators ask of a queue's partition."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.state_machine import Command
from ropewalk.queues.answers import Admitted, Done, Moved, MoveOrder, Noted, Received, ToMove
from ropewalk.queues.events import MoveIntended
from ropewalk.queues.state import TaskShare


class Message(Struct, frozen=True, gc=False):
    """A message as the log has it, as far as its place in the queue goes."""

    offset: int
    sent_at_ms: int
    """Wall time, by whoever took it in."""
    group: str = ""
    """Empty: none, which is a group of its own on a standard queue."""
    delay_ms: int = 0


class Sent(Struct, frozen=True, gc=False):
    """A message of a FIFO queue that is to be appended, unless it is a duplicate."""

    group: str
    deduplication_id: str


class Handle(Struct, frozen=True, gc=False):
    """What a receipt handle says."""

    offset: int
    attempt: int


class Send(Command[Admitted], frozen=True):
    """FIFO: may these be appended, the first of them at `next_offset`? Whoever asks appends before anything else happens."""

    messages: tuple[Sent, ...]
    next_offset: int


class Receive(Command[Received], frozen=True):
    count_max: int
    """0: only what was given before under the receive's id, if it can be given again; answered without waiting."""
    visibility_ms: int
    wait_ms: int = 0
    request_id: bytes = b""
    """FIFO: ReceiveRequestAttemptId. Empty: none."""


class Delete(Command[Done], frozen=True):
    handles: tuple[Handle, ...]


class VisibilityChange(Struct, frozen=True, gc=False):
    handle: Handle
    visibility_ms: int


class ChangeVisibility(Command[Done], frozen=True):
    changes: tuple[VisibilityChange, ...]


class Release(Command[Noted], frozen=True):
    """Given out, and never taken: the receiver had gone. What is no longer in flight in that attempt is let be, and so is what was given again under
    the receive's id."""

    handles: tuple[Handle, ...]


class Purge(Command[Noted], frozen=True):
    """Everything below, whoever has it."""

    end_offset: int


class Expire(Command[Noted], frozen=True):
    """Everything below is older than the queue keeps messages, or no longer in the log."""

    end_offset: int


class Rewind(Command[Noted], frozen=True):
    """As if nothing from here on had been received."""

    offset: int


class ProvideProducer(Command[Noted], frozen=True):
    """A producer id that is this partition's own, for what is moved (`QueuePartition.wants_producer`)."""

    producer_id: int
    producer_epoch: int


class NextMove(Command[MoveOrder], frozen=True):
    """Messages that are to be moved; waits until there are some."""


class EndMove(Command[Noted], frozen=True):
    """How the move under way has ended; only what is certain is told."""

    move: MoveIntended
    moved_count: int
    """The target has the first so many, and never will have the others."""


class BeginTask(Command[TaskShare], frozen=True):
    """A move task has come. One that is here already goes on where it was."""

    task_id: bytes
    end_offset: int
    """Of the log, unless it is here already: what is sent from now on is not the task's."""


class NextToMove(Command[ToMove], frozen=True):
    """Which messages of the task come next; waits until some are known, or there are none, and until what is on its way has arrived."""

    count_max: int


class Move(Command[Moved], frozen=True):
    """Move those of them that can be received now, for the task; answered when the move has ended."""

    offsets: tuple[int, ...]
    """In order."""
    topic_id: bytes
    partition: int


class EndTask(Command[TaskShare], frozen=True):
    """The task has nothing more to do here. What has ended stays as it ended."""

    task_id: bytes
    ending: str
    reason: str = ""


AnyCommand: TypeAlias = (
    Send
    | Receive
    | Delete
    | ChangeVisibility
    | Release
    | Purge
    | Expire
    | Rewind
    | ProvideProducer
    | NextMove
    | EndMove
    | BeginTask
    | NextToMove
    | Move
    | EndTask
)
