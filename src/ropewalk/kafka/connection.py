"""One client connection: frames in, answers out, both in order.

Behaviour worth knowing
    Requests take effect in the order in which they arrive: a handler runs to its first wait before the next
    frame is looked at, and one that must wait before its effect holds the next request back.
    Answers leave in the order of the requests, however long each takes.
    A connection has turns: after so many frames, or so many milliseconds, the loop goes round, and what the client has sent
    beyond that waits until it comes by again. No amount of pipelining keeps others waiting for longer.
    When handling and reading pause, and for what, is decided in `base/flow.py`. Nothing that was read is dropped.
    Bytes that are not the protocol end the connection with one line in the log, as in Kafka; only ApiVersions of
    an unknown version is answered (in version 0's layout, so that any client can read it).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.flow import Flow, FlowBounds, Waiting
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    CERTIFICATE_END_LOOK_MS,
    CONNECTION_ANSWER_BYTES_MAX,
    CONNECTION_FRAMES_PER_TURN,
    CONNECTION_REQUESTS_MAX,
    CONNECTION_TURN_MS,
    CONNECTION_UNSENT_BYTES_MAX,
    RECEIVE_BUFFER_BYTES_MIN,
)
from ropewalk.base.ports import Clock
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.encoded import Encoded
from ropewalk.kafka.meter import Meter
from ropewalk.kafka.receive_buffer import ReceiveBuffer
from ropewalk.kafka.served import ServedApi
from ropewalk.kafka.terms import ListenerTerms
from ropewalk.runtime.steps import begin
from ropewalk.security.identity import ANONYMOUS_IDENTITY, Identity
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.headers import decode_request_header, encode_response_header
from ropewalk.wire.messages import api_versions, sasl_authenticate
from ropewalk.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ropewalk.wire.types import Buffer, Message

_API_VERSIONS: Final = api_versions.API.key
_BOUNDS: Final = FlowBounds(
    requests_max=CONNECTION_REQUESTS_MAX,
    owed_bytes_max=CONNECTION_ANSWER_BYTES_MAX,
    requests_per_turn=CONNECTION_FRAMES_PER_TURN,
    turn_ms=CONNECTION_TURN_MS,
    buffer_bytes_min=RECEIVE_BUFFER_BYTES_MIN,
)


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        connections: Connections,
        served: dict[int, ServedApi],
        budget: ByteBudget,
        terms: ListenerTerms | None = None,
    ) -> None:
        """Other nodes come without `terms`."""
        self.terms: Final = terms
        self.listener: Final = "" if terms is None else terms.listener
        """By which of the node's addresses it came; empty between nodes."""
        self.identity: Identity = ANONYMOUS_IDENTITY
        """Who is at the other end, as far as that is known."""
        self._connections = connections
        self._served = served
        self._served_until = ""
        self._reads_tokens = False
        self._buffer = ReceiveBuffer(
            connections.frame_bytes_max, connections.spare_buffers, connections.large_api_keys
        )
        self._answers: deque[_Answer] = deque()
        self._transport: asyncio.Transport | None = None
        self._host = ""
        self._quotas = connections.quotas
        self._flow = Flow(_BOUNDS, budget, self)
        self._unmute: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None
        self._end_watchers: dict[Callable[[], None], None] = {}
        self.active_at_ms = 0.0
        self.peer_id: NodeId | None = None
        """Which node of the cluster is at the other end, once it has proved that it is one."""

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._host = str(peer[0]) if peer else "unknown"
        self._transport.set_write_buffer_limits(high=CONNECTION_UNSENT_BYTES_MAX, low=0)
        self._pause_with_door()
        self._connections.on_opened(self)
        if self.terms is not None and self.terms.admit is not None:
            self.terms.admit(self)

    def on_handshake_done(self) -> None:
        """Whoever has shown a certificate has its name from here on, and until it ends."""
        certificate = None
        if self.terms is not None and self.terms.identify is not None and self._transport is not None:
            certificate = self._transport.get_extra_info("peercert_der")
        if certificate is None:
            return
        assert self.terms is not None, "a certificate was asked for"
        assert self.terms.identify is not None, "a certificate was asked for"
        try:
            self.identity = self.terms.identify(certificate)
        except RopewalkError as error:
            self.close(str(error))
            return
        if self.identity.ends_at_ms is not None:
            self.end_at(self.identity.ends_at_ms, self.identity.principal)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        if self._end is not None:
            self._end.cancel()
        if self._unmute is not None:
            self._unmute.cancel()
        self._answers.clear()
        self._connections.on_closed(self)
        for on_end in list(self._end_watchers):
            on_end()
        self._flow.lose()

    def get_buffer(self, _: int) -> memoryview:
        return self._buffer.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self._buffer.on_received(nbytes)
        self._connections.received_bytes += nbytes
        self.active_at_ms = now_ms = self._connections.clock.monotonic_ms()
        self._go_on(now_ms)

    def eof_received(self) -> bool:
        self._flow.end_input()
        self._close_if_finished()
        return self._transport is not None and not self._transport.is_closing()

    def pause_writing(self) -> None:
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        self._flow.resume_writing()
        self._go_on()

    # What handlers and the listener call

    @property
    def clock(self) -> Clock:
        return self._connections.clock

    @property
    def host(self) -> str:
        return self._host

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_idle(self) -> bool:
        return not self._answers and self._buffer.unhandled_bytes == 0

    def hold(self) -> None:
        self._flow.hold()

    def release(self) -> None:
        if self._flow.release():
            self._go_on()

    def begin_wait(self, waiting: Waiting) -> None:
        self._flow.begin_wait(waiting)

    def end_wait(self, waiting: Waiting) -> None:
        if self._flow.end_wait(waiting):
            self._go_on()

    def watch_end(self, on_end: Callable[[], None]) -> None:
        self._end_watchers[on_end] = None

    def unwatch_end(self, on_end: Callable[[], None]) -> None:
        self._end_watchers.pop(on_end, None)

    def mute(self, throttle_ms: float) -> None:
        """Handle nothing more for so long. Answers that are due are sent."""
        if self._transport is None:
            return
        loop = asyncio.get_running_loop()
        longer_ms = self._flow.mute(loop.time() * 1000, throttle_ms)
        if not longer_ms:
            return
        if self._unmute is not None:
            self._unmute.cancel()
        self._connections.throttle_count += 1
        self._connections.throttle_ms += longer_ms
        self._unmute = loop.call_later(throttle_ms / 1000, self._on_unmuted)
        self._read_or_pause()

    def _on_unmuted(self) -> None:
        self._unmute = None
        self._flow.unmute()
        self._go_on()

    def serve(self, served: dict[int, ServedApi], *, frame_bytes_max: int, until: str = "") -> None:
        """From the next request on, serve these instead; `until` says to people what will change that."""
        self._served = served
        self._served_until = until and f" until {until}"
        self._reads_tokens = False
        self._buffer.frame_bytes_max = frame_bytes_max

    def read_tokens(self) -> None:
        """Until the next `serve`, frames have no header: each is the token of a SaslAuthenticate, and so is its answer."""
        self._reads_tokens = True

    def end_at(self, ends_at_ms: float, owner: str) -> None:
        """Close when the certificate of `owner` ends. Looked at again once a day: the wall clock may be set."""
        left_ms = ends_at_ms - self._connections.clock.now_ms()
        if left_ms <= 0:
            self.close(f"the certificate of {owner} has ended")
            return
        wait_s = min(left_ms, CERTIFICATE_END_LOOK_MS) / 1000
        self._end = asyncio.get_running_loop().call_later(wait_s, self.end_at, ends_at_ms, owner)

    @property
    def tls(self) -> ssl.SSLObject | None:
        """None on a plain connection."""
        return None if self._transport is None else self._transport.get_extra_info("ssl_object")

    def report(self, reason: str) -> None:
        self._connections.on_suspicious(self, reason)

    def end_input(self) -> None:
        """Close when everything that was asked so far is answered."""
        self._flow.has_input_ended = True

    def release_memory(self) -> None:
        self._buffer.release()
        self._flow.charge(self._buffer.capacity_bytes, self._untaken_bytes)

    def close(self, reason: str | None = None) -> None:
        """Drop the connection; a reason is worth a line in the log."""
        if self._transport is not None and not self._transport.is_closing():
            if reason is not None:
                self._connections.on_refused(self, reason)
            self._flow.close()
            self._transport.abort()

    def refuse_after(self, delay_ms: float) -> None:
        """Serve nobody here, and close in a while: a client that is refused at once would try again at once."""
        self.hold()
        asyncio.get_running_loop().call_later(delay_ms / 1000, self.close)
        self._read_or_pause()

    def finish(self) -> None:
        """Close once what has been answered is sent."""
        if self._transport is not None:
            self._flow.close()
            self._transport.close()

    def on_paused_or_resumed(self) -> None:
        self._pause_with_door()
        self._go_on()

    def on_room(self) -> None:
        # Not at once: whoever made room is in the middle of something, and the next would make room for the next.
        asyncio.get_running_loop().call_soon(self._go_on)

    @property
    def held_bytes(self) -> int:
        """Of the node's budget."""
        return self._flow.charged_bytes

    def has_stalled(self) -> bool:
        return self._flow.has_stalled(self.active_at_ms, self._buffer.unhandled_bytes, self._untaken_bytes)

    def on_answered(self, count_bytes: int, held_bytes: int) -> None:
        flow = self._flow
        flow.on_answered(count_bytes, held_bytes)
        if not flow.is_handling and self._transport is not None:
            self._send()
            flow.charge(self._buffer.capacity_bytes, self._untaken_bytes if flow.is_untaken else 0)
            if not flow.is_reading:
                self._go_on()
            elif flow.has_input_ended:
                self._close_if_finished()

    # The machine

    def _go_on(self, now_ms: float | None = None) -> None:
        """Handle every frame that may be handled in this turn, then decide whether to read more."""
        flow = self._flow
        if self._transport is None or flow.is_handling:
            return
        if self._transport.is_closing():  # it may know before we are told
            flow.close()
        clock = self._connections.clock
        flow.begin_handling(clock.monotonic_ms() if now_ms is None else now_ms)
        buffer = self._buffer
        try:
            while flow.may_handle(buffer.capacity_bytes):
                frame = buffer.next_frame()
                if frame is None:
                    break
                self._handle(*frame)
                if not buffer.unhandled_bytes:  # as with most clients: then nothing more is to be asked
                    break
                if flow.is_turn_over(clock.monotonic_ms()):
                    asyncio.get_running_loop().call_soon(self._begin_next_turn)
                if flow.owes_much:
                    self._send()  # the transport then says whether the client keeps up
        except ProtocolError as error:
            self._send()
            self.close(str(error))
        finally:
            flow.is_handling = False
        self._send()
        if not flow.hold_count:  # whoever holds the connection may have looked at half of a request only
            buffer.settle()
        self._read_or_pause()
        if flow.has_input_ended:
            self._close_if_finished()

    def _begin_next_turn(self) -> None:
        self._flow.begin_next_turn()
        self._go_on()

    def _pause_with_door(self) -> None:
        if self._connections.is_paused:
            self._flow.pause()
        else:
            self._flow.resume()

    def _handle(self, position: int, end: int) -> None:
        view = self._buffer.view
        if self._reads_tokens:
            self._handle_token(bytes(view[position:end]))
            return
        header, body = decode_request_header(view, position, end, self._connections.flexible_since)
        served = self._served.get(header.api_key)
        if served is None:
            raise ProtocolError(f"API key {header.api_key} is not served{self._served_until}")
        if not served.version_min <= header.version <= served.version_max:
            if header.api_key != _API_VERSIONS:
                raise ProtocolError(
                    f"{served.api.name} v{header.version} is not served, "
                    f"v{served.version_min} to v{served.version_max} are"
                )
            self._refuse_api_versions(header.correlation_id, served)
            return
        meter = None
        if self._quotas.image.client_quotas:
            user = self.identity.name
            meter = Meter(self._quotas, self._connections.clock, header.api_key, header.client_id, user)
        request = served.api.decode_request(header.version, view, body, end)
        answer = _Answer(self, served, header.version, header.correlation_id, meter)
        self._answers.append(answer)
        self._flow.on_request()
        caller = Caller(
            self,
            client_id=header.client_id,
            host=self._host,
            version=header.version,
            meter=meter,
            identity=self.identity,
            listener=self.listener,
        )
        answer.of(caller)
        handling = served.handle(request, caller)
        if meter is None:
            is_done = begin(handling, answer.on_done)
        else:
            meter.on_decoded(end - position)
            is_done = begin(handling, answer.on_done)
            meter.on_wait()
            if meter.throttle_ms:
                self.mute(meter.throttle_ms)
        if not is_done:
            answer.handling = handling
            answer.held_bytes = served.weigh(request, end - position)
            if self._flow.hold_count:  # a copy of its records is being looked at
                answer.held_bytes += end - position
            self._flow.on_kept_waiting(answer.held_bytes)

    def _handle_token(self, token: bytes) -> None:
        """As clients of Kafka 0.10 log in."""
        served = self._served[sasl_authenticate.API.key]
        answer = _TokenAnswer(self, served, 0, 0)
        self._answers.append(answer)
        self._flow.on_request()
        caller = Caller(
            self,
            client_id=None,
            host=self._host,
            version=0,
            identity=self.identity,
            listener=self.listener,
        )
        handling = served.handle(sasl_authenticate.SaslAuthenticateRequest(token), caller)
        if not begin(handling, answer.on_done):
            answer.handling = handling
            answer.held_bytes = len(token)
            self._flow.on_kept_waiting(answer.held_bytes)

    def _refuse_api_versions(self, correlation_id: int, served: ServedApi) -> None:
        """The one mismatch that is answered: any client can read version 0, and learns what to ask for."""
        answer = _Answer(self, served, 0, correlation_id)
        self._answers.append(answer)
        self._flow.on_request()
        entry = ApiVersion(
            api_key=_API_VERSIONS, min_version=served.version_min, max_version=served.version_max
        )
        answer.on_done(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(entry,)), None)

    def _send(self) -> None:
        """What it gives out of hand is charged by whoever called, once it is through."""
        transport = self._transport
        answers = self._answers
        if transport is None or not answers or not answers[0].is_done or not self._flow.may_send:
            return
        chunks: list[Buffer] = []
        answer_count, size_bytes = 0, 0
        while answers and answers[0].is_done:
            answer = answers.popleft()
            chunks += answer.chunks
            answer_count += 1
            size_bytes += answer.size_bytes
        self._flow.on_sent(answer_count, size_bytes)
        if chunks:
            self._connections.sent_bytes += size_bytes
            transport.writelines(chunks)

    def _read_or_pause(self) -> None:
        transport = self._transport
        if transport is None:
            return
        flow, buffer = self._flow, self._buffer
        buffer_bytes = buffer.capacity_bytes
        flow.charge(buffer_bytes, self._untaken_bytes if flow.is_untaken else 0)
        if transport.is_closing():
            return
        if flow.decide_reading(buffer.unhandled_bytes, buffer_bytes):
            if flow.is_reading:
                transport.resume_reading()
            else:
                transport.pause_reading()

    @property
    def _untaken_bytes(self) -> int:
        """Answers that the client does not take. What the transport sends by itself within this turn does not count."""
        return self._transport.get_write_buffer_size() if self._flow.is_untaken and self._transport else 0

    def _close_if_finished(self) -> None:
        """What was read before the client's end and may not be handled yet is still answered."""
        if self._flow.is_finished(self._buffer.capacity_bytes) and self._transport is not None:
            self._flow.close()
            self._transport.close()


