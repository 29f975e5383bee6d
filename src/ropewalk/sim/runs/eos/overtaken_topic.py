"""`ropewalk.aio` in the simulator, on a topic whose records are deleted before they are read.

What must hold
    spins        a consumer whose position, or what it reads ahead of it, is out of range does not ask for it again and again
    passed-over  it goes on where the log begins, and is given everything that nobody deleted
"""

import asyncio
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.for_applications import Admin
from ropewalk.client.calls.produce import Acks
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.consuming.message import Message
from ropewalk.sim.clients.content import decode_value
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.runs.cluster.stage import REST_S, Stage
from ropewalk.sim.runs.eos.client_writers import ClientPorts
from ropewalk.sim.runs.eos.guide import EosGuide
from ropewalk.sim.runs.eos.restraint import Restraint
from ropewalk.sim.runs.eos.side_topics import Guides, SideTopic

OVERTAKEN: Final = "overtaken"


class OvertakenTopic:
    def __init__(self, guides: Guides, bootstrap: str, _: Stage) -> None:
        settings = {"min.insync.replicas": "2", "retention.ms": "-1"}  # clocks jump by days
        self._topic = SideTopic(guides, bootstrap, OVERTAKEN, settings, Acks.ALL)
        self._guides = guides
        self._bootstrap = bootstrap
        self._reader = guides(f"{OVERTAKEN}-reader")
        self._restraint = Restraint(self._reader.workload.world, self._reader.name)
        self._delivered: dict[TopicPartition, set[int]] = {each: set() for each in self._topic.partitions}
        self._next: dict[TopicPartition, int] = {}
        self._deleted = dict.fromkeys(self._topic.partitions, 0)
        """Below it somebody has asked for the deletion of all records, whatever became of that."""
        self._findings: list[Violation] = []

    @property
    def findings(self) -> list[Violation]:
        return [*self._findings, *self._restraint.violations]

    async def make(self) -> None:
        await self._topic.make()

    def start(self, clients: asyncio.TaskGroup) -> None:
        clients.create_task(self._topic.write())
        clients.create_task(self._delete())
        clients.create_task(self._read())

    async def _delete(self) -> None:
        guide = self._guides(f"{OVERTAKEN}-deleter")
        while not guide.workload.is_over:
            try:
                async with Admin(self._bootstrap, ports=ClientPorts(guide)) as admin:
                    while not guide.workload.is_over:
                        await guide.pause(2.0)
                        await self._delete_some(guide, admin)
            except RopewalkError:
                await guide.pause(0.5)

    async def _delete_some(self, guide: EosGuide, admin: Admin) -> None:
        partition = guide.rng.choice(self._topic.partitions)
        offsets = list(self._topic.sound[partition])[-3:]
        if not offsets:
            return
        offset = guide.rng.choice(offsets) + 1
        self._deleted[partition] = max(self._deleted[partition], offset)
        guide.workload.operation_count += 1
        await admin.delete_records({partition: offset})

    async def _read(self) -> None:
        while not self._reader.workload.is_over:
            try:
                await self._live(self._reader)
            except RopewalkError:
                await self._reader.pause(0.3)

    async def _live(self, guide: EosGuide) -> None:
        """One record at a time, with as little read ahead as can be, and slower than they are deleted."""
        async with self._consumer(guide) as consumer:
            self._go_on(consumer)
            for _ in range(guide.rng.randrange(10, 60)):
                if guide.workload.is_over:
                    return
                guide.workload.operation_count += 1
                self._take(guide, await consumer.poll(timeout_ms=300, max_records=1))
                await guide.pause(1.5)

    async def conclude(self) -> None:
        guide = self._reader
        until_s = guide.workload.world.now_s + REST_S
        while self._missing() and guide.workload.world.now_s < until_s:
            try:
                async with self._consumer(guide) as consumer:
                    self._go_on(consumer)
                    while self._missing() and guide.workload.world.now_s < until_s:
                        self._take(guide, await consumer.poll(timeout_ms=300))
            except RopewalkError:
                await asyncio.sleep(0.3)
        for partition, offset in self._missing():
            text = f"{partition} has {self._topic.sound[partition][offset]} at {offset}, which its reader was never given"
            self._findings.append(Violation("passed-over", text))

    def _missing(self) -> list[tuple[TopicPartition, int]]:
        return [
            (partition, offset)
            for partition, sound in self._topic.sound.items()
            for offset in sound
            if offset >= self._deleted[partition] and offset not in self._delivered[partition]
        ]

    def _consumer(self, guide: EosGuide) -> Consumer:
        return self._topic.consumer(guide, max_partition_fetch_bytes=1)

    def _go_on(self, consumer: Consumer) -> None:
        consumer.assign(self._topic.partitions)
        for partition, offset in self._next.items():
            consumer.seek(partition, offset)

    def _take(self, guide: EosGuide, messages: list[Message]) -> None:
        for message in messages:
            self._restraint.on_progress()
            partition = message.topic_partition
            expected = self._next.get(partition, 0)
            sound = self._topic.sound[partition]
            if any(expected <= offset < message.offset for offset in sound):
                guide.workload.sometimes.note("a consumer of the library was overtaken by a deletion")
            self._next[partition] = message.offset + 1
            self._delivered[partition].add(message.offset)
            known = sound.get(message.offset)
            if known is not None and known != decode_value(message.value):
                text = f"{partition} gave {decode_value(message.value)} at {message.offset} for {known}"
                self._findings.append(Violation("invented", text))
