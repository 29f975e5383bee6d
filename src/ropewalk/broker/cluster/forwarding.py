"""Requests of clients that only the controller can carry out, taken there from wherever they arrive.

What a reader could get wrong
    The outcome is here when this node has followed the change, so a client that goes on with the same node sees what it has done.
    Where that takes too long the outcome is given all the same: the change has been made.
    `ControllerUnavailable` means that nothing was changed; `TimedOut` that nobody knows.
"""

import asyncio
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ropewalk.base.errors import ControllerUnavailable, NotController, ProtocolError, TimedOut
from ropewalk.base.limits import FORWARD_MS_MAX
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import ConnectionLost, RemoteError
from ropewalk.runtime.errands import Errands
from ropewalk.wire.api import Api
from ropewalk.wire.peer import forward
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class Sender(Struct, frozen=True):
    """In whose name a request is carried out."""

    principal: str
    client_id: str | None
    host: str
    throttled: str | None = None
    """Why it may not change anything at present."""


ITSELF: Final = Sender("User:ropewalk", None, "")
"""What a node asks for on its own account: the topics in which it keeps state."""


class Outcome(Struct, Generic[R], frozen=True):
    response: R
    mutation_count: int


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

    async def forward(self, api: Api[Q, R], version: int, request: Q, sender: Sender) -> Outcome[R]:
        """May be called where there is no task, as by a handler."""
        return await self._errands.begin(self._carry_out(api, version, request, sender))

    async def _carry_out(self, api: Api[Q, R], version: int, request: Q, sender: Sender) -> Outcome[R]:
        deadline_ms = self._clock.monotonic_ms() + FORWARD_MS_MAX
        wrapped = forward.ForwardRequest(
            api_key=api.key,
            api_version=version,
            principal=sender.principal,
            client_id=sender.client_id,
            host=sender.host,
            throttled=sender.throttled,
            body=b"".join(api.encode_request(version, request)),
        )
        self.forwarded_count += 1
        try:
            answer = await self._link.call(forward.API, wrapped, deadline_ms=deadline_ms, lane=Lane.FORWARDS)
            body = memoryview(answer.body)
            response = api.decode_response(version, body, 0, len(body))
        except (ConnectionLost, TimedOut, ProtocolError) as error:
            raise TimedOut(f"whether the controller did it is not known: {error}") from None
        except (RemoteError, NotController) as error:
            raise ControllerUnavailable(f"the controller did not take it: {error}") from None
        await self._follow(answer.metadata_offset, deadline_ms)
        return Outcome(response, answer.mutation_count)

    async def _follow(self, metadata_offset: int, deadline_ms: float) -> None:
        try:
            async with asyncio.timeout((deadline_ms - self._clock.monotonic_ms()) / 1000):
                await self._cluster.facts.reached(metadata_offset)
        except TimeoutError:
            return  # the change is made, and this node hears of it later
