"""To one node or another: by a call in this process where it is this one, else over the link.

What a reader could get wrong
    Which node is the one to ask is looked up when it is asked; it may be another by the time the answer comes.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.whereabouts import leader
from ropewalk.broker.peers.calls.call import Call
from ropewalk.broker.peers.peers import PeerLinks
from ropewalk.metadata.image import Image

T = TypeVar("T")


class Dispatch:
    def __init__(self, node_id: NodeId, image: Image, clock: Clock, links: PeerLinks | None) -> None:
        """Without links on a node that is alone."""
        self.node_id = node_id
        self._clock = clock
        self._image = image
        self._links = links

    def leader(self, partition: TopicPartition) -> NodeId | None:
        """None where nobody leads it at present, or there is no such partition."""
        return leader(self._image.topics.get(partition.topic), partition.partition)

    async def to_node(
        self,
        node_id: NodeId,
        *,
        here: Callable[[], Awaitable[T]],
        there: Callable[[], Call[T]],
        timeout_ms: float,
    ) -> T:
        """Raises what the node refuses with, whichever it is, and what a link does where no answer comes."""
        if node_id == self.node_id:
            return await here()
        return await self.over_link(node_id, there(), timeout_ms=timeout_ms)

    def over_link(self, node_id: NodeId, call: Call[T], *, timeout_ms: float) -> Awaitable[T]:
        """To a node that is known to be another."""
        assert self._links is not None, "a node that is alone is the one to ask about everything"
        return call.at(self._links, node_id, deadline_ms=self._clock.monotonic_ms() + timeout_ms)
