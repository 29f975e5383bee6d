"""TLS and the clear at one address: the first byte of a connection says which it is.

Behaviour worth knowing
    The protocol hears of its connection with the first byte. Until then there is a time, and so many at once; the oldest goes when there are more.
    Whether the clear is taken is asked for each connection: where it no longer is, it is refused as on any address where TLS is spoken.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

from ropewalk.base.limits import TLS_HANDSHAKE_MS_MAX, TLS_HANDSHAKES_MAX
from ropewalk.base.ports import TlsContexts
from ropewalk.runtime.proxied import deliver
from ropewalk.runtime.tls import TlsListening

_HANDSHAKE: Final = 0x16


class Listening(Protocol):
    def wrap(self, factory: Callable[[], asyncio.BaseProtocol]) -> Callable[[], asyncio.BaseProtocol]: ...


def listen_by(tls: TlsContexts, takes_plain: Callable[[], bool] | None) -> Listening:
    """Without `takes_plain` it is TLS only."""
    listening = TlsListening(tls)
    return listening if takes_plain is None else TlsOrPlainListening(listening, takes_plain)


class TlsOrPlainListening:
    """What the connections of one listener have in common."""

    def __init__(self, tls: TlsListening, takes_plain: Callable[[], bool]) -> None:
        self.tls = tls
        self.takes_plain = takes_plain
        self._silent: dict[_TlsOrPlain, None] = {}

    def wrap(self, factory: Callable[[], asyncio.BaseProtocol]) -> "Callable[[], _TlsOrPlain]":
        return lambda: _TlsOrPlain(factory, self)

    def begin(self, connection: "_TlsOrPlain") -> None:
        self._silent[connection] = None
        if len(self._silent) > TLS_HANDSHAKES_MAX:
            next(iter(self._silent)).give_up()

    def end(self, connection: "_TlsOrPlain") -> None:
        self._silent.pop(connection, None)


class _TlsOrPlain(asyncio.Protocol):
    """Reads the first bytes, then gives its place to the protocol that they are for."""

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol], listening: TlsOrPlainListening) -> None:
        self._factory = factory
        self._listening = listening
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)
        self._timer = asyncio.get_running_loop().call_later(TLS_HANDSHAKE_MS_MAX / 1000, self.give_up)
        self._listening.begin(self)

    def data_received(self, data: bytes) -> None:
        self._end()
        transport, listening = self._transport, self._listening
        assert transport is not None, "data comes on an open connection"
        is_plain = data[0] != _HANDSHAKE and listening.takes_plain()
        inner = self._factory() if is_plain else listening.tls.wrap(self._factory)()
        transport.set_protocol(inner)
        inner.connection_made(transport)
        if not transport.is_closing():
            deliver(inner, data)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._end()

    def give_up(self) -> None:
        """It says nothing, or there are too many like it."""
        self._end()
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._listening.end(self)
