"""Connections of our own codec to any broker, for loads whose client must cost little and be the same for both."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import uvloop

from bench.brokers import Broker
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import find_coordinator, heartbeat
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
T = TypeVar("T")

_TIMEOUT_MS: Final = 60_000
_COORDINATOR_TRIES_MAX: Final = 600
_clock: Final = SystemClock()


def run(load: Coroutine[Any, Any, T]) -> T:
    return uvloop.run(load)


class Wire:
    """One connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def call(self, api: Api[Q, R], request: Q, *, version_max: int | None = None) -> R:
        deadline_ms = _clock.monotonic_ms() + _TIMEOUT_MS
        return await self._connection.call(api, request, deadline_ms=deadline_ms, version_max=version_max)

    def version(self, api: Api[Q, R], *, version_max: int | None = None) -> int:
        return self._connection.versions.choose(api, version_max=version_max)


async def connect(broker: Broker, connections: AsyncExitStack) -> Wire:
    """Closed with `connections`."""
    deadline_ms = _clock.monotonic_ms() + _TIMEOUT_MS
    address = Address(broker.host, broker.port)
    connection = await Connection.open(
        TcpNetwork(), _clock, address, client_id="bench", deadline_ms=deadline_ms
    )
    connections.callback(connection.close)
    return Wire(connection)


async def await_coordinator(wire: Wire, group: str) -> None:
    """Returns when the group's coordinator serves it: a broker makes the topic for it on first use."""
    find = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
    for _ in range(_COORDINATOR_TRIES_MAX):
        found = await wire.call(find_coordinator.API, find)
        if found.coordinators[0].error_code == ErrorCode.NONE:
            heartbeat_of_nobody = heartbeat.HeartbeatRequest(group, generation_id=0, member_id="nobody")
            answer = await wire.call(heartbeat.API, heartbeat_of_nobody)
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                return
        await asyncio.sleep(0.05)
    raise TimeoutError(f"no coordinator for {group}")
