"""One HTTP connection: requests in, answers out, one after the other.

Behaviour worth knowing
    A request is handled when the one before it has been answered; those sent ahead wait as bytes. When handling and reading pause,
    and for what, is decided in `base/flow.py`.
    Bytes that are not HTTP are answered with an error, and the connection ends. Before a connection is closed after an answer, what
    is still being sent is read and dropped for a while: closed with unread bytes it is reset, and the client would not see the answer.
    A client that is slow to send a request or to take an answer is cut off: nobody holds memory by being slow. Where the door is full
    this comes sooner, and whoever comes takes the place.
    A handler that fails is answered with 500 if nothing was sent yet. A stream that fails ends the connection in the middle of
    the body, which is how HTTP says so.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, cast

from ropewalk.base.flow import Flow, FlowBounds, Waiting
from ropewalk.base.limits import (
    CONNECTION_ANSWER_BYTES_MAX,
    CONNECTION_TURN_MS,
    CONNECTION_UNSENT_BYTES_MAX,
    HTTP_ANSWER_MS_MAX,
    HTTP_BODY_BYTES_PER_S_MIN,
    HTTP_CROWDED_REQUEST_MS_MAX,
    HTTP_LINGER_BYTES_MAX,
    HTTP_LINGER_MS_MAX,
    HTTP_REQUEST_MS_MAX,
    HTTP_REQUESTS_PER_TURN,
    HTTP_STREAM_BYTES_PER_TURN,
    RECEIVE_BUFFER_BYTES_MIN,
)
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.message import (
    CONTINUE,
    LAST_CHUNK,
    Answer,
    Handle,
    Request,
    Stream,
    StreamedAnswer,
    Visitor,
    encode_chunk,
    encode_head,
    has_body,
    text_answer,
)
from ropewalk.http1.parser import Refused, RequestParser
from ropewalk.runtime.steps import begin, turn

_BOUNDS: Final = FlowBounds(
    requests_max=1,
    owed_bytes_max=CONNECTION_ANSWER_BYTES_MAX,
    requests_per_turn=HTTP_REQUESTS_PER_TURN,
    turn_ms=CONNECTION_TURN_MS,
    buffer_bytes_min=RECEIVE_BUFFER_BYTES_MIN,
)
_REQUEST_BYTES: Final = 1 << 12
"""What a request that waits takes beside its body: its headers, its objects, and those of its handler."""


class HttpConnection(asyncio.Protocol):
    __slots__ = (
        "_answer_since_ms",
        "_connections",
        "_flow",
        "_handle_request",
        "_handling",
        "_held_bytes",
        "_idle_since_ms",
        "_last_active_ms",
        "_linger_bytes",
        "_linger_since_ms",
        "_made",
        "_now_ms",
        "_parser",
        "_request",
        "_request_since_ms",
        "_stream",
        "_taken",
        "_transport",
        "_visitor",
    )

    def __init__(self, connections: HttpConnections, answer: Handle) -> None:
        self._connections = connections
        self._now_ms = connections.clock.monotonic_ms
        self._handle_request = answer
        self._parser = RequestParser(connections.bounds)
        self._flow = Flow(_BOUNDS, connections.budget, self)
        self._transport: asyncio.Transport | None = None
        self._visitor = Visitor(self, "")
        self._request: Request | None = None
        """The one that is being answered."""
        self._handling: object = None
        """What waits is kept here, not only by what it waits for: if that were dropped, it would be ended by the garbage collection,
        in any thread."""
        self._held_bytes = 0
        self._made: Answer | StreamedAnswer | None = None
        """Its answer, while the door is paused."""
        self._stream: Stream | None = None
        self._taken: asyncio.Future[None] | None = None
        self._last_active_ms = 0.0
        """When something came or was taken."""
        self._idle_since_ms = 0.0
        """When the last answer was made, or taken: bytes that are no request do not count."""
        self._request_since_ms: float | None = None
        """When the request began of which more is to come; None where it is not for the client to go on."""
        self._answer_since_ms: float | None = None
        self._linger_since_ms: float | None = None
        self._linger_bytes = 0

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=CONNECTION_UNSENT_BYTES_MAX, low=0)
        peer = transport.get_extra_info("peername")
        self._visitor.address = str(peer[0]) if peer else "unknown"
        self._last_active_ms = self._idle_since_ms = self._now_ms()
        self._pause_with_door()
        self._connections.on_opened(self)
        self._read_or_pause()

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._connections.on_closed(self)
        self._flow.lose()
        self._end_stream()
        self._on_taken()

    def data_received(self, data: bytes) -> None:
        self._connections.received_bytes += len(data)
        self._last_active_ms = self._now_ms()
        if self._linger_since_ms is not None:
            self._linger_bytes += len(data)
            if self._linger_bytes > HTTP_LINGER_BYTES_MAX:
                self.abort()
            return
        self._parser.feed(data)
        self._go_on()

    def eof_received(self) -> bool:
        if self._linger_since_ms is not None:
            return False
        self._flow.end_input()
        self._close_if_finished()
        return self._transport is not None and not self._transport.is_closing()

    def pause_writing(self) -> None:
        self._flow.pause_writing()
        self._answer_since_ms = self._now_ms()
        self._flow.charge(self._parser.held_bytes, self._untaken_bytes)

    def resume_writing(self) -> None:
        self._flow.resume_writing()
        self._answer_since_ms = None
        self._last_active_ms = self._idle_since_ms = self._now_ms()
        self._on_taken()
        self._go_on()

    # What handlers, the listener and the budget call

    def begin_wait(self, waiting: Waiting) -> None:
        self._flow.begin_wait(waiting)
        if self._flow.has_input_ended or self._connections.is_leaving:
            waiting.hurry()

    def end_wait(self, waiting: Waiting) -> None:
        if self._flow.end_wait(waiting):
            self._go_on()

    @property
    def held_bytes(self) -> int:
        """Of the node's budget."""
        return self._flow.charged_bytes

    def has_stalled(self) -> bool:
        return self._flow.has_stalled(
            self._last_active_ms, self._parser.unhandled_bytes or self._parser.body_bytes, self._untaken_bytes
        )

    def is_too_slow(self, now_ms: float) -> bool:
        if self._connections.is_paused:
            return False
        if self._linger_since_ms is not None:
            return now_ms - self._linger_since_ms > HTTP_LINGER_MS_MAX
        if self._answer_since_ms is not None and now_ms - self._answer_since_ms > HTTP_ANSWER_MS_MAX:
            return True
        if self._request_since_ms is not None and self._flow.is_reading:
            return self._is_late(now_ms, HTTP_REQUEST_MS_MAX)
        return (
            not self._flow.due_count and now_ms - self._idle_since_ms > self._connections.bounds.idle_ms_max
        )

    def is_in_the_way(self, now_ms: float) -> bool:
        """Whether it keeps others out of a door that is full."""
        return self._is_late(now_ms, HTTP_CROWDED_REQUEST_MS_MAX)

    def abort(self) -> None:
        if self._transport is not None:
            self._flow.close()
            self._end_stream()
            self._transport.abort()

    def finish(self) -> None:
        """Close once what has been answered is sent. A stream ends where it is, and its client notices that."""
        if self._transport is not None:
            self._flow.close()
            self._end_stream()
            self._transport.close()

    def hasten(self) -> bool:
        """Wait no longer for what may not come. Whether an answer is due all the same."""
        self._flow.hurry()
        return self._flow.due_count > 0

    def on_paused_or_resumed(self) -> None:
        self._pause_with_door()
        self._idle_since_ms = self._now_ms()
        self._on_taken()
        self._go_on()

    def on_room(self) -> None:
        # Not at once: whoever made room is in the middle of something, and the next would make room for the next.
        asyncio.get_running_loop().call_soon(self._go_on)

    # The machine

    def _go_on(self) -> None:
        """Handle every request that may be handled in this turn, then decide whether to read more."""
        flow, parser = self._flow, self._parser
        if self._transport is None or flow.is_handling or self._linger_since_ms is not None:
            return
        if self._transport.is_closing():
            flow.close()
        flow.begin_handling(self._now_ms())
        try:
            if self._made is not None and flow.may_send:
                self._send(self._made)
            while flow.may_handle(parser.held_bytes):
                request = parser.next()
                if request is None:
                    break
                self._handle(request)
                if flow.due_count:  # it waits, and there is one at a time
                    break
                if parser.unhandled_bytes and flow.is_turn_over(self._now_ms()):
                    asyncio.get_running_loop().call_soon(self._begin_next_turn)
        except Refused as refused:
            self._refuse(refused)
            return
        finally:
            flow.is_handling = False
        if not flow.due_count and parser.wants_continue and flow.may_handle(parser.held_bytes):
            parser.on_continued()
            self._write((CONTINUE,))
        self._read_or_pause()
        if flow.has_input_ended:
            self._close_if_finished()

    def _begin_next_turn(self) -> None:
        self._flow.begin_next_turn()
        self._go_on()

    def _handle(self, request: Request) -> None:
        self._request = request
        self._request_since_ms = None
        self._flow.on_request()
        if self._connections.is_leaving:
            self._connections.on_asked(self)
        handling = self._handle_request(request, self._visitor)
        if not begin(handling, self._on_made):
            self._handling = handling
            self._held_bytes = _REQUEST_BYTES + len(request.body)
            self._flow.on_kept_waiting(self._held_bytes)

    def _on_made(self, answer: Answer | StreamedAnswer | None, error: BaseException | None) -> None:
        self._handling = None
        held_bytes, self._held_bytes = self._held_bytes, 0
        self._flow.on_answered(0, held_bytes)
        if error is not None:
            answer = text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a bug; the node's log says more")
        assert answer is not None, "every handler answers"
        self._made = answer
        if self._flow.may_send:
            self._send(answer)
        if error is not None:
            _report(error)

    def _send(self, answer: Answer | StreamedAnswer) -> None:
        request, self._made = self._request, None
        assert request is not None, "only what was asked can be answered"
        is_chunked = isinstance(answer, StreamedAnswer) and answer.length_bytes is None
        keeps_alive = (
            request.keeps_alive
            and not (is_chunked and request.is_http_1_0)
            and not self._connections.is_leaving
        )
        is_chunked = is_chunked and not request.is_http_1_0
        if self._transport is not None:
            self._connections.on_answer(answer.status)
        head = encode_head(
            answer, keeps_alive=keeps_alive, date=self._connections.date(), is_chunked=is_chunked
        )
        with_body = has_body(answer, request.method)
        if isinstance(answer, Answer):
            self._write((b"".join((head, *answer.chunks)) if with_body else head,))
            self._on_sent(keeps_alive=keeps_alive)
            return
        self._stream = answer.stream
        self._write((head,))
        if self._transport is None or not with_body:
            self._end_stream()
            self._on_sent(keeps_alive=keeps_alive)
            return
        sending = self._send_pieces(answer.stream, answer.length_bytes, is_chunked=is_chunked)
        self._handling = sending
        begin(sending, lambda _, error: self._on_streamed(error, keeps_alive=keeps_alive))

    async def _send_pieces(self, stream: Stream, length_bytes: int | None, *, is_chunked: bool) -> None:
        sent_bytes, turn_ends_bytes = 0, HTTP_STREAM_BYTES_PER_TURN
        while self._stream is stream:
            piece = await stream.next()
            if sent_bytes >= turn_ends_bytes:
                turn_ends_bytes = sent_bytes + HTTP_STREAM_BYTES_PER_TURN
                await turn()
            while self._stream is stream and (self._flow.is_untaken or not self._flow.may_send):
                self._taken = asyncio.get_running_loop().create_future()
                await self._taken
            if self._stream is not stream:
                return
            if piece is None:
                assert length_bytes in (None, sent_bytes), f"{length_bytes} bytes were announced"
                if is_chunked:
                    self._write((LAST_CHUNK,))
                return
            if piece:
                sent_bytes += len(piece)
                self._write(encode_chunk(piece) if is_chunked else (piece,))

    def _on_streamed(self, error: BaseException | None, *, keeps_alive: bool) -> None:
        self._handling = None
        self._end_stream()
        if error is not None:
            self.abort()
            _report(error)
        self._on_sent(keeps_alive=keeps_alive)

    def _on_sent(self, *, keeps_alive: bool) -> None:
        """The answer is with the transport: the next request may be handled."""
        self._request = None
        self._idle_since_ms = self._now_ms()
        if self._transport is None:
            return
        flow = self._flow
        flow.on_sent(1, 0)
        if self._connections.is_leaving:
            self._connections.on_relieved(self)
        if not keeps_alive:
            self._part()
        elif not flow.is_handling and not (self._parser.is_empty and flow.comes_to_rest()):
            self._go_on()

    def _refuse(self, refused: Refused) -> None:
        """Say why, and close."""
        if refused.is_foreign:
            self._connections.on_foreign(self._visitor.address, str(refused))
        answer = text_answer(refused.status, str(refused))
        self._connections.on_answer(answer.status)
        head = encode_head(answer, keeps_alive=False, date=self._connections.date())
        self._write((head, *answer.chunks))
        self._part()

    def _part(self) -> None:
        """Nothing more is answered: say so, hear the client out for a while, and close."""
        transport = self._transport
        assert transport is not None, "one parts from a client that is there"
        self._flow.close()
        self._flow.charge(0, self._untaken_bytes)
        self._request_since_ms = None
        if transport.is_closing() or not transport.can_write_eof() or self._flow.has_input_ended:
            transport.close()
            return
        transport.write_eof()
        self._linger_since_ms = self._now_ms()
        if not self._flow.is_reading:
            transport.resume_reading()

    def _write(self, chunks: Sequence[bytes]) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            if len(chunks) == 1:
                self._connections.sent_bytes += len(chunks[0])
                transport.write(chunks[0])
            else:
                self._connections.sent_bytes += sum(map(len, chunks))
                transport.writelines(chunks)

    def _read_or_pause(self) -> None:
        transport, flow, parser = self._transport, self._flow, self._parser
        if transport is None or self._linger_since_ms is not None:
            return
        held_bytes = parser.held_bytes
        flow.charge(held_bytes, self._untaken_bytes if flow.is_untaken else 0)
        if transport.is_closing():
            return
        if flow.decide_reading(parser.unhandled_bytes, held_bytes):
            if flow.is_reading:
                transport.resume_reading()
                self._request_since_ms = None  # what we kept waiting is not late
            else:
                transport.pause_reading()
        if flow.due_count or not parser.is_within_request:
            self._request_since_ms = None
        elif self._request_since_ms is None:
            self._request_since_ms = self._now_ms()

    def _is_late(self, now_ms: float, request_ms_max: int) -> bool:
        """Whether a request that is being sent takes longer than that, and what its body may take."""
        if self._request_since_ms is None or not self._flow.is_reading:
            return False
        body_ms = self._parser.body_bytes * 1000 / HTTP_BODY_BYTES_PER_S_MIN
        return now_ms - self._request_since_ms > request_ms_max + body_ms

    def _close_if_finished(self) -> None:
        if self._flow.is_finished(self._parser.held_bytes):
            self.finish()

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.end()

    def _on_taken(self) -> None:
        if self._taken is not None and not self._taken.done():
            self._taken.set_result(None)

    def _pause_with_door(self) -> None:
        if self._connections.is_paused:
            self._flow.pause()
        else:
            self._flow.resume()

    @property
    def _untaken_bytes(self) -> int:
        """Answers that the client does not take. What the transport sends by itself within this turn does not count."""
        return self._transport.get_write_buffer_size() if self._flow.is_untaken and self._transport else 0


def _report(error: BaseException) -> None:
    """A bug. Raised, it would come out of whatever the handler waited for."""
    if not isinstance(error, Exception):
        raise error
    context = {"message": "a handler of an HTTP door failed", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
