"""One end of a simulated TCP connection.

Bytes wait in the sender's buffer until the window has room, travel for a while, wait at the receiver until
its protocol reads, and are read in pieces of seeded size. Order is kept, whatever the latencies drawn.

What a reader could get wrong
    Three places hold bytes: the transport's own buffer, which dies with its process; the wire, which does
    not; and the receiver's kernel, which dies with the receiver.
    A packet that finds its way barred is sent again later, as TCP does, so a cut delays and loses nothing.
    A packet that finds nobody at the other end is answered with a reset. Until something is sent, the
    sender of a half-open connection notices nothing.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from contextvars import Context
from typing import TYPE_CHECKING, Final

from typing_extensions import Buffer

from ropewalk.sim.machines.process import Process

if TYPE_CHECKING:
    from ropewalk.sim.machines.network import Fabric

WINDOW_BYTES: Final = 256 * 1024
"""Bytes on the wire and unread at the receiver, per direction."""

READ_BYTES_MAX: Final = 256 * 1024
"""The most that one `data_received` carries; asyncio's own figure."""

HIGH_WATER_BYTES: Final = 64 * 1024
RETRANSMIT_S_MIN: Final = 0.2
RETRANSMIT_S_MAX: Final = 3.0

_FIN: Final = None
_RST: Final = b""
"""On the wire: the sender has nothing more to say."""


