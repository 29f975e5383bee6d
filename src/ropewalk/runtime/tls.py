"""TLS between a protocol and its transport, over any transport: OpenSSL on memory, fed and emptied here.

The loop's own TLS is not used. It tells of a connection only after the handshake, so that nobody counts those who never finish one;
it keeps several times the memory; and it takes a context once, where a certificate must be replaced without a restart.

Behaviour worth knowing
    On the side that listens the protocol is told of a connection as soon as it is accepted, and counts it. It gets nothing to read
    before the handshake is done. What it writes before that is kept and sent after it.
    A handshake has a time and a number of bytes. So many may be under way in all and from one address; the oldest goes when there are
    more. A turn of the loop works on a few of them, so that strangers cannot hold it.
    The client's farewell (close_notify) ends the input alone: what was asked before is still answered. A connection that ends without
    one is treated alike, since what the doors read says its own length.

What a reader could get wrong
    OpenSSL's memory never shrinks: what comes is given to it in small steps, each read before the next.
    The buffer that sockets are read into is one for all connections of a thread: what cannot be delivered at once is copied.
"""

import asyncio
import ssl
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, cast

from ropewalk.base.complaints import Complaints
from ropewalk.base.limits import (
    TLS_HANDSHAKE_BYTES_MAX,
    TLS_HANDSHAKE_MS_MAX,
    TLS_HANDSHAKES_MAX,
    TLS_HANDSHAKES_PER_HOST_MAX,
    TLS_HANDSHAKES_PER_TURN,
    TLS_RECEIVE_BYTES,
    TLS_STEP_BYTES,
    TLS_WRITE_BYTES,
)
from ropewalk.base.ports import HearsOfHandshake, TlsContexts

_RECORD_BYTES: Final = 1 << 14
"""What one record of TLS holds at most. Smaller pieces are joined up to it: a record costs more than its bytes."""

_Buffer = bytes | bytearray | memoryview

_HANDSHAKE: Final = 0x16
_FIRST_BYTES: Final = (
    (b"\x00", "plain Kafka"),
    (b"GET ", "plain HTTP"),
    (b"POST", "plain HTTP"),
    (b"HEAD", "plain HTTP"),
    (b"PUT ", "plain HTTP"),
    (b"PROX", "a PROXY header"),
    (b"\r\n\r\n", "a PROXY header"),
)


class TlsListening:
    """What the connections of one listener have in common: where contexts come from, and who shakes hands."""

    def __init__(self, contexts: TlsContexts) -> None:
        self.contexts = contexts
        self.handshake_count = 0
        """Those that were finished."""
        self.failed_count = 0
        self._under_way: dict[TlsProtocol, None] = {}
        self._by_host: Counter[str] = Counter()
        self._due: deque[TlsProtocol] = deque()
        self._step_count = 0
        """In this turn of the loop."""
        self._complaints = Complaints()

    def wrap(self, factory: Callable[[], asyncio.BaseProtocol]) -> "Callable[[], TlsProtocol]":
        return lambda: TlsProtocol(factory(), listening=self)

    def begin(self, connection: "TlsProtocol") -> None:
        """Somebody wants to shake hands. Of too many the oldest is let go."""
        self._under_way[connection] = None
        self._by_host[connection.host] += 1
        if self._by_host[connection.host] > TLS_HANDSHAKES_PER_HOST_MAX:
            oldest = next(other for other in self._under_way if other.host == connection.host)
            oldest.refuse(
                f"more than {TLS_HANDSHAKES_PER_HOST_MAX} handshakes from one address were under way"
            )
        elif len(self._under_way) > TLS_HANDSHAKES_MAX:
            next(iter(self._under_way)).refuse(f"more than {TLS_HANDSHAKES_MAX} handshakes were under way")

    def end(self, connection: "TlsProtocol", *, is_done: bool) -> None:
        if connection not in self._under_way:
            return
        del self._under_way[connection]
        self._by_host[connection.host] -= 1
        if not self._by_host[connection.host]:
            del self._by_host[connection.host]
        if is_done:
            self.handshake_count += 1
        else:
            self.failed_count += 1

    def ask_for_step(self, connection: "TlsProtocol") -> bool:
        """Let it go on with its handshake when its turn comes. Whether that was at once."""
        loop = asyncio.get_running_loop()
        if not self._due and self._step_count < TLS_HANDSHAKES_PER_TURN:
            if not self._step_count:
                loop.call_soon(self._begin_turn)
            self._step_count += 1
            connection.step()
            return True
        self._due.append(connection)
        return False

    def _begin_turn(self) -> None:
        self._step_count = 0
        while self._due and self._step_count < TLS_HANDSHAKES_PER_TURN:
            self._step_count += 1
            self._due.popleft().step()
        if self._step_count:
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def complain(self, host: str, reason: str) -> None:
        if self._complaints.is_due(f"{host} {reason}", asyncio.get_running_loop().time() * 1000):
            import structlog  # seldom needed, and slow to come by for a program that only connects

            structlog.get_logger().warning("no TLS with a client", client=host, reason=reason)


