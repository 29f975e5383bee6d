"""The connections behind a client's: one for each node that its requests are passed on to.

Behaviour worth knowing
    Every client connection has connections of its own behind it, so its requests reach each node in the order in which they came, a request
    that waits delays nobody else, and when the client goes away the nodes hear of it.
    A request is written at once where there is a connection. Where there is none yet, whoever asks for one keeps the client's next request
    back until its own is written.
"""

import asyncio
from typing import TypeVar

from ropewalk.base.errors import NodeStopping, Throttled, TimedOut
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import PEER_CONNECT_MS_MAX, PROXY_ANSWER_MS_MAX
from ropewalk.base.ports import Clock
from ropewalk.broker.peers.calls.forward import pass_on
from ropewalk.broker.peers.peers import PeerLink, PeerLinks
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.kafka.caller import Caller
from ropewalk.runtime.errands import Errands
from ropewalk.wire.api import Api
from ropewalk.wire.peer.forward import ForwardResponse
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class Backends:
    """Of all clients."""

    def __init__(self, links: PeerLinks, errands: Errands, clock: Clock) -> None:
        self._links = links
        self._errands = errands
        self._clock = clock
        self._by_client: dict[object, dict[NodeId, PeerLink]] = {}

    def __len__(self) -> int:
        """Clients that have connections behind theirs."""
        return len(self._by_client)

    def ready(self, node_ids: list[NodeId], caller: Caller) -> dict[NodeId, Connection] | None:
        """Connections to all of the nodes that can be written to at once; None where one is missing."""
        links = self._links_of(caller)
        found: dict[NodeId, Connection] = {}
        for node_id in node_ids:
            link = links.get(node_id)
            connection = None if link is None else link.connection
            if connection is None or not connection.is_writable:
                return None
            found[node_id] = connection
        return found

    async def connect(self, node_ids: list[NodeId], caller: Caller) -> dict[NodeId, Connection]:
        """As `ready`, made where they are missing, without those that cannot be had."""
        links = self._links_of(caller)
        for node_id in node_ids:
            if node_id not in links:
                links[node_id] = self._links.dedicated(node_id)
        try:
            begun = [self._errands.begin(self._connect(links[node_id])) for node_id in node_ids]
            made = [await each for each in begun]
        except (NodeStopping, Throttled):
            return {}
        return {
            node_id: connection
            for node_id, connection in zip(node_ids, made, strict=True)
            if connection is not None and connection.is_open
        }

    def send(
        self, connection: Connection, api: Api[Q, R], request: Q, caller: Caller, *, wait_ms: int = 0
    ) -> "asyncio.Future[ForwardResponse]":
        """Written before this returns. `wait_ms` is how long the client itself allows the answer to take."""
        deadline_ms = self._clock.monotonic_ms() + max(0, wait_ms) + PROXY_ANSWER_MS_MAX
        sent = pass_on(connection, api, caller.version, request, caller.sender(), deadline_ms=deadline_ms)
        sent.add_done_callback(_forget)
        return sent

    def _links_of(self, caller: Caller) -> dict[NodeId, PeerLink]:
        client = caller.connection
        links = self._by_client.get(client)
        if links is None:
            links = self._by_client[client] = {}
            caller.watch_end(lambda: self._forget(client))
        return links

    def _forget(self, client: object) -> None:
        for link in self._by_client.pop(client).values():
            link.close()

    async def _connect(self, link: PeerLink) -> Connection | None:
        deadline_ms = self._clock.monotonic_ms() + PEER_CONNECT_MS_MAX
        try:
            peer = await link.peer(deadline_ms=deadline_ms)
            await peer.connection.wait_writable(deadline_ms=deadline_ms)
        except (Unreachable, ConnectionLost, TimedOut):
            return None
        return peer.connection


def _forget(sent: "asyncio.Future[ForwardResponse]") -> None:
    """An answer that nobody came for, since its client has gone, is not worth asyncio's complaint."""
    if not sent.cancelled():
        sent.exception()
