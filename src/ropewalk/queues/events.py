"""What is durable of a queue's partition, besides its messages.

Times that end in `until_ms` or are called `at_ms` are of the log's own time (`log_clock.py`); `received_at_ms` and `sent_at_ms` are wall time,
which nothing but retention and what clients are shown depends on.
"""

from typing import TypeAlias

from msgspec import Struct


class Passed(Struct, frozen=True, gc=False):
    """Whatever lies below and was never received is no message: state, ends of transactions, what a transaction took back."""

    end_offset: int


class Acquired(Struct, frozen=True):
    """One receive. Its messages share the attempt, by which their handles are told from earlier ones."""

    offsets: tuple[int, ...]
    sent_at_ms: tuple[int, ...]
    """For each of the offsets."""
    attempt: int
    at_ms: int
    until_ms: int
    received_at_ms: int
    request_id: bytes = b""
    """FIFO: by which a receive that is repeated gets the same messages. Empty: none."""


class Hidden(Struct, frozen=True):
    """Visible from `until_ms` on. Still in flight if `is_acquired`; otherwise it rests before it is given out again."""

    offsets: tuple[int, ...]
    until_ms: int
    is_acquired: bool


class Released(Struct, frozen=True):
    """Given out and not taken: visible at once, and the receive does not count."""

    offsets: tuple[int, ...]


class Settled(Struct, frozen=True):
    """Deleted, or expired."""

    offsets: tuple[int, ...]


class Cleared(Struct, frozen=True, gc=False):
    """Purged or expired: everything below."""

    end_offset: int
    purged_at_ms: int = 0
    """Wall time; 0: it has expired."""


class Rewound(Struct, frozen=True, gc=False):
    """Everything from here on is as if it had never been received, and nothing else is there."""

    offset: int


class MoveIntended(Struct, frozen=True):
    """Messages that are appended to the target under this identity, by whoever leads, as often as it takes."""

    offsets: tuple[int, ...]
    topic_id: bytes
    partition: int
    producer_id: int
    producer_epoch: int
    sequence: int
    """Of the first of the offsets; the others follow."""
    intended_at_ms: int
    """Wall time: how long the target remembers producers is counted from here."""
    task_id: bytes = b""
    """Of the move task that wants it. Empty: they are dead letters."""


class MoveEnded(Struct, frozen=True, gc=False):
    """The target has the first so many, and certainly never will have the others."""

    moved_count: int


class TaskBegun(Struct, frozen=True, gc=False):
    """A move task has come to this partition: what lies below is the task's."""

    task_id: bytes
    end_offset: int


class TaskEnded(Struct, frozen=True, gc=False):
    """It has nothing more to do here."""

    ending: str
    """COMPLETED, CANCELLED or FAILED."""
    reason: str = ""


Event: TypeAlias = (
    Passed
    | Acquired
    | Hidden
    | Released
    | Settled
    | Cleared
    | Rewound
    | MoveIntended
    | MoveEnded
    | TaskBegun
    | TaskEnded
)


class Delta(Struct, frozen=True):
    """What one turn has changed. Without events it tells the time alone."""

    log_ms: int
    """The log's own time when it was written."""
    wall_ms: int
    """The writer's."""
    events: tuple[Event, ...] = ()
    end_offset: int = 0
    """The log was committed up to here, so what lies below was sent before."""
