"""Queues of both kinds on three nodes, used by sixteen workers through two front ends behind HAProxy, while nodes and front ends are killed.

    kill    kill -9, and a start a little later
    stop    an orderly stop, likewise
    pause   a process stands still for a few seconds

At the end the queues are emptied: whatever was acknowledged has come, nothing that was deleted came back, FIFO groups kept their order.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from confluent_kafka import KafkaException

from ropewalk.local.ports import free_ports
from tests.balancing.haproxy import FrontEnd, Haproxy
from tests.chaos.cluster import ClusterProcesses
from tests.chaos.etcd import EtcdProcesses
from tests.chaos.node import NodeProcess
from tests.chaos.queue_workers import Doors, Refused, Workers

QUEUES: Final = ("work", "work.fifo")
WORKERS_OF_A_QUEUE: Final = 4
"""Senders, and as many receivers, of each queue: sixteen in all."""
FAULTS: Final = ("kill", "kill", "stop", "pause")
FRONT_END_SHARE: Final = 0.4
"""Of the faults."""
GAP_S: Final = 3.0
DOWN_S: Final = 1.0
PAUSE_S: Final = 4.0
STUCK_S: Final = 90.0
LOOK_S: Final = 0.25
"""Between two looks at who leads the queues."""
SETTINGS: Final = ("telemetry.interval.ms=0", "audit.topic=false", "node.session.timeout.ms=3000")


class QueueTotals(NamedTuple):
    faults: dict[str, int]
    sent: int
    deleted: int
    deliveries: int
    again: dict[str, dict[str, int]]
    """Second deliveries by queue and reason."""
    leader_changes: int
    took_s: float
    violations: list[str]


def run(
    rounds: int,
    *,
    seed: int = 0,
    etcd: bool = True,
    minutes_max: float = 24 * 60,
    progress: Callable[[str], None] = lambda _: None,
) -> QueueTotals:
    """No round begins after `minutes_max`; what there was is judged all the same."""
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="queues-", dir=place)))
        members = stack.enter_context(EtcdProcesses(scratch / "etcd", "127.0.0.1")) if etcd else None
        data = [scratch / f"data-{number}" for number in range(3)]
        ports = free_ports("127.0.0.1", 9)
        doors = [FrontEnd(*ports[3 * number : 3 * number + 3]) for number in range(3)]
        cluster = ClusterProcesses(
            data,
            scratch,
            etcd=None if members is None else members.endpoints,
            settings=SETTINGS,
            front_ends=doors[:2],
        )
        stack.callback(cluster.kill)
        try:
            cluster.start()
            balancer = stack.enter_context(Haproxy(scratch, doors[:2], doors[2]))
            return asyncio.run(_Rounds(cluster, balancer, rounds, seed, 60 * minutes_max, progress).run())
        except Exception as error:
            error.add_note(cluster.last_words())
            raise


class _Rounds:
    def __init__(
        self,
        cluster: ClusterProcesses,
        balancer: Haproxy,
        rounds: int,
        seed: int,
        seconds_max: float,
        progress: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._addresses = [f"http://127.0.0.1:{balancer.ports.sqs}"]
        self._rounds = rounds
        self._seed = seed
        self._seconds_max = seconds_max
        self._rng = Random(seed)
        self._progress = progress
        self._faults: Counter[str] = Counter()
        self._leaders: dict[str, int] = {}
        self._leader_change_count = 0

    async def run(self) -> QueueTotals:
        began = time.monotonic()
        doors = Doors(lambda: self._addresses, self._rng)
        for name in QUEUES:
            attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
            while await doors.ask("CreateQueue", {"QueueName": name, "Attributes": attributes}) is None:
                pass
        queues = {name: Workers(name, lambda: self._addresses, self._seed) for name in QUEUES}
        violations: list[str] = []
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch_leaders(queues))
            for queue in queues.values():
                for number in range(WORKERS_OF_A_QUEUE):
                    tasks.create_task(queue.send(number))
                    tasks.create_task(queue.receive(number))
            for number in range(self._rounds):
                if time.monotonic() < began + self._seconds_max:
                    await self._fault(number, queues)
            await asyncio.sleep(GAP_S)
            for queue in queues.values():
                queue.stop()
            emptied = await asyncio.gather(*(_empty(queue) for queue in queues.values()))
            watch.cancel()
        for queue, refusal in zip(queues.values(), emptied, strict=True):
            violations += refusal
            violations += queue.ledger.finish()
        codes = await asyncio.to_thread(self._cluster.stop)
        violations += [f"a node ended with {code} when asked to stop" for code in codes if code != 0]
        violations += [complaint for node in self._everybody for complaint in node.held_loops()]
        return QueueTotals(
            dict(self._faults),
            sum(queue.sent_count for queue in queues.values()),
            sum(queue.deleted_count for queue in queues.values()),
            sum(queue.ledger.delivery_count for queue in queues.values()),
            {name: dict(queue.ledger.again) for name, queue in queues.items()},
            self._leader_change_count,
            time.monotonic() - began,
            violations,
        )

    @property
    def _everybody(self) -> list[NodeProcess]:
        return [*self._cluster.nodes, *self._cluster.front_ends]

    async def _fault(self, number: int, queues: dict[str, Workers]) -> None:
        await asyncio.sleep(GAP_S * (0.5 + self._rng.random()))
        await self._wait_for_progress(queues)
        kind = self._rng.choice(FAULTS)
        is_front_end = self._rng.random() < FRONT_END_SHARE
        node = self._rng.choice(self._cluster.front_ends if is_front_end else self._cluster.nodes)
        who = f"{'front end' if is_front_end else 'node'} {self._everybody.index(node)}"
        self._faults[f"{kind} {who.rpartition(' ')[0]}"] += 1
        self._progress(f"{number + 1}: {kind} {who}")
        if is_front_end:
            self._note_loss(queues)
        else:
            self._note_fault(self._cluster.nodes.index(node), queues)
        if kind == "pause":
            await asyncio.to_thread(node.freeze)
            await asyncio.sleep(PAUSE_S)
            node.thaw()
        else:
            await asyncio.to_thread(node.kill if kind == "kill" else node.stop)
            await asyncio.sleep(DOWN_S)
            await asyncio.to_thread(node.start)
        if is_front_end:
            self._note_loss(queues)

    def _note_loss(self, queues: dict[str, Workers]) -> None:
        for queue in queues.values():
            queue.ledger.on_front_end_lost(time.monotonic())

    def _note_fault(self, node_id: int, queues: dict[str, Workers]) -> None:
        """Of a node that leads a queue: another will."""
        for name, queue in queues.items():
            if self._leaders.get(name) == node_id:
                queue.ledger.on_leader_changed(time.monotonic())

    async def _watch_leaders(self, queues: dict[str, Workers]) -> None:
        while True:
            for name, queue in queues.items():
                try:
                    leader, _ = (await asyncio.to_thread(self._cluster.leaders, name))[0]
                except KafkaException:
                    continue  # it is asked again
                if leader >= 0 and self._leaders.get(name) != leader:
                    self._leader_change_count += name in self._leaders
                    self._leaders[name] = leader
                    queue.ledger.on_leader_changed(time.monotonic())
            await asyncio.sleep(LOOK_S)

    async def _wait_for_progress(self, queues: dict[str, Workers]) -> None:
        """One fault at a time: what it interrupted goes on before the next."""
        asked_at = time.monotonic()
        while min(queue.last_progress_at for queue in queues.values()) < asked_at:
            if time.monotonic() > asked_at + STUCK_S:
                raise RuntimeError(f"nothing was received for {STUCK_S} s")
            await asyncio.sleep(0.05)


async def _empty(queue: Workers) -> list[str]:
    """What keeps it from that."""
    try:
        await queue.empty()
    except Refused as refusal:
        return [str(refusal)]
    return []