class _Answer:
    """The place of one request in the order of answers."""

    __slots__ = (
        "_arrived_at_ms",
        "_caller",
        "_connection",
        "_correlation_id",
        "_meter",
        "_served",
        "_version",
        "chunks",
        "handling",
        "held_bytes",
        "is_done",
        "size_bytes",
    )

    def __init__(
        self,
        connection: Connection,
        served: ServedApi,
        version: int,
        correlation_id: int,
        meter: Meter | None = None,
    ) -> None:
        self._connection = connection
        self._meter = meter
        self._served = served
        self._version = version
        self._correlation_id = correlation_id
        self._arrived_at_ms = connection.active_at_ms
        self._caller: Caller | None = None
        self.chunks: list[Buffer] = []
        self.handling: object = None
        """What waits for an answer is kept by its connection. If only what it waits for kept it, and that were dropped, it would
        be ended by the garbage collection, in any thread, and release the connection from there."""
        self.size_bytes = 0
        self.held_bytes = 0
        self.is_done = False

    def of(self, caller: Caller) -> None:
        """Who asks, and what its handler measures."""
        self._caller = caller

    def on_done(self, response: Message | None, error: BaseException | None) -> None:
        if isinstance(error, Disconnect):
            self._connection.close(str(error))
            return
        if error is None and response is not None:
            try:
                self.chunks = (
                    self._framed(response) if self._meter is None else self._metered(response, self._meter)
                )
            except Exception as unencodable:  # noqa: BLE001  a bug like any other in a handler, reported below
                error = unencodable
        if error is not None:
            self._report(error)
            return
        caller = self._caller
        self._served.tally.on_answered(
            response,
            self._connection.clock.monotonic_ms() - self._arrived_at_ms,
            None if caller is None else caller.waited_ms,
            None if caller is None else caller.measured_ms,
        )
        self.is_done = True
        self._connection.on_answered(self.size_bytes, self.held_bytes)

    def _report(self, error: BaseException) -> None:
        """A bug. It ends its own connection; raised, it would come out of whichever request is being handled."""
        self._connection.close(f"{self._served.api.name} failed: {error!r}")
        if not isinstance(error, Exception):
            raise error
        context = {"message": f"{self._served.api.name} failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)

    def _metered(self, response: Message, meter: Meter) -> list[Buffer]:
        meter.on_encoding()
        chunks = self._framed(response)
        meter.on_answer(self.size_bytes)
        if meter.throttle_ms:
            chunks = self._framed(meter.told(response))
            self._connection.mute(meter.throttle_ms)
        return chunks

    def _framed(self, response: Message) -> list[Buffer]:
        api, version = self._served.api, self._version
        header = encode_response_header(api, version, self._correlation_id)
        body = response.body() if type(response) is Encoded else api.encode_response(version, response)
        size = len(header) + sum(map(len, body))
        self.size_bytes = 4 + size
        if len(body) == 1:
            return [b"".join((size.to_bytes(4, "big"), header, body[0]))]
        body[0] = b"".join((size.to_bytes(4, "big"), header, body[0]))
        return body


class _TokenAnswer(_Answer):
    """Of a token without a header. There is no place for an error: whoever is refused is left."""

    __slots__ = ()

    def on_done(self, response: Message | None, error: BaseException | None) -> None:
        if isinstance(response, sasl_authenticate.SaslAuthenticateResponse) and response.error_code:
            self._connection.close()
            return
        super().on_done(response, error)

    def _framed(self, response: Message) -> list[Buffer]:
        assert isinstance(response, sasl_authenticate.SaslAuthenticateResponse)
        token = response.auth_bytes
        self.size_bytes = 4 + len(token)
        return [len(token).to_bytes(4, "big") + token]
