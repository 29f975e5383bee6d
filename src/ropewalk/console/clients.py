"""Clients of the cluster, one for each name in which somebody asks, opened with the first page and closed when nobody has asked for long."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from ropewalk.base.limits import CONSOLE_CLIENT_IDLE_MS, CONSOLE_CLIENTS_MAX, CONSOLE_FETCH_BYTES
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.console.reach import Reach
from ropewalk.console.watching import Watcher


class Opened:
    """A client, and what it has seen of the cluster."""

    def __init__(self, client: Client, watcher: Watcher, now_ms: float) -> None:
        self.client = client
        self.watcher = watcher
        self.used_at_ms = now_ms


class Clients:
    def __init__(self, network: Network, clock: Clock, rng: Rng, reach: Reach) -> None:
        self._network = network
        self._clock = clock
        self._rng = rng
        self._reach = reach
        self._opened: dict[str, Opened] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    def connecting(self, settings: ClientSettings) -> Client:
        """One that is not kept: entering it connects."""
        return Client(self._network, self._clock, self._rng, tuple(self._reach.addresses()), settings)

    async def of(self, key: str, settings: Callable[[], ClientSettings]) -> Opened:
        """That of who is known by `key`. Raises what keeps it from connecting."""
        lock = self._opening.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                opened = self._opened.get(key)
                if opened is None:
                    wanted = replace(settings(), fetch_partition_max_bytes=CONSOLE_FETCH_BYTES)
                    client = await self.connecting(wanted).__aenter__()
                    watcher = Watcher(client, self._clock)
                    opened = self._opened[key] = Opened(client, watcher, self._clock.monotonic_ms())
        finally:
            if not lock.locked():
                self._opening.pop(key, None)
        opened.used_at_ms = self._clock.monotonic_ms()
        while len(self._opened) > CONSOLE_CLIENTS_MAX:
            self.close(min(self._opened, key=lambda each: self._opened[each].used_at_ms))
        return opened

    def close(self, key: str) -> None:
        opened = self._opened.pop(key, None)
        if opened is not None:
            opened.watcher.stop()
            opened.client.close()

    def sweep(self, is_wanted: Callable[[str], bool]) -> None:
        """Close those whom nobody has used, and those of sessions that have ended."""
        now_ms = self._clock.monotonic_ms()
        for key, opened in list(self._opened.items()):
            is_idle = not opened.watcher.is_followed and now_ms - opened.used_at_ms > CONSOLE_CLIENT_IDLE_MS
            if is_idle or not is_wanted(key):
                self.close(key)

    def close_all(self) -> None:
        for key in list(self._opened):
            self.close(key)
