"""Connections that proxies make for clients: each begins with a header, and has the client's address from there on.

Behaviour worth knowing
    Whoever connects from one of the networks that are named must send a header, and soon. Nobody else's is taken: on a listener, it is not
    the protocol that is spoken there, and is refused as such.
    The protocol hears of its connection when the header is read. Under TLS the header comes first, in the clear.

What a reader could get wrong
    Headers are believed. Who may connect from such a network may say any address, which quotas and rules then go by.
"""

import asyncio
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final, cast

from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import PROXY_HEADER_MS_MAX, PROXY_HEADERS_MAX
from ropewalk.base.ports import Networks
from ropewalk.runtime.proxy_header import parse_header


class ProxiedListening:
    """What the connections of one listener have in common: whose headers are believed, and which of them are awaited."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._awaited: dict[_Proxied, None] = {}
        self._complaints = Complaints()

    def wrap(self, factory: Callable[[], asyncio.BaseProtocol]) -> "Callable[[], _Proxied]":
        return lambda: _Proxied(factory, self)

    def believes(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False  # a name, as hosts have them in the simulator
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)

    def begin(self, connection: "_Proxied") -> None:
        self._awaited[connection] = None
        if len(self._awaited) > PROXY_HEADERS_MAX:
            next(iter(self._awaited)).refuse(f"more than {PROXY_HEADERS_MAX} headers were awaited")

    def end(self, connection: "_Proxied") -> None:
        self._awaited.pop(connection, None)

    def complain(self, host: str, reason: str) -> None:
        if self._complaints.is_due(f"{host} {reason}", asyncio.get_running_loop().time() * 1000):
            import structlog  # as in tls.py

            structlog.get_logger().warning("no client of a proxy", proxy=host, reason=reason)


class _Proxied(asyncio.Protocol):
    """Reads a header, then gives its place to the protocol that was wanted."""

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol], listening: ProxiedListening) -> None:
        self._factory = factory
        self._listening = listening
        self._transport: asyncio.Transport | None = None
        self._host = ""
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._host = str(peer[0]) if peer else "unknown"
        if not self._listening.believes(self._host):
            self._give_place(None)
            return
        self._timer = asyncio.get_running_loop().call_later(PROXY_HEADER_MS_MAX / 1000, self._on_late)
        self._listening.begin(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            header = parse_header(bytes(self._received))
        except ProtocolError as error:
            self.refuse(str(error))
            return
        if header is not None:
            del self._received[: header.size_bytes]
            self._give_place(header.client)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._end()

    def refuse(self, reason: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._listening.complain(self._host, reason)
            self._end()
            self._transport.abort()

    def _give_place(self, client: tuple[str, int] | None) -> None:
        self._end()
        transport = self._transport
        assert transport is not None, "a header comes on an open connection"
        inner = self._factory()
        face = transport if client is None else ProxiedTransport(transport, client)
        transport.set_protocol(inner)
        inner.connection_made(face)
        if self._received and not transport.is_closing():
            deliver(inner, bytes(self._received))

    def _on_late(self) -> None:
        self._timer = None
        self.refuse(f"no PROXY header within {PROXY_HEADER_MS_MAX} ms")

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._listening.end(self)


class ProxiedTransport(asyncio.Transport):
    """The proxy's connection, as if the client had made it."""

    def __init__(self, transport: asyncio.Transport, client: tuple[str, int]) -> None:
        super().__init__()
        self._transport: Final = transport
        self._client = client

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._client if name == "peername" else self._transport.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._transport.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._transport.writelines(list_of_data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def write_eof(self) -> None:
        self._transport.write_eof()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()


def deliver(inner: asyncio.BaseProtocol, data: bytes) -> None:
    """What came before `inner` had its place."""
    if not isinstance(inner, asyncio.BufferedProtocol):
        cast(asyncio.Protocol, inner).data_received(data)
        return
    while data:
        buffer = inner.get_buffer(len(data))
        with memoryview(buffer) as view:
            size = min(len(view), len(data))
            view[:size] = data[:size]
        inner.buffer_updated(size)
        data = data[size:]
