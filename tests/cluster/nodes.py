"""Several whole nodes on the simulated world, and clients that talk to them.

Virtual time, an in-memory network and disks that forget: the nodes are the real ones, from their listeners down.
Node 0 is the controller, with the metadata in its directory; the others are brokers that have it for a seed. With etcd,
which is modelled, every node may come to be the controller.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from ropewalk.base.ids import NodeId
from ropewalk.base.levels import OURS, Software
from ropewalk.broker.cluster.facts import Facts
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.sim.machines.etcd import ModelledEtcd
from ropewalk.sim.machines.world import Machine, World

T = TypeVar("T")

KAFKA_PORT = 9092
PEER_PORT = 9192
HTTP_PORT = 9644
SECRET = "a secret of this cluster"
QUIET = (
    "telemetry.interval.ms=0",
    "audit.topic=false",
    "peer.tls=off",
    "node.reserve.bytes=65536",
    "offsets.topic.num.partitions=2",
)


class Member:
    """One machine and, while it runs, the node on it."""

    def __init__(self, machine: Machine, options: NodeOptions) -> None:
        self.machine = machine
        self.software = OURS
        """What the next start is of."""
        self._options = options

    node: Node

    async def start(self) -> Node:
        self.node = await self.machine.start(
            lambda ports: life.start(load(self._options, {}), ports, Facts(self.software))
        )
        return self.node

    async def stop(self) -> None:
        """In order, as SIGTERM does."""
        await self.node.stop()
        self.machine.kill()

    def kill(self) -> None:
        self.machine.kill()


class Nodes:
    def __init__(
        self,
        world: World,
        settings: Sequence[str],
        etcd: ModelledEtcd | None = None,
        *,
        with_http: bool = False,
        software: Software = OURS,
    ) -> None:
        self.world = world
        self._software = software
        self._settings = settings
        self._etcd = etcd
        self._with_http = with_http
        self.members: dict[int, Member] = {}

    @property
    def etcd(self) -> ModelledEtcd:
        assert self._etcd is not None, "the story is told without etcd"
        return self._etcd

    def controller(self) -> int | None:
        """Who decides, by its own account; the one with the newest epoch if there are several."""
        deciding = [
            node_id
            for node_id, member in self.members.items()
            if member.machine.has_started and member.node.decides
        ]
        return max(deciding, key=lambda node_id: self[node_id].image.controller_epoch, default=None)

    def __getitem__(self, node_id: int) -> Node:
        return self.members[node_id].node

    def add(
        self,
        node_id: int,
        *settings: str,
        roles: tuple[str, ...] = (),
        seeds: tuple[str, ...] = (),
        machine: str | None = None,
    ) -> Member:
        """`machine` for a node that claims an id which another has."""
        name = machine or f"node{node_id}"
        home: tuple[str, ...] = ()
        if self._etcd is not None:
            home = ("metadata.home=etcd", f"metadata.etcd.endpoints={','.join(self._etcd.urls)}")
            roles = roles or ALL_ROLES
        said = (*self._settings, *settings)
        has_listeners = any(each.startswith(("listeners=", "kafka.listen=")) for each in said)
        has_secret = any(each.startswith("cluster.secret.file=") for each in said)
        secret = () if has_secret else (f"cluster.secret={SECRET}",)
        hosts = ("http.hosts=node",) if self._with_http else ()  # as the tests' client says
        options = NodeOptions(
            node_id=node_id,
            kafka=None if has_listeners else f"{name}:{KAFKA_PORT}",
            http=f"{name}:{HTTP_PORT}" if self._with_http else "none",
            peer=f"{name}:{PEER_PORT}",
            data="/data",
            roles=roles or (ALL_ROLES if node_id == 0 else ("broker", "frontend")),
            seeds=seeds or tuple(f"node{seed}:{PEER_PORT}" for seed in range(3) if seed != node_id),
            settings=(*secret, *QUIET, *home, *hosts, *said),
        )
        member = Member(self.world.machine(name), options)
        member.software = self._software
        return self.members.setdefault(node_id, member) if machine is None else member

    async def start(self, count: int, differing: Mapping[int, Sequence[str]]) -> None:
        """All at once; returns when every node is in service, and all have heard of it."""
        await asyncio.gather(
            *(self.add(node_id, *differing.get(node_id, ())).start() for node_id in range(count))
        )
        await self.until(
            lambda: all(self.is_serving(one, seen_by=other) for one in range(count) for other in range(count))
        )

    def client(self) -> Client:
        bootstrap = tuple(Address(member.machine.name, KAFKA_PORT) for member in self.members.values())
        return Client(
            self.world.network.host("client"),
            self.members[0].machine.clock,
            self.world.rng_for("client"),
            bootstrap,
        )

    async def until(self, condition: Callable[[], bool], *, within_s: float = 30) -> float:
        """Wait for something to become true, and say how long it took."""
        began_s = self.world.now_s
        while not condition():
            assert self.world.now_s - began_s < within_s, "it did not happen in time"
            await asyncio.sleep(0.01)
        return self.world.now_s - began_s

    async def until_opened(self, topic: str) -> None:
        """Until every replica has its copies of `topic` open: a topic is there as soon as it is decided."""
        described = self[0].image.topic(topic)
        await self.until(
            lambda: all(
                self[node_id].partitions.led(described.topic_id, partition.index)
                or self[node_id].partitions.followed(described.topic_id, partition.index)
                for partition in described.partitions
                for node_id in partition.replicas
            )
        )

    def is_serving(self, node_id: int, *, seen_by: int) -> bool:
        broker = self[seen_by].image.brokers.get(NodeId(node_id))
        return broker is not None and broker.is_active


def in_a_cluster(
    story: Callable[[Nodes], Awaitable[T]],
    *settings: str,
    nodes: int = 3,
    seed: int = 0,
    with_etcd: bool = False,
    with_http: bool = False,
    limit_s: float = 600,
    differing: Mapping[int, Sequence[str]] = MappingProxyType({}),
    software: Software = OURS,
) -> T:
    """Run `story` with so many nodes in service. `differing` are settings of single nodes, `software` is what all of them are at first."""

    async def main(world: World) -> T:
        etcd = ModelledEtcd(world) if with_etcd else None
        cluster = Nodes(world, settings, etcd, with_http=with_http, software=software)
        world.machine("client")
        if etcd is not None:
            await etcd.start()
        await cluster.start(nodes, differing)
        return await story(cluster)

    with World(seed) as world:
        return world.run(main(world), limit_s=limit_s)
