"""Server-sent events: an answer that goes on for as long as its reader stays, with no more held than a reader can be owed.

What a reader could get wrong
    `show` is for what is true now: while the reader is slow the newest of each name replaces the one before it, which nobody has seen.
    `add` is for what must all arrive, in its order: where too much waits it refuses, and `room` says when to go on.
    The connection asks for the next piece only when most of the former ones are taken, so what waits here is all that waits.
    A stream is also what its connection is told to hurry: when the reader goes, or the door closes, it ends.
"""

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Final

from ropewalk.base.limits import EVENTS_WAITING_BYTES_MAX, EVENTS_WAITING_MAX
from ropewalk.http1.message import StreamedAnswer, Visitor

CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
BEAT: Final = b": beat\n\n"
"""Says nothing. Who stands between would close what is silent, and who has gone is noticed only by writing."""


def encode_event(name: str, data: str) -> bytes:
    """A line of `data` to a field, whatever ends its lines: nobody can begin a field of their own in it."""
    assert name.isidentifier(), "a name is one of ours"
    lines = data.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join([f"event: {name}\n", *(f"data: {line}\n" for line in lines), "\n"]).encode(
        errors="replace"
    )


class EventStream:
    """A `Stream`, and the `Waiting` of its own connection."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when nothing more is wanted. To be waited for with others, not cancelled."""
        self._visitor: Visitor | None = None
        self._added: deque[bytes] = deque()
        self._shown: dict[str, bytes] = {}
        self._waiting_bytes = 0
        self._more: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._is_closed = False
        """Nothing is added any more; what waits is still sent."""
        self._has_ended = False

    def answer(self, visitor: Visitor) -> StreamedAnswer:
        self._visitor = visitor
        visitor.begin_wait(self)
        return StreamedAnswer(HTTPStatus.OK, self, CONTENT_TYPE)

    def show(self, name: str, data: str) -> None:
        if not self._is_closed:
            self._shown.pop(name, None)
            self._shown[name] = encode_event(name, data)
            self._wake()

    def add(self, name: str, data: str) -> bool:
        """Whether it was taken."""
        if self._is_closed or not self.has_room:
            return False
        event = encode_event(name, data)
        self._added.append(event)
        self._waiting_bytes += len(event)
        self._wake()
        return True

    @property
    def has_room(self) -> bool:
        """For one event more, however large that is."""
        return len(self._added) < EVENTS_WAITING_MAX and self._waiting_bytes < EVENTS_WAITING_BYTES_MAX

    async def room(self) -> None:
        """Returns when there is room, or nothing more is wanted. For one at a time."""
        if not self.has_room and not self._has_ended:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def beat(self) -> None:
        if not self._added and not self._shown and not self._is_closed:
            self._added.append(BEAT)
            self._wake()

    def close(self) -> None:
        """End it once what waits has been sent."""
        self._is_closed = True
        self._wake()

    # What the connection calls

    async def next(self) -> bytes | None:
        while not self._added and not self._shown:
            if self._is_closed or self._has_ended:
                return None
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        piece = b"".join((*self._added, *self._shown.values()))
        self._added.clear()
        self._shown.clear()
        self._waiting_bytes = 0
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        return piece

    def end(self) -> None:
        if self._has_ended:
            return
        self._has_ended = self._is_closed = True
        if self._visitor is not None:
            self._visitor.end_wait(self)
        self._wake()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        if not self.ended.done():
            self.ended.set_result(None)

    def hurry(self) -> None:
        self.close()

    def abandon(self) -> None:
        """`end` follows."""

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
