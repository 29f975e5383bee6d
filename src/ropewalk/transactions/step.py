"""What the core answers to one command or tick: events to append, and replies to release once they are committed."""

from msgspec import Struct

from ropewalk.transactions.answers import Answer
from ropewalk.transactions.errors import TransactionError
from ropewalk.transactions.events import Event, TransactionRecorded


class Reply(Struct, frozen=True):
    """`token` names who asked, perhaps in an earlier step."""

    token: int
    answer: Answer | TransactionError


class Step(Struct, frozen=True):
    """Append `events` in order and apply each at once; the replies wait for the last event appended so far."""

    events: tuple[Event, ...] = ()
    replies: tuple[Reply, ...] = ()


class Decision(Struct, frozen=True):
    """What a rule makes of one command about one transactional id."""

    answer: Answer | TransactionError
    event: TransactionRecorded | None = None
    """None: nothing changes."""
