"""What the core answers to one command or tick: events to append, and replies to release once they are committed."""

from msgspec import Struct

from ropewalk.groups.answers import Answer
from ropewalk.groups.errors import GroupError
from ropewalk.groups.events import Event


class Reply(Struct, frozen=True):
    """`token` names who asked, perhaps in an earlier step."""

    token: int
    answer: Answer | GroupError


class Step(Struct, frozen=True):
    """Append `events` in order and apply each at once; the replies wait for the last event appended so far."""

    events: tuple[Event, ...]
    replies: tuple[Reply, ...]


class Draft:
    """A step in the making."""

    __slots__ = ("_replies", "events")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._replies: list[Reply] = []

    def reply(self, token: int, answer: Answer | GroupError) -> None:
        self._replies.append(Reply(token, answer))

    def finish(self) -> Step:
        return Step(tuple(self.events), tuple(self._replies))
