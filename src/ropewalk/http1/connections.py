"""All connections of one door that speaks HTTP: how many there may be, who is too slow, and what the door has done so far."""

import asyncio
from collections.abc import Iterator
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol

import structlog

from ropewalk.base import metrics
from ropewalk.base.budget import ByteBudget
from ropewalk.base.complaints import Complaints
from ropewalk.base.limits import HTTP_MAKE_ROOM_MS
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.http1.bounds import HttpBounds

_log = structlog.get_logger()


class Connected(Protocol):
    @property
    def held_bytes(self) -> int: ...

    def has_stalled(self) -> bool: ...

    def is_too_slow(self, now_ms: float) -> bool: ...

    def is_in_the_way(self, now_ms: float) -> bool: ...

    def abort(self) -> None: ...

    def finish(self) -> None: ...

    def hasten(self) -> bool: ...

    def on_paused_or_resumed(self) -> None: ...


class HttpConnections:
    def __init__(self, door: str, clock: Clock, bounds: HttpBounds, budget: ByteBudget) -> None:
        """`door` is its name in the metrics; `budget` is charged for what connections hold."""
        self.clock = clock
        self.bounds = bounds
        self.budget = budget
        self.received_bytes = 0
        self.sent_bytes = 0
        self.is_paused = False
        """Nothing is answered, and no connection is closed for it: a node that hangs."""

        self.is_leaving = False
        """Nobody is kept waiting, and every answer is the last of its connection."""

        self._door = door
        self._complaints = Complaints()
        self._open: dict[Connected, None] = {}
        self._opened_count = 0
        self._refused_count = 0
        self._answer_counts: dict[HTTPStatus, int] = {}
        self._date = (-1, "")
        self._made_room_at_ms = -float(HTTP_MAKE_ROOM_MS)
        self._owing: dict[Connected, None] = {}
        """Those whose request is not answered, while the door is leaving."""
        self._all_answered: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def on_opened(self, connection: Connected) -> None:
        self._open[connection] = None
        self._opened_count += 1
        if len(self._open) > self.bounds.connections_max and not self._has_made_room():
            self._refused_count += 1
            connection.abort()

    def on_closed(self, connection: Connected) -> None:
        del self._open[connection]
        if self.is_leaving:
            self.on_relieved(connection)

    def on_foreign(self, address: str, reason: str) -> None:
        """Another protocol was spoken; said once in a while, however often it comes."""
        if self._complaints.is_due(f"{address} {reason}", self.clock.monotonic_ms()):
            _log.warning("connection closed", door=self._door, client=address, reason=reason)

    def on_answer(self, status: HTTPStatus) -> None:
        self._answer_counts[status] = self._answer_counts.get(status, 0) + 1

    def date(self) -> str:
        """As the Date header has it: written once a second, however many answers there are."""
        now_s = self.clock.now_ms() // 1000
        if self._date[0] != now_s:
            self._date = now_s, formatdate(now_s, usegmt=True)
        return self._date[1]

    def sweep(self) -> None:
        """Called every few seconds: ends those that take too long, and those that hold a spent budget and do not move."""
        now_ms = self.clock.monotonic_ms()
        for connection in list(self._open):
            if connection.is_too_slow(now_ms):
                self._refused_count += 1
                connection.abort()
        excess_bytes = self.budget.held_bytes - self.budget.bytes_max
        if excess_bytes < 0:
            return
        for connection in sorted(self._open, key=lambda connection: -connection.held_bytes):
            if connection.has_stalled() and excess_bytes >= 0:
                excess_bytes -= connection.held_bytes
                self._refused_count += 1
                connection.abort()

    def _has_made_room(self) -> bool:
        """End those who keep others out by not finishing what they began to ask."""
        now_ms = self.clock.monotonic_ms()
        if self.is_paused or now_ms - self._made_room_at_ms < HTTP_MAKE_ROOM_MS:
            return False
        self._made_room_at_ms = now_ms
        in_the_way = [connection for connection in self._open if connection.is_in_the_way(now_ms)]
        self._refused_count += len(in_the_way)
        for connection in in_the_way:
            connection.abort()
        return bool(in_the_way)

    def pause(self) -> None:
        self.is_paused = True
        self._tell_all()

    def resume(self) -> None:
        self.is_paused = False
        self._tell_all()

    def hasten(self) -> "asyncio.Future[None]":
        """Whoever waits is answered with what there is. Done when everyone who has asked has an answer; connections stay open until then."""
        self.is_leaving = True
        self._owing = dict.fromkeys([each for each in self._open if each.hasten()])
        self._all_answered = asyncio.get_running_loop().create_future()
        self._end_if_relieved()
        return self._all_answered

    def on_asked(self, connection: Connected) -> None:
        """While the door is leaving."""
        self._owing[connection] = None

    def on_relieved(self, connection: Connected) -> None:
        """Its answer is with the transport, or it is gone."""
        self._owing.pop(connection, None)
        self._end_if_relieved()

    def _end_if_relieved(self) -> None:
        if not self._owing and self._all_answered is not None and not self._all_answered.done():
            self._all_answered.set_result(None)

    def finish_all(self) -> None:
        for connection in list(self._open):
            connection.finish()

    def abort_all(self) -> None:
        for connection in list(self._open):
            connection.abort()

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.CONNECTIONS, len(self._open), self._door)
        sheet.add(metrics.CONNECTIONS_OPENED, self._opened_count, self._door)
        sheet.add(metrics.CONNECTIONS_REFUSED, self._refused_count, self._door)
        sheet.add(metrics.RECEIVED_BYTES, self.received_bytes, self._door)
        sheet.add(metrics.SENT_BYTES, self.sent_bytes, self._door)
        for status, count in sorted(self._answer_counts.items()):
            sheet.add(metrics.HTTP_ANSWERS, count, str(status.value))
        yield

    def _tell_all(self) -> None:
        for connection in list(self._open):
            connection.on_paused_or_resumed()
