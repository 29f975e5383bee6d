"""The nodes of a cluster and whoever runs them: each is started again when it is gone, and stopped in order when told to."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.broker.facts import Facts
from ropewalk.metadata.bounds import MetadataBounds
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.metadata.settings.replication import RACK_AWARE_SELECTOR
from ropewalk.node import build
from ropewalk.node.build import Node
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.sim.cluster.guide import KAFKA_PORT
from ropewalk.sim.etcd import ModelledEtcd
from ropewalk.sim.history import Journal, StartFailed
from ropewalk.sim.process import CURRENT, Died
from ropewalk.sim.world import Machine, NodePorts, World

PEER_PORT: Final = 9192
SEED_COUNT: Final = 3
RACK_COUNT: Final = 3

_SETTINGS: Final = (
    "cluster.secret=known to this cluster",
    "auto.create.topics.enable=false",
    "telemetry.interval.ms=0",
    "node.reserve.bytes=65536",
    "offsets.topic.num.partitions=1",
    "log.retention.check.interval.ms=1500",
    "log.cleaner.backoff.ms=500",
)


class Member:
    """One machine and, while it runs, the node on it."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        options: NodeOptions,
        journal: Journal,
        watched_facts: Callable[[], Facts],
        bounds: MetadataBounds,
    ) -> None:
        """`watched_facts` makes what a process knows of the cluster, so that somebody may look on."""
        self.machine = machine
        self._bounds = bounds
        self.node: Node | None = None
        """Of the present process, once it is in service."""
        assert options.node_id is not None
        self.node_id = NodeId(options.node_id)
        self._world = world
        self._options = options
        self._journal = journal
        self._watched_facts = watched_facts
        self._rng = world.rng_for(f"{machine.name}/keeper")
        self._is_busy = False
        self.is_held_down = False

    @property
    def serving(self) -> Node | None:
        return self.node if self.machine.has_started else None

    async def keep_running(self) -> None:
        """Start the node again a while after it is gone, for ever."""
        while True:
            if not self.machine.is_running and not self._is_busy and not self.is_held_down:
                await asyncio.sleep(self._rng.choice([0.02, 0.3, 1.0, 4.0]) * self._rng.random())
                if not self.machine.is_running and not self._is_busy and not self.is_held_down:
                    await self.start()
            await asyncio.sleep(0.1)

    async def start(self) -> None:
        """One attempt. What an operator could put right, or others have to, is tried again."""
        self.node = None
        try:
            self.node = await self.machine.start(self._boot)
        except Died:
            pass
        except (RopewalkError, OSError) as error:
            self._world.trace.note("cannot start", self.machine.name, repr(error))
            self._world.sometimes.note("a node could not start yet")
        except Exception as error:  # noqa: BLE001  # whatever else keeps a node from starting is evidence
            self._journal.note(StartFailed(self.machine.name, repr(error)))

    async def stop(self) -> None:
        """SIGTERM."""
        process, node = self.machine.process, self.serving
        if process is None or node is None or self._is_busy:
            return
        self._is_busy = True
        self._world.sometimes.note("the node was stopped in order")
        context = copy_context()
        context.run(CURRENT.set, process)
        stopping = self._world.loop.create_task(node.stop(), context=context)
        await asyncio.wait([stopping], timeout=60)
        if process.alive:
            process.die("stopped")
        self._is_busy = False

    async def _boot(self, ports: NodePorts) -> Node:
        node = await build.start(load(self._options, {}), ports, self._watched_facts(), self._bounds)
        node.failed.add_done_callback(_leave)
        return node


class Members:
    def __init__(
        self,
        world: World,
        journal: Journal,
        *,
        count: int,
        settings: tuple[str, ...],
        differing: Mapping[int, tuple[str, ...]],
        etcd: ModelledEtcd | None,
        watched_facts: Callable[[], Facts],
        bounds: MetadataBounds,
        has_racks: bool = False,
    ) -> None:
        """`differing` are settings of single nodes."""
        self._world = world
        self.etcd = etcd
        self.racks = tuple(f"rack{number}" for number in range(RACK_COUNT)) if has_racks else ()
        """Where the nodes stand, each in the one of its number; none where nobody says so."""
        self.by_id = {
            NodeId(number): Member(
                world,
                world.machine(f"node{number}", can_sync_everything=number % 2 == 0),
                self._options(number, (*settings, *differing.get(number, ()))),
                journal,
                watched_facts,
                bounds,
            )
            for number in range(count)
        }

    @property
    def names(self) -> list[str]:
        return [member.machine.name for member in self.by_id.values()]

    @property
    def serving(self) -> list[Node]:
        return [member.node for member in self.by_id.values() if member.node and member.serving]

    def newest_image(self) -> Image | None:
        """Of those that are in service, the one that knows most."""
        return max((node.image for node in self.serving), key=lambda image: image.end_offset, default=None)

    def holds_home(self, node_id: NodeId) -> bool:
        """Whether the metadata is on its disk, and nowhere else."""
        return self.etcd is None and node_id == 0

    def _options(self, number: int, settings: tuple[str, ...]) -> NodeOptions:
        name = f"node{number}"
        home: tuple[str, ...] = ()
        if self.etcd is not None:
            home = ("metadata.home=etcd", f"metadata.etcd.endpoints={','.join(self.etcd.urls)}")
        decides = self.etcd is not None or number == 0
        return NodeOptions(
            node_id=number,
            kafka=f"{name}:{KAFKA_PORT}",
            http="none",
            peer=f"{name}:{PEER_PORT}",
            data="/data",
            roles=ALL_ROLES if decides else ("broker", "frontend"),
            seeds=tuple(f"node{seed}:{PEER_PORT}" for seed in range(SEED_COUNT) if seed != number),
            settings=(*_SETTINGS, *home, *self._rack_settings(number), *settings),
        )

    def _rack_settings(self, number: int) -> tuple[str, ...]:
        if not self.racks:
            return ()
        return (
            f"broker.rack={self.racks[number % RACK_COUNT]}",
            f"replica.selector.class={RACK_AWARE_SELECTOR}",
        )


def _leave(_: "asyncio.Future[BaseException]") -> None:
    sys.exit(1)
