"""`ropewalk.aio` in the simulator: an idempotent producer whose batches arrive late, on connections that it gave up long ago.

The way to the leader is cut again and again for as long as the producer is patient: what it sent waits on the wire, the first of it is given up, the next
is sent again on another connection, and then what waited arrives.

What must hold
    duplicate   nothing is in the log twice, whatever became of it by the producer's account
    lost-write  what was acknowledged is there
"""

import asyncio
from collections import Counter, deque
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.produce import Acks
from ropewalk.client.errors import DeliveryFailed
from ropewalk.client.producing.batch import Delivery
from ropewalk.client.producing.producer import Producer
from ropewalk.sim.clients.content import encode_value
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.network import Fabric
from ropewalk.sim.runs.cluster.stage import Stage
from ropewalk.sim.runs.eos.client_writers import ClientPorts, live_again
from ropewalk.sim.runs.eos.guide import EosGuide
from ropewalk.sim.runs.eos.side_topics import Guides, SideTopic

LATE: Final = "late"
_PATIENCE_MS: Final = 1200
_STEP_S: Final = 0.002
_STEPS: Final = 300


class LateTopic:
    def __init__(self, guides: Guides, bootstrap: str, stage: Stage) -> None:
        self._stage = stage
        settings = {"min.insync.replicas": "2", "retention.ms": "-1"}  # clocks jump by days
        self._topic = SideTopic(guides, bootstrap, LATE, settings, Acks.ALL)
        self._guides = guides
        self._writer = guides(f"{LATE}-writer")
        self._bootstrap = bootstrap
        self._partition = self._topic.partitions[0]
        self._sent_count = 0
        """Since the way was last mended."""
        self._writer.workload.world.network.watches[self._writer.name] = self._on_sent
        self._acknowledged: set[int] = set()
        self.findings: list[Violation] = []

    async def make(self) -> None:
        await self._topic.make()

    def start(self, clients: asyncio.TaskGroup) -> None:
        clients.create_task(self._write())
        clients.create_task(self._cut_off(self._stage))

    async def _write(self) -> None:
        await live_again(self._writer, self._live, pause_s=0.3)

    async def _live(self) -> None:
        guide, rng = self._writer, self._writer.rng
        producer = Producer(
            self._bootstrap,
            ports=ClientPorts(guide),
            client_id=guide.name,
            delivery_timeout_ms=_PATIENCE_MS,
            request_timeout_ms=_PATIENCE_MS * 2 // 3,
            max_block_ms=2000,
            connect_timeout_ms=rng.choice([50, 100, 200]),
            linger_ms=0,
            batch_size=1,
            retry_backoff_ms=rng.choice([50, 100]),
        )
        async with producer:
            sent: deque[tuple[int, Delivery]] = deque()
            for _ in range(rng.randrange(20, 100)):
                if guide.workload.is_over:
                    break
                value = guide.workload.next_value()
                guide.workload.operation_count += 1
                delivery = await producer.send(LATE, encode_value(value), partition=self._partition.partition)
                sent.append((value, delivery))
                while sent and sent[0][1].done:
                    await self._hear(*sent.popleft())
                await guide.pause(0.5)
            while sent:
                await self._hear(*sent.popleft())

    async def _hear(self, value: int, delivery: Delivery) -> None:
        try:
            await delivery
        except DeliveryFailed as failure:
            if failure.is_unknown:
                self._writer.workload.sometimes.note(
                    "a batch that may have been late was given up as unknown"
                )
        except RopewalkError:
            return
        else:
            self._acknowledged.add(value)

    async def _cut_off(self, stage: Stage) -> None:
        guide = self._guides(f"{LATE}-fate")
        while not guide.workload.is_over:
            await guide.pause(0.8)
            leader = stage.judge.image.partition(LATE, self._partition.partition).leader
            if leader is not None:
                await self._delay(guide, stage.world.network, stage.members.by_id[leader].machine.name)

    async def _delay(self, guide: EosGuide, network: Fabric, leader: str) -> None:
        """Keep what is on its way, and let the producer connect again when its patience with the first of it is at an end."""
        ends = [each for end in network.connections() for each in (end, end.peer)]
        held = [end for end in ends if (end.local[0], end.remote[0]) == (self._writer.name, leader)]
        for end in held:
            network.hold(end)
        network.cut(self._writer.name, leader)
        await asyncio.sleep(_PATIENCE_MS / 1000 + guide.rng.uniform(0.0, 0.3))
        network.mend(self._writer.name, leader)
        self._sent_count = 0
        sent_count = guide.rng.randrange(1, 6)
        for _ in range(_STEPS):
            if self._sent_count >= sent_count:
                break
            await asyncio.sleep(_STEP_S)
        await guide.pause(0.03)
        for end in held:
            network.let_through(end)

    def _on_sent(self) -> None:
        self._sent_count += 1

    async def conclude(self) -> None:
        found = await self._topic.read_all(self._guides(f"{LATE}-last-reader"))
        counts = Counter(value for records in found.values() for value in records.values())
        for value in sorted(each for each, count in counts.items() if count > 1):
            self.findings.append(Violation("duplicate", f"{value} is at {_where(found, value)}"))
        for value in sorted(self._acknowledged - counts.keys()):
            self.findings.append(Violation("lost-write", f"{value} was acknowledged, and is not in {LATE}"))


def _where(found: dict[TopicPartition, dict[int, int]], value: int) -> str:
    return " and at ".join(
        f"{offset} of {partition}"
        for partition, records in found.items()
        for offset, each in records.items()
        if each == value
    )
