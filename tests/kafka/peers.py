"""Internal listeners of several nodes on one simulated network, with services that remember what they were asked."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import NotController
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import PEER_BUFFER_BYTES_MAX
from ropewalk.broker.controller_link import ControllerLink
from ropewalk.broker.peers import PEER_LISTENER, PeerLinks
from ropewalk.client.address import Address
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.peer.apis import serve_peers
from ropewalk.kafka.peer.introduction import Door
from ropewalk.kafka.peer.listener import listen_to_peers, peer_connections
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerRegistered, ControllerChanged, Endpoint
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.sim.world import Machine, NodePorts, World
from ropewalk.wire.messages import fetch, list_offsets, offset_for_leader_epoch
from ropewalk.wire.peer.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ropewalk.wire.peer.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ropewalk.wire.peer.fetch_metadata import FetchMetadataResponse
from ropewalk.wire.peer.node_heartbeat import NodeHeartbeatRequest, NodeHeartbeatResponse
from ropewalk.wire.peer.register_node import RegisterNodeRequest, RegisterNodeResponse
from ropewalk.wire.types import Message

T = TypeVar("T")

PORT = 9192
SECRET = "a secret of this cluster"
CLUSTER_ID = "the-cluster"


class Services:
    """Every service that a controller offers to nodes; as little as a test can tell apart."""

    def __init__(self) -> None:
        self.image = Image()
        self.decides = False
        self.heard: list[str] = []
        self.disconnected: list[int] = []

    def _check(self) -> None:
        if not self.decides:
            raise NotController("this node does not decide")

    async def register(self, request: RegisterNodeRequest) -> RegisterNodeResponse:
        self._check()
        return RegisterNodeResponse(0, None, broker_epoch=request.node_id + 100, cluster_id=CLUSTER_ID)

    async def heartbeat(self, request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        self._check()
        self.heard.append(f"heartbeat of {request.node_id}")
        return NodeHeartbeatResponse(0, None, is_fenced=False)

    def on_disconnected(self, node_id: NodeId) -> None:
        self.disconnected.append(node_id)

    async def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self._check()
        return AlterPartitionResponse(0, None)

    async def allocate(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        self._check()
        self.heard.append(f"allocation for {request.node_id}")
        return AllocateProducerIdsResponse(0, None, first_producer_id=1000, count=10)

    async def fetch(self, start_offset: int, *, wait_ms: int) -> FetchMetadataResponse:
        self._check()
        self.heard.append(f"metadata from {start_offset} within {wait_ms}")
        return FetchMetadataResponse(0, None, end_offset=start_offset)


async def _nothing(request: Message, caller: Caller) -> Message:
    raise AssertionError(f"{request} of {caller.peer_id} is not part of this test")


async def _fetched(_: Message, caller: Caller) -> Message:
    return fetch.FetchResponse(throttle_ms=0, session_id=int(caller.peer_id or 0))


class Peer:
    """One node: its listener, its links, and what it believes."""

    def __init__(self, machine: Machine, node_id: int, secret: str, cluster_id: str | None) -> None:
        self.machine = machine
        self.node_id = NodeId(node_id)
        self.services = Services()
        self.image = self.services.image
        self.cluster_id = cluster_id
        self._secret = ClusterSecret(secret)

    listener: KafkaListener
    links: PeerLinks
    door: Door

    @property
    def address(self) -> Address:
        return Address(self.machine.name, PORT)

    async def start(self, ports: NodePorts) -> None:
        clients = {
            api.key: ServedApi(api, api.version_min, api.version_max, _nothing)
            for api in (list_offsets.API, offset_for_leader_epoch.API)
        }
        services = self.services
        served = serve_peers(
            cluster=services,
            registrations=services,
            sessions=services,
            alterations=services,
            allocations=services,
            feed=services,
            clients=clients,
            forwarded=frozenset(),
            fetch=_fetched,
        )
        self.door = Door(
            node_id=self.node_id,
            cluster_id=lambda: self.cluster_id,
            secret=self._secret,
            served=served,
            frame_bytes_max=1 << 20,
            rng=ports.rng,
            clock=ports.clock,
        )
        connections = peer_connections(ports.clock, request_bytes_max=1 << 20, idle_ms_max=600_000)
        self.listener = await listen_to_peers(
            ports.network,
            "0.0.0.0",
            PORT,
            connections=connections,
            door=self.door,
            budget=ByteBudget(PEER_BUFFER_BYTES_MAX),
        )
        self.links = PeerLinks(
            ports.network,
            ports.clock,
            ports.rng,
            node_id=self.node_id,
            image=self.image,
            secret=self._secret,
            cluster_id=lambda: self.cluster_id,
        )

    def controller_link(self, *seeds: "Peer") -> ControllerLink:
        return ControllerLink(self.links, self.image, lambda: [peer.address for peer in seeds])

    def learn(self, *peers: "Peer", controller: "Peer | None" = None, epoch: int = 1) -> None:
        """Facts for this node's image."""
        for peer in peers:
            endpoint = Endpoint(PEER_LISTENER, peer.machine.name, PORT)
            self.image.apply(BrokerRegistered(peer.node_id, 1, bytes(16), (endpoint,)))
        if controller is not None:
            self.image.apply(ControllerChanged(controller.node_id, epoch))


class Peers:
    def __init__(self, world: World) -> None:
        self.world = world

    def deadline_ms(self, timeout_ms: float = 5_000) -> float:
        return self.world.now_s * 1000 + timeout_ms

    async def start(self, node_id: int, *, secret: str = SECRET, cluster_id: str | None = CLUSTER_ID) -> Peer:
        peer = Peer(self.world.machine(f"node{node_id}"), node_id, secret, cluster_id)
        await peer.machine.start(peer.start)
        return peer


def among_peers(story: Callable[[Peers], Awaitable[T]], *, seed: int = 0) -> T:
    async def main(world: World) -> T:
        return await story(Peers(world))

    with World(seed) as world:
        return world.run(main(world), limit_s=600)