class SimulatedTransport(asyncio.Transport):
    def __init__(
        self,
        fabric: "Fabric",
        *,
        local: tuple[str, int],
        remote: tuple[str, int],
        process: Process | None,
        context: Context,
    ) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self.local = local
        self.remote = remote
        self.process = process
        self.peer: SimulatedTransport
        self.protocol: asyncio.BaseProtocol
        self.is_gone = False
        """No longer known to its kernel: a packet that arrives is answered with a reset."""
        self.is_black_hole = False
        """Whatever is sent from here never arrives, as when a middlebox forgot the connection."""
        self._fabric = fabric
        self._loop = fabric.loop
        self._context = context
        self._outgoing: deque[bytes] = deque()
        self._outgoing_bytes = 0
        self._unread_by_peer_bytes = 0
        self._wire: deque[tuple[float, bytes | None]] = deque()
        self._wire_timer: asyncio.TimerHandle | None = None
        self._retransmit_s = RETRANSMIT_S_MIN
        self._incoming = bytearray()
        self._is_read_scheduled = False
        self._is_reading = True
        self._has_peer_finished = False
        self._has_peer_aborted = False
        self._is_eof_told = False
        self._is_eof_wanted = False
        self._is_fin_sent = False
        self._is_closing = False
        self._is_writing_paused = False
        self._high_bytes = HIGH_WATER_BYTES
        self._low_bytes = HIGH_WATER_BYTES // 4

    def __repr__(self) -> str:
        return f"<{self.local[0]}:{self.local[1]} to {self.remote[0]}:{self.remote[1]}>"

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol
        self._schedule_read()

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def is_closing(self) -> bool:
        return self._is_closing

    # Writing.

    def write(self, data: Buffer) -> None:
        if self._is_eof_wanted:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing or not self._is_owner_alive():
            return
        copied = bytes(data)  # the caller may reuse its buffer at once
        if not copied:
            return
        watch = self._fabric.watches.get(self.local[0])
        if watch is not None:
            watch()
        self._outgoing.append(copied)
        self._outgoing_bytes += len(copied)
        self._send()
        if self._outgoing_bytes > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_closing and not self._is_eof_wanted:
            self._is_eof_wanted = True
            self._send()

    def get_write_buffer_size(self) -> int:
        return self._outgoing_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high_bytes, self._low_bytes = high, low

    def _send(self) -> None:
        """Put on the wire what the window allows, then the end of the stream if that was asked for."""
        while self._outgoing and self._unread_by_peer_bytes < WINDOW_BYTES:
            room = WINDOW_BYTES - self._unread_by_peer_bytes
            chunk = self._outgoing.popleft()
            if len(chunk) > room:
                self._outgoing.appendleft(chunk[room:])
                chunk = chunk[:room]
            self._outgoing_bytes -= len(chunk)
            self._unread_by_peer_bytes += len(chunk)
            self._put_on_wire(chunk)
        if self._outgoing or not (self._is_eof_wanted or self._is_closing):
            return
        if not self._is_fin_sent:
            self._is_fin_sent = True
            self._put_on_wire(_FIN)
        if self._is_closing:
            self._lose(None)

    def _put_on_wire(self, packet: bytes | None) -> None:
        earliest = self._wire[-1][0] if self._wire else 0.0
        arrives_at = max(self._loop.time() + self._fabric.draw_latency_s(), earliest)
        self._wire.append((arrives_at, packet))
        if self._wire_timer is None:
            self._set_wire_timer(arrives_at)

    def _set_wire_timer(self, when: float) -> None:
        self._wire_timer = self._loop.call_at(when, self._arrive, context=self._fabric.context)

    def arrive_soon(self) -> None:
        """What waits to be sent again is on its way."""
        if self._wire_timer is not None:
            self._wire_timer.cancel()
            self._set_wire_timer(self._loop.time() + self._fabric.draw_latency_s())

    def _arrive(self) -> None:
        self._wire_timer = None
        now = self._loop.time()
        if self.is_black_hole or self._fabric.is_barred(self.local[0], self.remote[0]):
            self._set_wire_timer(now + self._retransmit_s)
            self._retransmit_s = min(2 * self._retransmit_s, RETRANSMIT_S_MAX)
            return
        self._retransmit_s = RETRANSMIT_S_MIN
        while self._wire and self._wire[0][0] <= now:
            packet = self._wire.popleft()[1]
            if self.peer.is_gone:
                if packet is not _FIN:
                    self._wire.clear()
                    self._fabric.later(self.reset)
                    return
            else:
                self.peer._receive(packet)
        if self._wire:
            self._set_wire_timer(max(now, self._wire[0][0]))

    def _on_read_by_peer(self, size: int) -> None:
        """The window opens; the news needs the way back."""
        self._unread_by_peer_bytes -= size
        if self._outgoing:
            self._fabric.later(self._on_window_news)

    def _on_window_news(self) -> None:
        if self.is_gone:
            return
        if self._fabric.is_barred(self.remote[0], self.local[0]):
            self._loop.call_later(RETRANSMIT_S_MAX, self._on_window_news, context=self._fabric.context)
            return
        self._send()
        if self._is_writing_paused and self._outgoing_bytes <= self._low_bytes and not self._is_closing:
            self._is_writing_paused = False
            self._call(self.protocol.resume_writing)

    # Reading.

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_closing:
            self._is_reading = True
            self._schedule_read()

    def _receive(self, packet: bytes | None) -> None:
        if packet is _FIN:
            self._has_peer_finished = True
        elif packet:
            self._incoming += packet
        else:
            self._has_peer_aborted = True
            if not self._incoming or not self.is_reading():
                self.reset()
        self._schedule_read()

    def _schedule_read(self) -> None:
        has_news = bool(self._incoming) or (self._has_peer_finished and not self._is_eof_told)
        if has_news and self.is_reading() and not self._is_read_scheduled:
            self._is_read_scheduled = True
            self._call(self._read)

    def _read(self) -> None:
        self._is_read_scheduled = False
        if not self.is_reading():
            return
        if self._incoming:
            size = self._feed_protocol()
            self.peer._on_read_by_peer(size)
            if self._has_peer_aborted and not self._incoming:
                self.reset()
            self._schedule_read()
        elif self._has_peer_finished and not self._is_eof_told:
            self._is_eof_told = True
            assert isinstance(self.protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not self.protocol.eof_received():
                self.close()

    def _feed_protocol(self) -> int:
        size = self._fabric.draw_read_bytes(min(len(self._incoming), READ_BYTES_MAX))
        protocol = self.protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            with memoryview(protocol.get_buffer(-1)) as target:
                if not len(target):
                    raise RuntimeError("get_buffer() returned an empty buffer")
                size = min(size, len(target))
                target[:size] = self._incoming[:size]
            del self._incoming[:size]
            self._fabric.trace.note("read", self.local[0], self.remote[0], size)
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            data = bytes(self._incoming[:size])
            del self._incoming[:size]
            self._fabric.trace.note("read", self.local[0], self.remote[0], size)
            protocol.data_received(data)
        return size

    # Ending.

    def close(self) -> None:
        """What was written is still sent; nothing more is read."""
        if not self._is_closing:
            self._is_closing = True
            self._send()

    def abort(self) -> None:
        """Drop everything and reset the peer. What is on the wire is out of reach: it may arrive before the reset does."""
        if self.is_gone:
            return
        self._is_closing = True
        if self._fabric.draw_is_late():
            self._outgoing.clear()
            self._outgoing_bytes = 0
            self._incoming.clear()
            self._put_on_wire(_RST)
            self._lose(None)
            return
        self._drop_buffers()
        self._fabric.later(self._reset_peer)
        self._lose(None)

    def reset(self) -> None:
        """The other side, or somebody between, says that there is no such connection."""
        if self.is_gone:
            return
        self._is_closing = True
        self._drop_buffers()
        self._lose(ConnectionResetError(104, "Connection reset by peer"))

    def on_process_killed(self) -> None:
        """The kernel closes what the process had open: what it had not handed over is lost, unread bytes reset."""
        if self.is_gone:
            return
        self.is_gone = self._is_closing = True
        self._outgoing.clear()
        self._outgoing_bytes = 0
        if self._incoming:
            self._fabric.later(self._reset_peer)
        elif not self._is_fin_sent:
            self._is_fin_sent = True
            self._put_on_wire(_FIN)

    def on_power_cut(self) -> None:
        """Nobody is told. What is on the wire may or may not be."""
        self.is_gone = self._is_closing = True
        self._outgoing.clear()
        self._outgoing_bytes = 0
        if self._fabric.rng.random() < 0.5:
            self._wire.clear()

    def _reset_peer(self) -> None:
        """A reset is sent once: where the way is cut the other side goes on to believe in the connection."""
        if not self._fabric.is_barred(self.local[0], self.remote[0]):
            self.peer.reset()

    def _drop_buffers(self) -> None:
        self._outgoing.clear()
        self._outgoing_bytes = 0
        self._wire.clear()
        self._incoming.clear()

    def _lose(self, cause: Exception | None) -> None:
        self.is_gone = True
        self._fabric.forget(self)
        self._call(self.protocol.connection_lost, cause)

    def _call(self, method: "object", *arguments: object) -> None:
        """Into the process that owns this end; the loop drops the call if that process is dead."""
        assert callable(method)
        self._loop.call_soon(method, *arguments, context=self._context)

    def _is_owner_alive(self) -> bool:
        return self.process is None or self.process.alive
