"""Requests of clients that only the controller can carry out, taken there from wherever they arrive.

What a reader could get wrong
    The outcome is here when this node has followed the change, so a client that goes on with the same node sees what it has done.
    Where that takes too long the outcome is given all the same: the change has been made.
    `ControllerUnavailable` means that nothing was changed; `TimedOut` that nobody knows.
"""

import asyncio
from typing import TypeVar

from ropewalk.base.errors import ControllerUnavailable, NotController, ProtocolError, TimedOut
from ropewalk.base.limits import FORWARD_MS_MAX
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.peers.calls.controller_call import ControllerCall
from ropewalk.broker.peers.calls.forward import Forwarded
from ropewalk.client.errors import ConnectionLost, RemoteError
from ropewalk.runtime.errands import Errands

R = TypeVar("R")


class Forwarding:
    def __init__(self, cluster: Cluster, link: ControllerLink, errands: Errands, clock: Clock) -> None:
        self._cluster = cluster
        self._link = link
        self._errands = errands
        self._clock = clock
        self.forwarded_count = 0

    def is_needed(self) -> bool:
        """Whether another node decides."""
        return not self._cluster.decides

    async def forward(self, call: ControllerCall[Forwarded[R]]) -> Forwarded[R]:
        """May be called where there is no task, as by a handler."""
        return await self._errands.begin(self._carry_out(call))

    async def _carry_out(self, call: ControllerCall[Forwarded[R]]) -> Forwarded[R]:
        deadline_ms = self._clock.monotonic_ms() + FORWARD_MS_MAX
        self.forwarded_count += 1
        try:
            forwarded = await self._link.call(call, deadline_ms=deadline_ms)
        except (ConnectionLost, TimedOut, ProtocolError) as error:
            raise TimedOut(f"whether the controller did it is not known: {error}") from None
        except (RemoteError, NotController) as error:
            raise ControllerUnavailable(f"the controller did not take it: {error}") from None
        await self._follow(forwarded.metadata_offset, deadline_ms)
        return forwarded

    async def _follow(self, metadata_offset: int, deadline_ms: float) -> None:
        try:
            async with asyncio.timeout((deadline_ms - self._clock.monotonic_ms()) / 1000):
                await self._cluster.facts.reached(metadata_offset)
        except TimeoutError:
            return  # the change is made, and this node hears of it later
