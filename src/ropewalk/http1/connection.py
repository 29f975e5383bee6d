"""One HTTP connection: requests in, answers out, one after the other.

Behaviour worth knowing
    Requests sent ahead are answered in order; reading pauses while many wait or an answer is not taken.
    Bytes that are not HTTP are answered with 400 (or 414, 431, 413), and the connection ends.
    Whoever is slow to send a request or to take an answer is cut off: nobody holds memory by being slow.
"""

import asyncio
from collections import deque
from http import HTTPStatus
from typing import cast

from ropewalk.base.limits import (
    HTTP_ANSWER_MS_MAX,
    HTTP_IDLE_MS_MAX,
    HTTP_REQUEST_MS_MAX,
    HTTP_REQUESTS_WAITING_MAX,
)
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.message import Answer, Handle, Request, encode_head, text_answer
from ropewalk.http1.parser import Refused, RequestParser
from ropewalk.runtime.steps import begin


class HttpConnection(asyncio.Protocol):
    def __init__(self, connections: HttpConnections, answer: Handle) -> None:
        self._connections = connections
        self._answer = answer
        self._parser = RequestParser()
        self._waiting: deque[Request | Refused] = deque()
        self._handled: Request | None = None
        self._is_going = False
        self._transport: asyncio.Transport | None = None
        self._is_write_paused = False
        self._is_read_paused = False
        self._has_input_ended = False
        self._silent_since_ms = 0.0
        self._request_since_ms: float | None = None
        self._answer_since_ms: float | None = None

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)
        self._silent_since_ms = self._connections.clock.monotonic_ms()
        self._transport.set_write_buffer_limits(high=0)
        self._connections.on_opened(self)
        self._read_or_pause()

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._waiting.clear()
        self._connections.on_closed(self)

    def data_received(self, data: bytes) -> None:
        self._connections.received_bytes += len(data)
        now_ms = self._silent_since_ms = self._connections.clock.monotonic_ms()
        if self._waiting and isinstance(self._waiting[-1], Refused):
            return
        try:
            requests = self._parser.feed(data)
            self._waiting.extend(requests)
            if not self._parser.is_within_request:
                self._request_since_ms = None
            elif self._request_since_ms is None or requests:
                self._request_since_ms = now_ms
        except Refused as refused:
            self._waiting.extend(self._parser.take())
            self._waiting.append(refused)
            self._request_since_ms = None
        self._go_on()

    def eof_received(self) -> bool:
        self._has_input_ended = True
        self._go_on()
        return self._transport is not None and not self._transport.is_closing()

    def pause_writing(self) -> None:
        self._is_write_paused = True
        self._answer_since_ms = self._connections.clock.monotonic_ms()

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._answer_since_ms = None
        self._silent_since_ms = self._connections.clock.monotonic_ms()
        self._go_on()

    # What the listener calls

    def is_too_slow(self, now_ms: float) -> bool:
        if self._request_since_ms is not None and now_ms - self._request_since_ms > HTTP_REQUEST_MS_MAX:
            return True
        if self._answer_since_ms is not None and now_ms - self._answer_since_ms > HTTP_ANSWER_MS_MAX:
            return True
        return self._handled is None and now_ms - self._silent_since_ms > HTTP_IDLE_MS_MAX

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> None:
        """Close once what has been answered is sent."""
        if self._transport is not None:
            self._transport.close()

    def on_paused_or_resumed(self) -> None:
        self._go_on()

    # The machine

    def _go_on(self) -> None:
        if self._is_going:  # an answer that came at once: the loop below takes the next
            return
        self._is_going = True
        try:
            while self._may_handle():
                self._handle(self._waiting.popleft())
        finally:
            self._is_going = False
        self._read_or_pause()
        if self._has_input_ended and self._handled is None and not self._waiting:
            self.finish()

    def _may_handle(self) -> bool:
        return (
            bool(self._waiting)
            and self._handled is None
            and not self._is_write_paused
            and not self._connections.is_paused
            and self._transport is not None
            and not self._transport.is_closing()
        )

    def _handle(self, first: Request | Refused) -> None:
        if isinstance(first, Refused):
            self._send(text_answer(first.status, str(first)), keeps_alive=False, with_body=True)
        else:
            self._handled = first
            begin(self._answer(first), self._on_answered)

    def _on_answered(self, answer: Answer | None, error: BaseException | None) -> None:
        request, self._handled = self._handled, None
        assert request is not None, "only what is being handled can be answered"
        if error is not None:
            failed = text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a bug; the node's log says more")
            self._send(failed, keeps_alive=False, with_body=request.method != "HEAD")
            raise error
        assert answer is not None, "every handler answers"
        self._send(answer, keeps_alive=request.keeps_alive, with_body=request.method != "HEAD")
        self._go_on()

    def _send(self, answer: Answer, *, keeps_alive: bool, with_body: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        chunks = [encode_head(answer, keeps_alive=keeps_alive), *(answer.chunks if with_body else ())]
        self._connections.on_answer(answer.status, sum(map(len, chunks)))
        transport.writelines(chunks)
        if not keeps_alive:
            transport.close()

    def _read_or_pause(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        pause = (
            self._connections.is_paused
            or self._is_write_paused
            or len(self._waiting) >= HTTP_REQUESTS_WAITING_MAX
        )
        if pause != self._is_read_paused:
            self._is_read_paused = pause
            if pause:
                transport.pause_reading()
            else:
                transport.resume_reading()
