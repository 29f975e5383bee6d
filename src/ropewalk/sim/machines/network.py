"""An in-memory network of named hosts: latency with a tail, short reads, resets, cuts, half-open connections.

`Fabric` is the whole network and is what a nemesis talks to. `HostNetwork` is one host's view of it and is
the `Network` port of a node. A process listens on its own host whatever address it binds; it is reached
under the host's name.
"""

import asyncio
import errno
import random
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk.base.ports import Networks, TlsContexts
from ropewalk.runtime.proxied import ProxiedListening
from ropewalk.runtime.tls import with_tls
from ropewalk.runtime.tls_or_plain import listen_by
from ropewalk.sim.machines.process import CURRENT, Process
from ropewalk.sim.machines.trace import Trace
from ropewalk.sim.machines.transport import SimulatedTransport

if TYPE_CHECKING:
    from ropewalk.sim.machines.loop import SimulatedLoop

OWN_HOST_NAMES: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost"})
EPHEMERAL_PORT_FIRST: Final = 32768
SYN_RETRIES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
CLIENT_HOST: Final = "client"
"""Where code runs that belongs to no simulated machine."""


class Weather(Struct, frozen=True):
    """How the network behaves while nobody attacks it."""

    latency_s_min: float = 0.0001
    latency_s_max: float = 0.001
    slow_probability: float = 0.01
    slow_factor: float = 30.0
    short_read_probability: float = 0.2
    late_probability: float = 0.0
    """That what was sent on a connection before it was aborted arrives all the same, however late, and the reset behind it."""