class TlsProtocol(asyncio.BufferedProtocol):
    """Between the transport, whose protocol this is, and `inner`, whose transport `TlsTransport` is."""

    def __init__(
        self,
        inner: asyncio.BaseProtocol,
        *,
        listening: TlsListening | None = None,
        context: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        self.host = ""
        self.inner: Final = inner
        self._inner_buffered = cast(asyncio.BufferedProtocol, inner)
        self._inner_plain = cast(asyncio.Protocol, inner)
        self._is_buffered = isinstance(inner, asyncio.BufferedProtocol)
        self._listening = listening
        made = listening.contexts() if listening is not None else context
        assert made is not None, "one side brings a listener's contexts, the other a context"
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = made.wrap_bio(
            self._incoming, self._outgoing, server_side=listening is not None, server_hostname=server_name
        )
        self._transport: asyncio.Transport | None = None
        self.face: Final = TlsTransport(self, self._tls)
        self._unread = bytearray()
        """What came and may not be delivered yet: the protocol reads nothing, or its handshake is not its turn."""
        self._unsent: list[_Buffer] = []
        """What was written before the handshake was done."""
        self._handshake_bytes = 0
        self._is_shaking_hands = True
        self._is_step_due = False
        self._is_told = False
        """Whether the protocol knows of its connection."""
        self._is_reading = True
        self._is_delivering = False
        self._is_full = False
        """Whether the protocol was given something and wants no more: OpenSSL may hold the rest of it."""
        self._has_input_ended = False
        self._stays_open: bool | None = None
        """What the protocol said when it heard that the input has ended."""
        self._has_said_farewell = False
        self._is_closing = False
        self._timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        self.shaken: asyncio.Future[None] | None = None
        """Ends with the handshake; only the side that calls waits for it."""

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else "unknown"
        self._timer = loop.call_later(TLS_HANDSHAKE_MS_MAX / 1000, self._on_late)
        if self._listening is None:
            self.shaken = loop.create_future()
            self.step()
            return
        self._is_told = True
        self.inner.connection_made(self.face)
        if self._transport is not None and not self._transport.is_closing():
            self._listening.begin(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._is_closing = True
        self._end_handshake(is_done=False)
        self._unread.clear()
        self._unsent.clear()
        if self.shaken is not None and not self.shaken.done():
            reason = self._error or error or ConnectionResetError("the connection was lost in the handshake")
            self.shaken.set_exception(reason)
        if self._is_told:
            self.inner.connection_lost(self._error or error)

    def get_buffer(self, _: int) -> memoryview:
        return _received()

    def buffer_updated(self, nbytes: int) -> None:
        self._on_received(_received()[:nbytes])

    def eof_received(self) -> bool:
        if self._is_shaking_hands:
            self._fail(ConnectionResetError("the other side went away in the handshake"))
            return False
        return self._on_input_ended()

    def pause_writing(self) -> None:
        if self._is_told:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        if self._is_told:
            self.inner.resume_writing()

    # What the listener calls

    def step(self) -> None:
        """Go on with the handshake: with what has come, or, on the side that calls, with the first word."""
        if self._is_step_due:
            self._is_step_due = False
            if self._transport is not None and not self._transport.is_closing() and self._is_reading:
                self._transport.resume_reading()
        if not self._is_shaking_hands or self._transport is None:
            return
        try:
            while True:
                self._feed_unread()
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    if self._unread:
                        continue
                    self._flush()
                    if self._handshake_bytes > TLS_HANDSHAKE_BYTES_MAX:
                        reason = f"a handshake of more than {TLS_HANDSHAKE_BYTES_MAX} bytes"
                        self._fail(ConnectionAbortedError(reason))
                    return
        except ssl.SSLError as error:
            self._flush()  # it tells the other side why
            self._fail(error)
            return
        self._is_shaking_hands = False
        self._end_handshake(is_done=True)
        self._flush()
        if not self._is_told:
            self._is_told = True
            self.inner.connection_made(self.face)
        if self.shaken is not None and not self.shaken.done():
            self.shaken.set_result(None)
        if isinstance(self.inner, HearsOfHandshake):
            self.inner.on_handshake_done()
        if self._unsent:
            kept, self._unsent = self._unsent, []
            self.write(kept)
        self._deliver()

    def refuse(self, reason: str) -> None:
        self._fail(ConnectionAbortedError(reason))

    # What the protocol does to its transport

    @property
    def transport(self) -> asyncio.Transport | None:
        return self._transport

    @property
    def is_closing(self) -> bool:
        return self._is_closing or self._transport is None or self._transport.is_closing()

    @property
    def is_reading(self) -> bool:
        return self._is_reading

    def write(self, chunks: Iterable[_Buffer]) -> None:
        if self.is_closing or self._has_said_farewell:
            return
        if self._is_shaking_hands:
            self._unsent += (bytes(chunk) for chunk in chunks)
            return
        small: list[_Buffer] = []
        small_bytes = 0
        for chunk in chunks:
            size = len(chunk)
            if small_bytes + size < _RECORD_BYTES:
                small.append(chunk)
                small_bytes += size
                continue
            view = memoryview(chunk)
            if small:
                taken = _RECORD_BYTES - small_bytes
                small.append(view[:taken])
                self._encrypt(b"".join(small))
                small, small_bytes = [], 0
                view = view[taken:]
            for start in range(0, len(view), TLS_WRITE_BYTES):
                self._encrypt(view[start : start + TLS_WRITE_BYTES])
        if small:
            self._encrypt(small[0] if len(small) == 1 else b"".join(small))

    def pause_reading(self) -> None:
        self._is_reading = False
        if self._transport is not None and not self._transport.is_closing() and not self._has_input_ended:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading = True
        # Not at once: whoever resumes is in the middle of something, as with any transport.
        asyncio.get_running_loop().call_soon(self._go_on_reading)

    def close(self) -> None:
        if self.is_closing:
            return
        self._is_closing = True
        transport = self._transport
        assert transport is not None, "a lost connection is closing"
        if self._is_shaking_hands:
            transport.abort()
            return
        self.say_farewell()
        transport.close()

    def say_farewell(self) -> None:
        """Nothing more is written; what the other side sends is still read."""
        if self._is_shaking_hands or self._has_said_farewell:
            return
        self._has_said_farewell = True
        with suppress(ssl.SSLError):  # it asks for the other side's farewell, which nobody waits for
            self._tls.unwrap()
        self._flush()

    def abort(self) -> None:
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    # The machine

    def _on_received(self, data: memoryview) -> None:
        if self._is_shaking_hands:
            self._on_handshake_bytes(data)
            return
        if not self._is_reading or self._unread or self._is_delivering:
            self._unread += data
            return
        for start in range(0, len(data), TLS_STEP_BYTES):
            self._incoming.write(data[start : start + TLS_STEP_BYTES])
            if not self._read():
                self._unread += data[start + TLS_STEP_BYTES :]
                return

    def _on_handshake_bytes(self, data: memoryview) -> None:
        if self._listening is not None and not self._handshake_bytes and data[0] != _HANDSHAKE:
            self._fail(ConnectionAbortedError(f"{_called(bytes(data[:4]))} came, where TLS is spoken"))
            return
        self._handshake_bytes += len(data)
        self._unread += data
        if self._listening is None:
            self.step()
        elif not self._is_step_due:
            self._is_step_due = True
            if not self._listening.ask_for_step(self) and self._transport is not None:
                self._transport.pause_reading()

    def _go_on_reading(self) -> None:
        if not self._is_reading or self._transport is None or self._is_shaking_hands:
            return
        self._deliver()
        if self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _deliver(self) -> None:
        """What waited, as far as the protocol wants it."""
        if self._is_delivering:
            return
        if self._read():
            while self._unread and not self.is_closing:
                self._feed_unread()
                if not self._read():
                    return
            if self._has_input_ended:
                self._end_input()

    def _feed_unread(self) -> None:
        with memoryview(self._unread) as view, view[:TLS_STEP_BYTES] as piece:
            self._incoming.write(piece)
        del self._unread[:TLS_STEP_BYTES]

    def _read(self) -> bool:
        """Give the protocol what OpenSSL has of it. False where the protocol wants no more."""
        self._is_delivering = True
        self._is_full = False
        try:
            while self._is_reading and not self._is_closing:
                if self._is_buffered:
                    count = cast(int, self._tls.read(TLS_STEP_BYTES, self._inner_buffered.get_buffer(-1)))
                    if count:
                        self._inner_buffered.buffer_updated(count)
                else:
                    data = self._tls.read(TLS_STEP_BYTES)
                    count = len(data)
                    if data:
                        self._inner_plain.data_received(data)
                if not count:
                    self._on_farewell()
                    return True
        except ssl.SSLWantReadError:
            if self._outgoing.pending:  # a change of keys is answered
                self._flush()
            return True
        except ssl.SSLZeroReturnError:
            self._on_farewell()
            return True
        except ssl.SSLError as error:
            self._flush()
            self._fail(error)
            return True
        finally:
            self._is_delivering = False
        self._is_full = True
        return False

    def _on_farewell(self) -> None:
        """The other side sends nothing more under TLS; what comes after it is nobody's."""
        self._unread.clear()
        if not self._has_input_ended:
            asyncio.get_running_loop().call_soon(self._end_input)

    def _end_input(self) -> None:
        if self._transport is not None and not self._on_input_ended():
            self.close()

    def _on_input_ended(self) -> bool:
        """Whether the connection stays open for what is still to be answered."""
        self._has_input_ended = True
        if self.is_closing:
            return False
        if self._unread or self._is_full:
            return True  # the protocol hears of it when it has read the rest
        if self._stays_open is None:
            self._stays_open = bool(self._inner_plain.eof_received())
        return self._stays_open and not self.is_closing

    def _encrypt(self, data: _Buffer) -> None:
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and self._transport is not None:
            self._transport.write(self._outgoing.read())

    def _on_late(self) -> None:
        self._timer = None
        self._fail(TimeoutError(f"the handshake took longer than {TLS_HANDSHAKE_MS_MAX} ms"))

    def _end_handshake(self, *, is_done: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._listening is not None:
            self._listening.end(self, is_done=is_done)

    def _fail(self, error: Exception) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._error = error
        if self._listening is not None:
            self._listening.complain(self.host, _in_words(error))
        self._is_closing = True
        self._end_handshake(is_done=False)
        if isinstance(error, ssl.SSLError):
            self._transport.close()  # so that the alert arrives
        else:
            self._transport.abort()


class TlsTransport(asyncio.Transport):
    """What the protocol writes to: the connection as it would be without TLS."""

    def __init__(self, protocol: TlsProtocol, tls: ssl.SSLObject) -> None:
        super().__init__()
        self._protocol = protocol
        self._tls = tls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        if name == "peercert_der":
            return self._tls.getpeercert(binary_form=True)
        transport = self._protocol.transport
        return default if transport is None else transport.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._protocol.write((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._protocol.write(list_of_data)

    def is_closing(self) -> bool:
        return self._protocol.is_closing

    def close(self) -> None:
        self._protocol.close()

    def abort(self) -> None:
        self._protocol.abort()

    def is_reading(self) -> bool:
        return self._protocol.is_reading

    def pause_reading(self) -> None:
        self._protocol.pause_reading()

    def resume_reading(self) -> None:
        self._protocol.resume_reading()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._protocol.say_farewell()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        transport = self._protocol.transport
        if transport is not None:
            transport.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        transport = self._protocol.transport
        return 0 if transport is None else transport.get_write_buffer_size()


_Connect = Callable[
    [Callable[[], asyncio.BaseProtocol]], Awaitable[tuple[asyncio.BaseTransport, asyncio.BaseProtocol]]
]


async def with_tls(
    connect: _Connect, factory: Callable[[], asyncio.BaseProtocol], context: ssl.SSLContext, host: str
) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
    """Connect, and shake hands with whoever proves to be `host`. Raises `OSError`, of which `ssl.SSLError` is a kind."""
    _, made = await connect(lambda: TlsProtocol(factory(), context=context, server_name=host))
    connection = cast(TlsProtocol, made)
    assert connection.shaken is not None, "the connection was made"
    try:
        await connection.shaken
    except BaseException:
        connection.abort()
        raise
    return connection.face, connection.inner


class _Received(threading.local):
    """What sockets are read into: used up before the loop of the thread reads the next one."""

    view: memoryview | None = None


_buffers: Final = _Received()


def _received() -> memoryview:
    view = _buffers.view
    if view is None:
        view = _buffers.view = memoryview(bytearray(TLS_RECEIVE_BYTES))
    return view


def _called(first: bytes) -> str:
    for beginning, name in _FIRST_BYTES:
        if first.startswith(beginning):
            return name
    return f"something that begins with {first.hex(' ')}"


def _in_words(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is refused: {error.verify_message}"
        case ssl.SSLError():
            return (error.reason or str(error)).replace("_", " ").lower()
        case _:
            return str(error)
