"""The nodes of a cluster and whoever runs them: each is started again when it is gone, and stopped in order when told to."""

import asyncio
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, TypeVar

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.levels import OURS, Software
from ropewalk.broker.cluster.facts import Facts
from ropewalk.metadata.bounds import MetadataBounds
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.metadata.settings.replication import RACK_AWARE_SELECTOR
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.sim.judges.history import EndedItself, Journal, StartFailed
from ropewalk.sim.machines.etcd import ModelledEtcd
from ropewalk.sim.machines.process import Died, Process
from ropewalk.sim.machines.world import Machine, NodePorts, World
from ropewalk.sim.runs.cluster.guide import KAFKA_PORT

PEER_PORT: Final = 9192
SQS_PORT: Final = 9324
SEED_COUNT: Final = 3
RACK_COUNT: Final = 3
SCRUBS_MAX: Final = 300
"""More than there are partitions."""

HELD_S_MAX: Final = 8.0
"""How long whoever holds nodes down waits for something to come of it. It is more than a session; for longer, nobody gets anything done."""

T = TypeVar("T")

_SETTINGS: Final = (
    "cluster.secret=known to this cluster",
    "peer.tls=off",  # what OpenSSL draws follows from no seed
    "auto.create.topics.enable=false",
    "telemetry.interval.ms=0",
    "audit.topic=false",
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
        watched_facts: Callable[[Software], Facts],
        bounds: MetadataBounds,
    ) -> None:
        """`watched_facts` makes what a process knows of the cluster, so that somebody may look on."""
        self.machine = machine
        self.software = OURS
        """What the next process is of."""
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
        self.on_stopped: Callable[[NodeId, Collection[TopicPartition]], None] = lambda _node_id, _damaged: (
            None
        )
        """Told of a stop that came to its end, with the copies that the process knew to be damaged."""

    @property
    def serving(self) -> Node | None:
        return self.node if self.machine.has_started else None

    def damaged(self) -> list[TopicPartition]:
        """The copies that its process knows to be damaged, while it is in service."""
        node = self.serving
        return [] if node is None else [each.name for each in node.partitions if each.log.damaged]

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
        damaged = self.damaged()
        stopping = self._begin(process, node.stop())
        await asyncio.wait([stopping], timeout=60)
        if stopping.done() and process.alive and stopping.exception() is None:
            self.on_stopped(self.node_id, damaged)
        if process.alive:
            process.die("stopped")
        self._is_busy = False

    async def scrub(self) -> None:
        """Let it verify its closed segments, as it does by itself some time after it was started, and every day."""
        process, node = self.machine.process, self.serving
        for _ in range(SCRUBS_MAX):
            if process is None or node is None or not process.alive:
                return
            scrubbing = self._begin(process, node.housekeeping.scrub())
            await asyncio.wait([scrubbing], timeout=10)
            if not scrubbing.done() or scrubbing.exception() is not None or not scrubbing.result():
                return

    def _begin(self, process: Process, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """As a task of that process, which ends with it."""
        return self._world.loop.create_task(work, context=process.context())

    async def _boot(self, ports: NodePorts) -> Node:
        sync_failure_count = self.machine.platters.sync_failure_count
        node = await life.start(
            load(self._options, {}), ports, self._watched_facts(self.software), self._bounds
        )

        def leave(failed: "asyncio.Future[BaseException]") -> None:
            if self.machine.platters.sync_failure_count == sync_failure_count:
                self._journal.note(EndedItself(self.machine.name, repr(failed.result())))
            sys.exit(1)

        node.failed.add_done_callback(leave)
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
        watched_facts: Callable[[Software], Facts],
        bounds: MetadataBounds,
        has_racks: bool = False,
        front_end_count: int = 0,
        serves_queues: bool = False,
    ) -> None:
        """`differing` are settings of single nodes. Front ends are the last ones, beside `count` others."""
        self._world = world
        self.note = world.sometimes.note
        self._broker_count = count
        self._serves_queues = serves_queues
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
            for number in range(count + front_end_count)
        }

    @property
    def names(self) -> list[str]:
        return [member.machine.name for member in self.by_id.values()]

    @property
    def broker_names(self) -> list[str]:
        return self.names[: self._broker_count]

    @property
    def front_end_names(self) -> list[str]:
        """Of those that hold nothing, and pass on what clients ask."""
        return self.names[self._broker_count :]

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
        is_front_end = number >= self._broker_count
        if is_front_end:
            home = ("kafka.route=proxy",)
        elif self.etcd is not None:
            home = ("metadata.home=etcd", f"metadata.etcd.endpoints={','.join(self.etcd.urls)}")
        decides = self.etcd is not None or number == 0
        roles = ALL_ROLES if decides else ("broker", "frontend")
        return NodeOptions(
            node_id=number,
            kafka=f"{name}:{KAFKA_PORT}",
            http="none",
            sqs=f"{name}:{SQS_PORT}" if self._serves_queues else "none",
            peer=f"{name}:{PEER_PORT}",
            data="/data",
            roles=("frontend",) if is_front_end else roles,
            seeds=tuple(f"node{seed}:{PEER_PORT}" for seed in range(SEED_COUNT) if seed != number),
            settings=(*_SETTINGS, "sqs.insecure=true", *home, *self._rack_settings(number), *settings),
        )

    def _rack_settings(self, number: int) -> tuple[str, ...]:
        if not self.racks:
            return ()
        return (
            f"broker.rack={self.racks[number % RACK_COUNT]}",
            f"replica.selector.class={RACK_AWARE_SELECTOR}",
        )


def put_down(member: Member) -> None:
    """It is killed, and not started again before somebody lets it."""
    member.is_held_down = True
    member.machine.kill()
