"""Fake brokers and a client in a simulated world: virtual time, an in-memory network, no sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from ropewalk.base.ports import TlsContexts
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.sim.machines.world import SimulatedClock, World
from tests.client.fake_broker import FakeBroker, FakeCluster
from tests.client.fake_login import FakeLogin

T = TypeVar("T")

PORT: Final = 9092


class Stage:
    """A world with brokers on hosts `b0`, `b1`, … and a place to run clients."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster = FakeCluster()
        self.clock = SimulatedClock(world.loop)
        self.brokers: list[FakeBroker] = []

    @property
    def now_ms(self) -> float:
        return self.clock.monotonic_ms()

    async def add_broker(
        self,
        *,
        version_max: dict[int, int] | None = None,
        login: FakeLogin | None = None,
        tls: TlsContexts | None = None,
    ) -> FakeBroker:
        if login is not None:
            login.now_ms = self.clock.monotonic_ms
        broker = FakeBroker(self.cluster, len(self.brokers), version_max=version_max, login=login, tls=tls)
        await self.start(broker)
        self.brokers.append(broker)
        return broker

    async def start(self, broker: FakeBroker) -> None:
        host = f"b{broker.node_id}"
        await broker.start(self.world.network.host(host), host, PORT)

    @asynccontextmanager
    async def client(self, *hosts: str, settings: ClientSettings | None = None) -> AsyncIterator[Client]:
        bootstrap = tuple(Address(host, PORT) for host in hosts or ("b0",))
        network = self.world.network.host("client")
        rng = self.world.rng_for("client")
        async with Client(network, self.clock, rng, bootstrap, settings) as client:
            yield client


def on_stage(story: Callable[[Stage], Awaitable[T]], *, seed: int = 1) -> T:
    """Run a story in a world of its own."""
    with World(seed) as world:

        async def play() -> T:
            return await story(Stage(world))

        return world.run(play(), limit_s=600)
