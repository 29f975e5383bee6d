"""What every core of replicated state speaks: commands that say what they are answered with, and steps that come of them.

It is in `base` since cores do not know each other, nor their host (`broker/hosting`), and all speak it.

What a reader could get wrong
    A reply may answer a command of long ago, so no type ties it to its command: a core keeps that promise, and its scenarios check it.
"""

from typing import Generic, TypeVar

from msgspec import Struct

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E")
A = TypeVar("A")
E_co = TypeVar("E_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)


class Command(Struct, Generic[T_co], frozen=True):
    """Something that is asked of a core, and answered with `T_co` or refused with an error."""


class Reply(Struct, Generic[A_co], frozen=True):
    """An answer or a refusal. `token` names who asked, perhaps in an earlier step."""

    token: int
    answer: A_co


class Step(Struct, Generic[E_co, A_co], frozen=True):
    """Append `events` in order and apply each at once; the replies wait for the last event appended so far."""

    events: tuple[E_co, ...] = ()
    replies: tuple[Reply[A_co], ...] = ()


class Draft(Generic[E, A]):
    """A step in the making."""

    __slots__ = ("_replies", "events")

    def __init__(self) -> None:
        self.events: list[E] = []
        self._replies: list[Reply[A]] = []

    def reply(self, token: int, answer: A) -> None:
        self._replies.append(Reply(token, answer))

    def finish(self) -> Step[E, A]:
        return Step(tuple(self.events), tuple(self._replies))
