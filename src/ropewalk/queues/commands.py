"""What senders, receivers, movers and administrators ask of a queue's partition."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.state_machine import Command
from ropewalk.queues.answers import Admitted, Done, MoveOrder, Noted, Received


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
    """Given out, and never taken: the receiver had gone. What is no longer in flight in that attempt is let be."""

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
    """A producer id that is this partition's own, for dead letters (`QueuePartition.wants_producer`)."""

    producer_id: int
    producer_epoch: int


class NextMove(Command[MoveOrder], frozen=True):
    """Dead letters that are to be moved; waits until there are some."""


class EndMove(Command[Noted], frozen=True):
    """How the move under way has ended, by its first sequence; only what is certain is told."""

    sequence: int
    is_moved: bool


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
)