class Fabric:
    def __init__(self, loop: "SimulatedLoop", rng: random.Random, trace: Trace) -> None:
        self.loop = loop
        self.rng = rng
        self.trace = trace
        self.weather = Weather()
        self.names: dict[str, list[str]] = {}
        """Names that stand for several hosts. A host is known by its own name anyway."""
        self.watches: dict[str, Callable[[], None]] = {}
        """By host: told of everything that is sent from there."""
        self.context = Context()
        """Runs what the wires do by themselves; it belongs to no process."""
        self._listeners: dict[tuple[str, int], HostListener] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._down: dict[str, None] = {}
        self._ends: dict[SimulatedTransport, None] = {}
        self._port_next = EPHEMERAL_PORT_FIRST

    def host(self, name: str) -> "HostNetwork":
        return HostNetwork(self, name)

    def here(self) -> "HostNetwork":
        """The host of the code that asks."""
        process = CURRENT.get()
        return self.host(process.host if process is not None else CLIENT_HOST)

    # What a nemesis does.

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from `source` to `target`; the other direction is not touched."""
        self.trace.note("cut", source, target)
        self._cuts[source, target] = None

    def mend(self, source: str, target: str) -> None:
        self._cuts.pop((source, target), None)

    def partition(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def mend_all(self) -> None:
        self._cuts.clear()
        for end in self._ends:
            end.is_black_hole = False

    def connections(self) -> list[SimulatedTransport]:
        """One end of each connection, the oldest first."""
        return [end for end in self._ends if end.peer not in self._ends or end.local < end.peer.local]

    def reset(self, end: SimulatedTransport) -> None:
        """Both sides lose the connection, and whatever was under way in it."""
        self.trace.note("reset", end.local[0], end.remote[0])
        peer = end.peer
        end.reset()
        peer.reset()

    def blacken(self, end: SimulatedTransport) -> None:
        """Both sides believe in the connection; nothing passes until everything is mended."""
        self.trace.note("black hole", end.local[0], end.remote[0])
        end.is_black_hole = end.peer.is_black_hole = True

    def hold(self, end: SimulatedTransport) -> None:
        """What is sent from there waits on the wire, also when the connection has been given up; `let_through` ends it."""
        end.is_black_hole = True

    def let_through(self, end: SimulatedTransport) -> None:
        end.is_black_hole = False
        end.arrive_soon()

    # What the world does.

    def drop_process(self, process: Process, *, power_cut: bool) -> None:
        """Its listeners go; its connections are closed by the kernel, or forgotten if there is no kernel left."""
        self._listeners = {
            address: listener
            for address, listener in self._listeners.items()
            if listener.process is not process
        }
        for end in [end for end in self._ends if end.process is process]:
            if power_cut:
                end.on_power_cut()
            else:
                end.on_process_killed()
            self.forget(end)

    def set_down(self, host: str, *, down: bool) -> None:
        """A host without power answers nothing, not even with a reset."""
        if down:
            self._down[host] = None
        else:
            self._down.pop(host, None)

    # What the wires ask.

    def is_barred(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts or target in self._down

    def draw_latency_s(self) -> float:
        weather = self.weather
        latency_s = self.rng.uniform(weather.latency_s_min, weather.latency_s_max)
        return latency_s * weather.slow_factor if self.rng.random() < weather.slow_probability else latency_s

    def draw_read_bytes(self, available: int) -> int:
        """Mostly all there is; sometimes a piece, sometimes a single byte."""
        if available == 1 or self.rng.random() >= self.weather.short_read_probability:
            return available
        return 1 if self.rng.random() < 0.3 else self.rng.randrange(1, available)

    def draw_is_late(self) -> bool:
        probability = self.weather.late_probability
        return probability > 0 and self.rng.random() < probability

    def later(self, call: Callable[[], None]) -> None:
        self.loop.call_later(self.draw_latency_s(), call, context=self.context)

    def forget(self, end: SimulatedTransport) -> None:
        self._ends.pop(end, None)

    def listener_at(self, host: str, port: int) -> "HostListener | None":
        return self._listeners.get((host, port))

    def add_listener(self, listener: "HostListener") -> None:
        if listener.address in self._listeners:
            raise OSError(errno.EADDRINUSE, f"address {listener.address} is already in use")
        self._listeners[listener.address] = listener

    def remove_listener(self, listener: "HostListener") -> None:
        if self._listeners.get(listener.address) is listener:
            del self._listeners[listener.address]

    def draw_port(self) -> int:
        self._port_next += 1
        return self._port_next

    def join(self, client: SimulatedTransport, server: SimulatedTransport) -> None:
        client.peer, server.peer = server, client
        self._ends[client] = None
        self._ends[server] = None


class HostListener:
    """The `Listener` port."""

    def __init__(
        self, fabric: Fabric, factory: Callable[[], asyncio.BaseProtocol], address: tuple[str, int]
    ) -> None:
        self._fabric = fabric
        self._factory = factory
        self._address = address
        self._context = copy_context()
        self.process = CURRENT.get()

    @property
    def address(self) -> tuple[str, int]:
        return self._address

    def stop(self) -> None:
        self._fabric.remove_listener(self)

    def accept(self, remote: tuple[str, int]) -> SimulatedTransport:
        context = self._context.copy()
        transport = SimulatedTransport(
            self._fabric, local=self._address, remote=remote, process=self.process, context=context
        )
        transport.protocol = context.run(self._factory)
        self._fabric.loop.call_soon(transport.protocol.connection_made, transport, context=context)
        return transport


class HostNetwork:
    """The `Network` port as seen from one host."""

    def __init__(self, fabric: Fabric, name: str) -> None:
        self._fabric = fabric
        self._name = name

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
        takes_plain: Callable[[], bool] | None = None,
        proxies: Networks = (),
    ) -> HostListener:
        if host not in OWN_HOST_NAMES and host != self._name:
            raise OSError(errno.EADDRNOTAVAIL, f"{host} is not an address of {self._name}")
        made: Callable[[], asyncio.BaseProtocol] = factory
        if tls is not None:
            made = listen_by(tls, takes_plain).wrap(made)
        if proxies:
            made = ProxiedListening(proxies).wrap(made)
        listener = HostListener(self._fabric, made, (self._name, port or self._fabric.draw_port()))
        self._fabric.add_listener(listener)
        return listener

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        connect = partial(self._connect, host=host, port=port)
        return await (connect(factory) if tls is None else with_tls(connect, factory, tls(), host))

    async def _connect(
        self, factory: Callable[[], asyncio.BaseProtocol], *, host: str, port: int
    ) -> tuple[SimulatedTransport, asyncio.BaseProtocol]:
        target = self._name if host in OWN_HOST_NAMES else host
        listener = await self._knock(target, port)
        local = (self._name, self._fabric.draw_port())
        transport = SimulatedTransport(
            self._fabric, local=local, remote=(target, port), process=CURRENT.get(), context=copy_context()
        )
        self._fabric.join(transport, listener.accept(local))
        self._fabric.trace.note("connect", self._name, target, port)
        transport.protocol = factory()
        transport.protocol.connection_made(transport)
        return transport, transport.protocol

    async def resolve(self, host: str) -> list[str]:
        await asyncio.sleep(self._fabric.draw_latency_s())
        return self._fabric.names.get(host, [host])

    async def _knock(self, target: str, port: int) -> HostListener:
        fabric = self._fabric
        for wait_s in (*SYN_RETRIES_S, None):
            await asyncio.sleep(fabric.draw_latency_s())
            if not fabric.is_barred(self._name, target) and not fabric.is_barred(target, self._name):
                listener = fabric.listener_at(target, port)
                if listener is None:
                    raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {target}:{port}")
                return listener
            if wait_s is not None:
                await asyncio.sleep(wait_s)
        raise TimeoutError(errno.ETIMEDOUT, f"{target}:{port} does not answer")


class SimulatedServer(asyncio.AbstractServer):
    """What `loop.create_server` returns, so that code written on plain asyncio streams runs too."""

    def __init__(self, loop: "SimulatedLoop", listener: HostListener) -> None:
        self._loop = loop
        self._listener = listener
        self._is_serving = True

    @property
    def sockets(self) -> "tuple[SocketName, ...]":
        return (SocketName(self._listener.address),) if self._is_serving else ()

    def close(self) -> None:
        self._is_serving = False
        self._listener.stop()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._is_serving

    async def start_serving(self) -> None:
        pass

    async def serve_forever(self) -> None:
        await self._loop.create_future()

    async def wait_closed(self) -> None:
        pass


class SocketName(Struct, frozen=True):
    """As much of a socket as there is."""

    address: tuple[str, int]

    def getsockname(self) -> tuple[str, int]:
        return self.address
