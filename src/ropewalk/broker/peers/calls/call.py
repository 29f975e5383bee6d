"""A question to another node, ready to be sent over a link: made by the files beside this one, sent by whoever has found the link."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.broker.peers.peers import Lane, PeerLink, PeerLinks
from ropewalk.wire.api import Api
from ropewalk.wire.types import Message

T = TypeVar("T")
Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class Call(Struct, Generic[T], frozen=True):
    lane: Lane
    send: Callable[[PeerLink, float], Awaitable[T]]
    """Over that link, with an answer until that deadline. Raises what a link does where none comes."""

    def at(self, links: PeerLinks, node_id: NodeId, *, deadline_ms: float) -> Awaitable[T]:
        return self.send(links.to_node(node_id, self.lane), deadline_ms)


def call(
    api: Api[Q, R],
    request: Q,
    understand: Callable[[R], T],
    *,
    lane: Lane = Lane.CALLS,
    version_max: int | None = None,
) -> Call[T]:
    async def send(link: PeerLink, deadline_ms: float) -> T:
        return understand(await link.call(api, request, deadline_ms=deadline_ms, version_max=version_max))

    return Call(lane, send)
