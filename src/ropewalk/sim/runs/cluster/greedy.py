"""A client that asks without end: thousands of requests at once, whatever becomes of the answers."""

import asyncio
from contextlib import suppress
from typing import Final

from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.machines.world import World
from ropewalk.sim.runs.cluster.guide import KAFKA_PORT
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import encode_request_header
from ropewalk.wire.messages import api_versions

REQUESTS: Final = 1500
"""At once: no more than a node reads at once, and far more than it may handle in one turn."""

_PAUSE_S: Final = 1.5
_VERSION: Final = 3


class _Deaf(asyncio.Protocol):
    """Takes what comes."""


class Greedy:
    def __init__(self, world: World, workload: Workload, node_count: int) -> None:
        world.machine("greedy")
        self._world = world
        self._workload = workload
        self._node_count = node_count
        self._rng = world.rng_for("greedy")

    async def run(self) -> None:
        header = encode_request_header(api_versions.API, _VERSION, 1, None)
        body = api_versions.API.encode_request(_VERSION, api_versions.ApiVersionsRequest())
        requests = b"".join(frame([header, *body])) * REQUESTS
        while not self._workload.is_over:
            with suppress(OSError):  # nobody may be there at present
                await self._ask(f"node{self._rng.randrange(self._node_count)}", requests)
            await asyncio.sleep(_PAUSE_S)

    async def _ask(self, host: str, requests: bytes) -> None:
        transport, _ = await self._world.network.host("greedy").connect(_Deaf, host, KAFKA_PORT)
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(requests)
        self._workload.sometimes.note("a client asked without end")
        await asyncio.sleep(_PAUSE_S)
        transport.close()
