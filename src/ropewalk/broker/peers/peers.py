"""Links from this node to the internal listeners of others.

What a reader could get wrong
    A link is a promise to connect, not a connection: one is made when somebody calls, and again after it was lost. While a node cannot
    be reached the link fails at once until the next attempt is due, so nobody waits behind a node that is gone.
    The answers of one connection come in order, so what may take long has a lane of its own: a heartbeat must not wait for a long poll.
    `ConnectionLost` and `TimedOut` leave open what the other node did. Only the caller knows whether it may ask again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import TypeVar

import structlog

from ropewalk.base.complaints import Complaints
from ropewalk.base.ids import NodeId
from ropewalk.base.levels import OURS, peer_version_max
from ropewalk.base.limits import (
    PEER_CONNECT_MS_MAX,
    PEER_FORMER_MS_MAX,
    PEER_RECONNECT_MS_MAX,
    PEER_RECONNECT_MS_MIN,
    PEER_RENEWED_MS,
)
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.peer_connection import Credentials, PeerConnection, PeerRefused, open_peer
from ropewalk.client.connections.single_flight import SingleFlight
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import PEER_LISTENER
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.security.peer_channels import IN_THE_CLEAR, PeerChannels
from ropewalk.wire.api import Api
from ropewalk.wire.types import Message

_log = structlog.get_logger()

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class Lane(Enum):
    HEARTBEATS = "heartbeats"
    CALLS = "calls"
    METADATA = "metadata"
    REPLICAS = "replicas"
    FORWARDS = "forwards"
    MARKERS = "markers"
    TRANSACTIONS = "transactions"
    QUEUES = "queues"
    QUEUE_DELIVERIES = "queue deliveries"


class PeerLink:
    """To one node, in one lane. Made by `PeerLinks`."""

    def __init__(self, links: "PeerLinks", locate: Callable[[], Address], node_id: NodeId | None) -> None:
        self._links = links
        self._locate = locate
        self._node_id = node_id
        self._peer: PeerConnection | None = None
        self._connecting: SingleFlight[None, PeerConnection] = SingleFlight()
        self._failure: Unreachable | None = None
        self._delay_ms = PEER_RECONNECT_MS_MIN
        self._retry_at_ms = 0.0
        self._is_closed = False

    @property
    def is_connected(self) -> bool:
        return self._peer is not None and self._peer.connection.is_open

    @property
    def connection(self) -> Connection | None:
        """The open one, if there is any."""
        return self._peer.connection if self._peer is not None and self._peer.connection.is_open else None

    @property
    def retry_at_ms(self) -> float:
        """When, on the monotonic clock, the next attempt to connect may be made; in the past if at once."""
        return self._retry_at_ms

    async def call(
        self, api: Api[Q, R], request: Q, *, deadline_ms: float, version_max: int | None = None
    ) -> R:
        """Connect if need be, send, and wait for the answer. `Unreachable` means that nothing was sent.

        In no newer version than the level in force has brought.
        """
        peer = await self.peer(deadline_ms=deadline_ms)
        allowed = self._links.version_max(api.name)
        newest = allowed if version_max is None else min(version_max, allowed)
        return await peer.connection.call(api, request, deadline_ms=deadline_ms, version_max=newest)

    async def peer(self, *, deadline_ms: float) -> PeerConnection:
        """The open connection and who is at its other end."""
        if self._peer is not None and self._peer.connection.is_open:
            return self._peer
        now_ms = self._links.clock.monotonic_ms()
        if self._failure is not None and now_ms < self._retry_at_ms:
            raise Unreachable(self._failure.address, self._failure.reason)
        # The attempt has a limit of its own: who shares it may have more time than who began it.
        try:
            async with asyncio.timeout((deadline_ms - now_ms) / 1000):
                return await self._connecting.run(None, lambda: self._connect(now_ms + PEER_CONNECT_MS_MAX))
        except TimeoutError:
            raise Unreachable(self.name, f"no connection within {deadline_ms - now_ms:.0f} ms") from None

    async def wait_lost(self) -> None:
        """Return when there is no connection, at once if there is none now. One that was renewed is not lost."""
        peer = self._peer
        while peer is not None:
            await peer.connection.wait_end()
            if self._peer is peer:
                return
            peer = self._peer

    @property
    def is_outdated(self) -> bool:
        """Whether the open connection was made with what is on its way out: a former secret, or no TLS where it is asked for."""
        peer = self._peer
        return peer is not None and peer.connection.is_open and not self._links.is_up_to_date(peer)

    def end_with_certificate(self) -> None:
        """Close the connection if the certificate of the other end has ended since."""
        peer = self._peer
        if peer is not None and peer.ends_at_ms is not None and self._links.clock.now_ms() >= peer.ends_at_ms:
            peer.connection.close()

    async def renew(self, *, deadline_ms: float) -> PeerConnection | None:
        """Go over to a new connection, and answer the one before, which may still be owed answers; None where nothing was changed."""
        former = self._peer
        try:
            peer = await self._open(deadline_ms)
        except (Unreachable, TimeoutError):
            return None  # it goes on with what it has, and is tried again
        if (
            self._is_closed
            or former is None
            or self._peer is not former
            or not self._links.is_up_to_date(peer)
        ):
            peer.connection.close()
            return None
        self._peer = peer
        return former

    def close(self) -> None:
        """Whoever waits for an answer loses the connection; no other is made."""
        self._is_closed = True
        if self._peer is not None:
            self._peer.connection.close()

    @property
    def name(self) -> str:
        return str(self._locate()) if self._node_id is None else f"node {self._node_id}"

    async def _connect(self, deadline_ms: float) -> PeerConnection:
        try:
            peer = await self._open(deadline_ms)
        except Unreachable as error:
            self._on_failed(error)
            raise
        self._failure, self._delay_ms = None, PEER_RECONNECT_MS_MIN
        self._peer = peer
        if self._is_closed:
            peer.connection.close()
        return peer

    async def _open(self, deadline_ms: float) -> PeerConnection:
        if self._is_closed:
            raise Unreachable(self.name, "this node is stopping")
        address = self._locate()
        peer = await self._links.open(address, deadline_ms=deadline_ms)
        if self._node_id is not None and peer.node_id != self._node_id:
            peer.connection.close()
            raise PeerRefused(address, f"it is node {peer.node_id}, not {self._node_id}")
        return peer

    def _on_failed(self, error: Unreachable) -> None:
        now_ms = self._links.clock.monotonic_ms()
        self._failure = error
        self._retry_at_ms = now_ms + self._delay_ms * self._links.rng.uniform(0.8, 1.2)
        self._delay_ms = min(2 * self._delay_ms, PEER_RECONNECT_MS_MAX)
        if isinstance(error, PeerRefused) and self._links.complaints.is_due(str(error), now_ms):
            _log.warning("no connection to another node", peer=error.address, reason=error.reason)


class PeerLinks:
    """All links of this node: to others by id, where the image says they are, or by address, before anything is known."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        rng: Rng,
        *,
        node_id: NodeId,
        image: Image,
        secret: ClusterSecret,
        cluster_id: Callable[[], str | None],
        roles: tuple[str, ...] = (),
        channels: PeerChannels = IN_THE_CLEAR,
    ) -> None:
        """`cluster_id` says which cluster this node belongs to, None if to none yet; `roles` is what it says to be."""
        self.clock = clock
        self.rng = rng
        self.node_id = node_id
        self.complaints = Complaints()
        self._network = network
        self._image = image
        self._secret = secret
        self._cluster_id = cluster_id
        self._roles = roles
        self._channels = channels
        self._by_node: dict[tuple[NodeId, Lane], PeerLink] = {}
        self._by_address: dict[tuple[Address, Lane], PeerLink] = {}

    def to_node(self, node_id: NodeId, lane: Lane) -> PeerLink:
        """Always the same link, whether or not the node is known. Where it is gets looked up at each attempt to connect."""
        link = self._by_node.get((node_id, lane))
        if link is None:
            link = self._by_node[node_id, lane] = PeerLink(self, lambda: self.locate(node_id), node_id)
        return link

    def dedicated(self, node_id: NodeId) -> PeerLink:
        """A link of the caller's own, which the caller closes."""
        return PeerLink(self, lambda: self.locate(node_id), node_id)

    def to_address(self, address: Address, lane: Lane) -> PeerLink:
        link = self._by_address.get((address, lane))
        if link is None:
            link = self._by_address[address, lane] = PeerLink(self, lambda: address, None)
        return link

    def version_max(self, api_name: str) -> int:
        """The newest version that may be used; before anything is known of the cluster, that of the oldest level."""
        return peer_version_max(api_name, self._image.level or OURS.level_min)

    def locate(self, node_id: NodeId) -> Address:
        broker = self._image.brokers.get(node_id)
        endpoint = broker.endpoint(PEER_LISTENER) if broker is not None else None
        if endpoint is None:
            raise Unreachable(f"node {node_id}", "its address is not known")
        return Address(endpoint.host, endpoint.port)

    async def open(self, address: Address, *, deadline_ms: float) -> PeerConnection:
        credentials = Credentials(self.node_id, self._cluster_id(), self._secret, self._roles, self._channels)
        peer = await open_peer(
            self._network, self.clock, self.rng, address, credentials=credentials, deadline_ms=deadline_ms
        )
        ours = credentials.cluster_id
        if ours is not None and peer.cluster_id is not None and peer.cluster_id != ours:
            peer.connection.close()
            raise PeerRefused(address, f"it belongs to cluster {peer.cluster_id}, this node to {ours}")
        return peer

    def is_up_to_date(self, peer: PeerConnection) -> bool:
        is_plain = peer.connection.certificate is None
        return self._secret.is_current(peer.key) and not (is_plain and self._channels.needs_tls)

    async def run(self) -> None:
        """Bring connections up to date after the secret or the channels have changed, without anybody who waits for an answer losing it.

        Those behind one client's are left: they end with that.
        """
        while True:
            await asyncio.sleep(PEER_RENEWED_MS / 1000)
            for link in self._links():
                link.end_with_certificate()
            outdated = [link for link in self._links() if link.is_outdated]
            former = [
                await link.renew(deadline_ms=self.clock.monotonic_ms() + PEER_CONNECT_MS_MAX)
                for link in outdated
            ]
            renewed = [each.connection for each in former if each is not None]
            if not renewed:
                continue
            await asyncio.sleep(PEER_RENEWED_MS / 1000)  # until the other end has heard on the new ones
            for connection in renewed:
                with suppress(ConnectionLost, TimeoutError):
                    async with asyncio.timeout(PEER_FORMER_MS_MAX / 1000), connection.alone():
                        pass
                connection.close()

    def _links(self) -> list[PeerLink]:
        return [*self._by_node.values(), *self._by_address.values()]

    def close(self) -> None:
        for link in self._links():
            link.close()
