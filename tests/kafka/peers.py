"""Internal listeners of several nodes on one simulated network, with services that remember what they were asked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

import pytest
from msgspec import Struct

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import NotController, QueueNotReady, RopewalkError, StalePartitionEpoch
from ropewalk.base.ids import NodeId, OwnerId, ProducerId
from ropewalk.base.limits import PEER_BUFFER_BYTES_MAX
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.broker.peers.peers import PeerLinks
from ropewalk.broker.queues.arrivals import Arrivals
from ropewalk.broker.queues.credits import Credits
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.client.connections.address import Address
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.controller.brokers import Registration
from ropewalk.controller.health import Trouble
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import Heartbeat
from ropewalk.controller.producer_ids import ProducerIdBlock
from ropewalk.controller.queues import QueueCommand
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.peer.apis import QueueHandlers, serve_peers
from ropewalk.kafka.peer.introduction import Admission
from ropewalk.kafka.peer.listener import listen_to_peers, peer_connections
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.image import Image
from ropewalk.metadata.lineage import Position
from ropewalk.metadata.records import (
    ALL_ROLES,
    PEER_LISTENER,
    BrokerRegistered,
    ControllerChanged,
    Endpoint,
)
from ropewalk.runtime.errands import Errands
from ropewalk.runtime.tasks import Supervisor
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.security.peer_channels import IN_THE_CLEAR, PeerChannels
from ropewalk.sim.machines.world import Machine, NodePorts, World
from ropewalk.wire.messages import fetch, list_offsets, offset_for_leader_epoch
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
        self.registered: list[Registration] = []
        self.loads: list[NodeLoad] = []
        self.alterations: list[PartitionAlteration] = []
        self.queue_commands: list[QueueCommand] = []
        self.mandates: list[Mandate | None] = []
        self.refusal: RopewalkError | None = None
        """Of whatever is to be done to queues."""

    def _check(self) -> None:
        if not self.decides:
            raise NotController("this node does not decide")

    async def register(self, registration: Registration) -> "Let":
        self._check()
        self.registered.append(registration)
        return Let(registration.node_id + 100, CLUSTER_ID)

    async def heartbeat(self, heartbeat: Heartbeat, load: NodeLoad | None) -> "Beaten":
        self._check()
        if load is not None:
            self.loads.append(load)
        self.heard.append(f"heartbeat of {heartbeat.node_id} {'with' if load else 'without'} load")
        return Beaten(is_fenced=False, may_stop=heartbeat.wants_to_stop, controller_id=NodeId(0))

    @property
    def metadata_offset(self) -> int:
        return 7

    async def account(self) -> Sequence[Trouble]:
        self._check()
        return (Trouble("nobody leads", "t", "1 of 1 partitions (0)"),)

    def on_disconnected(self, node_id: NodeId) -> None:
        self.disconnected.append(node_id)

    async def alter_partitions(
        self, node_id: NodeId, broker_epoch: int, alterations: Sequence[PartitionAlteration]
    ) -> Sequence[AlteredPartition]:
        self._check()
        self.alterations += alterations
        refused = StalePartitionEpoch(f"of {node_id} in epoch {broker_epoch}")
        return [AlteredPartition(each.topic_id, each.index, refused) for each in alterations]

    async def allocate_producer_ids(self, node_id: NodeId, broker_epoch: int) -> ProducerIdBlock:
        self._check()
        self.heard.append(f"allocation for {node_id} in {broker_epoch}")
        return ProducerIdBlock(ProducerId(1000), ProducerId(1010))

    async def decide(self, command: QueueCommand, mandate: Mandate | None) -> int:
        self._check()
        self.queue_commands.append(command)
        self.mandates.append(mandate)
        if self.refusal is not None:
            raise self.refusal
        return 7

    async def fetch(self, position: Position, wait_ms: int) -> "Page":
        """Waits as only a task can."""
        self._check()
        async with asyncio.timeout(wait_ms / 1000 + 1):
            await asyncio.sleep(wait_ms / 1000)
        return Page(1, position.end_offset + 1, None, b"records")


class Let(Struct, frozen=True):
    broker_epoch: int
    cluster_id: str


class Beaten(Struct, frozen=True):
    is_fenced: bool
    may_stop: bool
    controller_id: NodeId
    metadata_end_offset: int = 7
    clock_ms: int = 1_000
    hindrance: str | None = None


class Page(Struct, frozen=True):
    controller_epoch: int
    end_offset: int
    snapshot: bytes | None
    records: bytes | None


async def _nothing(request: Message, caller: Caller) -> Message:
    raise AssertionError(f"{request} of {caller.peer_id} is not part of this test")


async def _fetched(_: Message, caller: Caller) -> Message:
    return fetch.FetchResponse(throttle_ms=0, session_id=int(caller.peer_id or 0))


class Peer:
    """One node: its listener, its links, and what it believes."""

    def __init__(
        self,
        machine: Machine,
        node_id: int,
        secret: str,
        cluster_id: str | None,
        *,
        previous: str = "",
        roles: tuple[str, ...] = ALL_ROLES,
        channels: PeerChannels = IN_THE_CLEAR,
    ) -> None:
        self.machine = machine
        self.node_id = NodeId(node_id)
        self.services = Services()
        self.image = self.services.image
        self.cluster_id = cluster_id
        self.secret = ClusterSecret(secret, previous)
        self.roles = roles
        self.channels = channels

    listener: KafkaListener
    links: PeerLinks
    admission: Admission

    @property
    def address(self) -> Address:
        return Address(self.machine.name, PORT)

    async def start(self, ports: NodePorts) -> None:
        clients = {
            api.key: ServedApi(api, api.version_min, api.version_max, _nothing)
            for api in (list_offsets.API, offset_for_leader_epoch.API)
        }
        services = self.services
        errands = Errands(count_max=10)
        supervisor = Supervisor(lambda name, error: pytest.fail(f"{name}: {error!r}"))
        supervisor.start("errands", errands.run())
        served = serve_peers(
            cluster=services,
            controller=services,
            feed=services,
            errands=errands,
            clients=clients,
            forwarded=frozenset(),
            fetch=_fetched,
            replica_sessions=FetchSessions(ports.rng, count_max=10),
            add_partitions=_nothing,
            write_markers=_nothing,
            hears_controller=lambda: True,
            health=services,
            queues=services,
            has_parted=lambda: False,
            queue_handlers=QueueHandlers(_no_queue, Credits(_no_queue), cast(Arrivals, None), ports.pool),
        )
        self.admission = Admission(
            node_id=self.node_id,
            cluster_id=lambda: self.cluster_id,
            secret=self.secret,
            served=served,
            frame_bytes_max=1 << 20,
            rng=ports.rng,
            clock=ports.clock,
            channels=self.channels,
        )
        connections = peer_connections(ports.clock, request_bytes_max=1 << 20, idle_ms_max=600_000)
        self.listener = await listen_to_peers(
            ports.network,
            "0.0.0.0",
            PORT,
            connections=connections,
            admission=self.admission,
            budget=ByteBudget(PEER_BUFFER_BYTES_MAX),
        )
        self.links = PeerLinks(
            ports.network,
            ports.clock,
            ports.rng,
            node_id=self.node_id,
            image=self.image,
            secret=self.secret,
            cluster_id=lambda: self.cluster_id,
            roles=self.roles,
            channels=self.channels,
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

    async def start(
        self,
        node_id: int,
        *,
        secret: str = SECRET,
        cluster_id: str | None = CLUSTER_ID,
        previous: str = "",
        roles: tuple[str, ...] = ALL_ROLES,
        channels: PeerChannels = IN_THE_CLEAR,
    ) -> Peer:
        machine = self.world.machine(f"node{node_id}")
        peer = Peer(machine, node_id, secret, cluster_id, previous=previous, roles=roles, channels=channels)
        await peer.machine.start(peer.start)
        return peer


def among_peers(story: Callable[[Peers], Awaitable[T]], *, seed: int = 0) -> T:
    async def main(world: World) -> T:
        return await story(Peers(world))

    with World(seed) as world:
        return world.run(main(world), limit_s=600)


def _no_queue(queue_id: OwnerId, index: int) -> HostedQueue:
    raise QueueNotReady(f"partition {index} of {queue_id.hex()} is not here")
