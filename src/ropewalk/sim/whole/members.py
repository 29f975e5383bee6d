"""The machines of a simulated cluster, the nodes on them, and whoever starts them again when they are gone."""

import asyncio
import random
import sys
from contextvars import copy_context
from typing import Final

from ropewalk.client.address import Address
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.node import build
from ropewalk.node.build import Node
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.sim.etcd import ModelledEtcd
from ropewalk.sim.process import CURRENT, Died
from ropewalk.sim.world import Machine, NodePorts, World

KAFKA_PORT: Final = 9092
PEER_PORT: Final = 9192
SECRET: Final = "what simulated nodes know"
STOP_S_MAX: Final = 60.0

_SETTINGS: Final = (
    f"cluster.secret={SECRET}",
    "telemetry.interval.ms=0",
    "auto.create.topics.enable=false",
    "offsets.topic.num.partitions=2",
)


class Member:
    def __init__(self, machine: Machine, options: NodeOptions, rng: random.Random) -> None:
        self.machine = machine
        self.is_held = False
        """Not to be started again for the time being."""
        self.failures: list[str] = []
        """Why it could not be started, where nobody had ended it."""
        self._options = options
        self._rng = rng
        self._node: Node | None = None

    @property
    def node(self) -> Node | None:
        """None while it is not running, or has not started yet."""
        return self._node if self.machine.has_started else None

    @property
    def address(self) -> Address:
        return Address(self.machine.name, KAFKA_PORT)

    async def keep_running(self) -> None:
        """Start the node again a while after it is gone, for ever."""
        while True:
            if not self.machine.is_running and not self.is_held:
                await asyncio.sleep(self._rng.uniform(0.0, 2.0))
                if not self.machine.is_running and not self.is_held:
                    await self._start()
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """As SIGTERM does, inside its process, as far as it gets."""
        process, node = self.machine.process, self.node
        if process is None or node is None:
            return
        context = copy_context()
        context.run(CURRENT.set, process)
        stopping = asyncio.get_running_loop().create_task(node.stop(), context=context)
        done, _ = await asyncio.wait([stopping], timeout=STOP_S_MAX)
        if not process.alive:
            return
        if not done:
            self.failures.append(f"{self.machine.name} did not stop within {STOP_S_MAX} s")
        process.die("stopped")

    async def _start(self) -> None:
        try:
            self._node = await self.machine.start(self._boot)
        except Died:
            return
        except Exception as error:  # noqa: BLE001  # whatever keeps a node from starting, it is evidence
            self.failures.append(f"{self.machine.name} does not start: {error!r}")

    async def _boot(self, ports: NodePorts) -> Node:
        node = await build.start(load(self._options, {}), ports)
        node.failed.add_done_callback(_leave)
        return node


class Members:
    def __init__(
        self, world: World, count: int, etcd: ModelledEtcd | None, settings: tuple[str, ...]
    ) -> None:
        self.world = world
        self.etcd = etcd
        home: tuple[str, ...] = ()
        if etcd is not None:
            home = ("metadata.home=etcd", f"metadata.etcd.endpoints={','.join(etcd.urls)}")
        self.all = [
            Member(
                world.machine(f"node{node_id}"),
                NodeOptions(
                    node_id=node_id,
                    kafka=f"node{node_id}:{KAFKA_PORT}",
                    http="none",
                    peer=f"node{node_id}:{PEER_PORT}",
                    data="/data",
                    roles=ALL_ROLES if etcd is not None or node_id == 0 else ("broker", "frontend"),
                    seeds=tuple(f"node{seed}:{PEER_PORT}" for seed in range(count) if seed != node_id),
                    settings=(*_SETTINGS, *home, *settings),
                ),
                world.rng_for(f"keeper of node{node_id}"),
            )
            for node_id in range(count)
        ]

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        return tuple(member.address for member in self.all)

    def nodes(self) -> list[Node]:
        """Those that run."""
        return [node for member in self.all if (node := member.node) is not None]

    def controller(self) -> Member | None:
        """The one that decides by its own account, and in the newest epoch."""
        deciding = [member for member in self.all if (node := member.node) is not None and node.decides]
        return max(deciding, key=_controller_epoch, default=None)


def _controller_epoch(member: Member) -> int:
    node = member.node
    return -1 if node is None else node.image.controller_epoch


def _leave(_: "asyncio.Future[BaseException]") -> None:
    sys.exit(1)
