"""The addresses at which a node begins to look for its cluster.

A seed is HOST:PORT. A name may stand for several nodes: all its addresses are asked. Names are looked up again from time to time,
since nodes come and go under them; where that fails, what was found before goes on to count.
"""

import asyncio
from collections.abc import Sequence

import structlog

from ropewalk.base.limits import SEEDS_LOOKED_UP_MS
from ropewalk.base.ports import Network
from ropewalk.client.connections.address import Address

_log = structlog.get_logger()


class Seeds:
    def __init__(self, network: Network, configured: Sequence[tuple[str, int]]) -> None:
        self._network = network
        self._found: dict[tuple[str, int], tuple[Address, ...]] = {
            (host, port): (Address(host, port),) for host, port in configured
        }
        """By seed. Before it was looked up, the name itself: connecting finds one of its addresses."""

    def addresses(self) -> list[Address]:
        """Each once, in the order of the seeds."""
        return list(dict.fromkeys(address for found in self._found.values() for address in found))

    async def look_up(self) -> None:
        for host, port in self._found:
            try:
                hosts = await self._network.resolve(host)
            except OSError as error:
                _log.debug("a seed's name cannot be looked up", seed=f"{host}:{port}", reason=str(error))
                continue
            if hosts:
                self._found[host, port] = tuple(Address(each, port) for each in hosts)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SEEDS_LOOKED_UP_MS / 1000)
            await self.look_up()
