"""Steps and replies (`base/state_machine.py`) as transactions have them, and what a rule decides about one of them."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base import state_machine
from ropewalk.transactions.answers import Answer
from ropewalk.transactions.errors import TransactionError
from ropewalk.transactions.events import Event, TransactionRecorded

TransactionReply: TypeAlias = state_machine.Reply[Answer | TransactionError]
TransactionStep: TypeAlias = state_machine.Step[Event, Answer | TransactionError]


class Decision(Struct, frozen=True):
    """What a rule makes of one command about one transactional id."""

    answer: Answer | TransactionError
    event: TransactionRecorded | None = None
    """None: nothing changes."""
