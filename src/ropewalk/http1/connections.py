"""All connections of the HTTP door: how many there may be, who is too slow, and what the door has done so far."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final, Protocol

from ropewalk.base import metrics
from ropewalk.base.limits import HTTP_CONNECTIONS_MAX
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock

DOOR: Final = "http"


class Connected(Protocol):
    def is_too_slow(self, now_ms: float) -> bool: ...

    def abort(self) -> None: ...

    def finish(self) -> None: ...

    def on_paused_or_resumed(self) -> None: ...


class HttpConnections:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.received_bytes = 0
        self.is_paused = False
        """Nothing is answered, and no connection is closed for it: a node that hangs."""

        self._open: dict[Connected, None] = {}
        self._sent_bytes = 0
        self._opened_count = 0
        self._refused_count = 0
        self._answer_counts: dict[HTTPStatus, int] = {}

    def on_opened(self, connection: Connected) -> None:
        self._open[connection] = None
        self._opened_count += 1
        if len(self._open) > HTTP_CONNECTIONS_MAX:
            self._refused_count += 1
            connection.abort()

    def on_closed(self, connection: Connected) -> None:
        del self._open[connection]

    def on_answer(self, status: HTTPStatus, size_bytes: int) -> None:
        self._answer_counts[status] = self._answer_counts.get(status, 0) + 1
        self._sent_bytes += size_bytes

    def sweep(self) -> None:
        """Called every few seconds: ends whoever takes too long."""
        now_ms = self.clock.monotonic_ms()
        for connection in list(self._open):
            if connection.is_too_slow(now_ms):
                self._refused_count += 1
                connection.abort()

    def pause(self) -> None:
        self.is_paused = True
        self._tell_all()

    def resume(self) -> None:
        self.is_paused = False
        self._tell_all()

    def finish_all(self) -> None:
        for connection in list(self._open):
            connection.finish()

    def abort_all(self) -> None:
        for connection in list(self._open):
            connection.abort()

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.CONNECTIONS, len(self._open), DOOR)
        sheet.add(metrics.CONNECTIONS_OPENED, self._opened_count, DOOR)
        sheet.add(metrics.CONNECTIONS_REFUSED, self._refused_count, DOOR)
        sheet.add(metrics.RECEIVED_BYTES, self.received_bytes, DOOR)
        sheet.add(metrics.SENT_BYTES, self._sent_bytes, DOOR)
        for status, count in sorted(self._answer_counts.items()):
            sheet.add(metrics.HTTP_ANSWERS, count, str(status.value))
        yield

    def _tell_all(self) -> None:
        for connection in list(self._open):
            connection.on_paused_or_resumed()
