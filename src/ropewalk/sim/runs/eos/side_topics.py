"""`ropewalk.aio` in the simulator, on topics that no other client could read: one with batches that cannot be opened, and one that may
lose what was acknowledged, because a replica that was not in step may lead it.

What must hold
    passed-over      a group is given every record that was acknowledged, whatever lies between them, and is told of every batch that cannot be
                     opened with its position still at it
    other-history    who has read to the end has seen, last, what stands there: whoever was carried into another history goes back
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.for_applications import Admin
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.produce import Acks
from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.errors import UnreadableBatch
from ropewalk.metadata.image import Partition
from ropewalk.records.batch import HEADER_BYTES, stamp_crc
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.sim.clients.content import decode_value, encode_value
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.runs.cluster.stage import REST_S, Restless, Stage
from ropewalk.sim.runs.eos.client_writers import ClientPorts, live_again
from ropewalk.sim.runs.eos.guide import EosGuide

POISONED: Final = "poisoned"
UNCLEAN: Final = "unclean"
_GROUP: Final = "poison-readers"
_PARTITIONS: Final = 2
_PATIENCE_STEPS: Final = 150
_UNREADABLE_SHARE: Final = 0.15
_CLIENT_SETTINGS: Final = ClientSettings(request_timeout_ms=1500, connect_timeout_ms=800)

Guides = Callable[[str], EosGuide]


class SideTopic:
    """A topic with one who writes batches of one record to it, each known by its number."""

    def __init__(
        self,
        guides: Guides,
        bootstrap: str,
        name: str,
        settings: dict[str, str],
        acks: Acks,
        *,
        replicas: int = 3,
    ) -> None:
        self._guides = guides
        self._bootstrap = bootstrap
        self._name = name
        self._settings = settings
        self._acks = acks
        self._replicas = replicas
        self.partitions = [TopicPartition(name, index) for index in range(_PARTITIONS)]
        self.sound: dict[TopicPartition, dict[int, int]] = {each: {} for each in self.partitions}
        """What was acknowledged, by offset."""

    async def make(self) -> None:
        ports = ClientPorts(self._guides(f"{self._name}-maker"))
        async with Admin(self._bootstrap, ports=ports) as admin:
            await admin.create_topic(
                self._name,
                partitions=_PARTITIONS,
                replication_factor=self._replicas,
                settings=self._settings,
            )

    async def write(self, *, unreadable_share: float = 0.0) -> None:
        guide = self._guides(f"{self._name}-writer")
        ports = ClientPorts(guide)
        addresses = parse_addresses(self._bootstrap)
        async with Client(ports.network, ports.clock, ports.rng, addresses, _CLIENT_SETTINGS) as client:
            while not guide.workload.is_over:
                partition, value = guide.rng.choice(self.partitions), guide.workload.next_value()
                is_unreadable = guide.rng.random() < unreadable_share
                batch = _unreadable() if is_unreadable else _batch(value, guide.clock.now_ms())
                guide.workload.operation_count += 1
                try:
                    produced = await client.produce(
                        partition.topic, partition.partition, batch, acks=self._acks
                    )
                except RopewalkError:
                    await guide.pause(0.5)
                    continue
                if not is_unreadable:
                    self.sound[partition][produced.base_offset] = value
                await guide.pause(0.3)

    async def write_one(self, guide: EosGuide, partition: TopicPartition, *, within_s: float) -> int:
        """Where it is. In a cluster in which nobody can write this is `Restless`."""
        ports, world = ClientPorts(guide), guide.workload.world
        until_s = world.now_s + within_s
        addresses = parse_addresses(self._bootstrap)
        async with Client(ports.network, ports.clock, ports.rng, addresses, _CLIENT_SETTINGS) as client:
            while True:
                batch = _batch(guide.workload.next_value(), guide.clock.now_ms())
                try:
                    produced = await client.produce(
                        partition.topic, partition.partition, batch, acks=self._acks
                    )
                except RopewalkError as error:
                    if world.now_s > until_s:
                        raise Restless(f"{guide.name} cannot write to {partition}: {error}") from error
                    await asyncio.sleep(0.2)
                else:
                    return produced.base_offset

    def consumer(
        self,
        guide: EosGuide,
        group: str | None = None,
        *,
        client_rack: str = "",
        max_partition_fetch_bytes: int = 1 << 20,
    ) -> Consumer:
        return Consumer(
            self._bootstrap,
            group=group,
            ports=ClientPorts(guide),
            client_id=guide.name,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=200,
            session_timeout_ms=1500,
            heartbeat_interval_ms=300,
            fetch_max_wait_ms=100,
            request_timeout_ms=1500,
            default_api_timeout_ms=3000,
            connect_timeout_ms=800,
            max_poll_records=guide.rng.choice([1, 10, 500]),
            client_rack=client_rack,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
        )

    async def read_all(self, guide: EosGuide) -> dict[TopicPartition, dict[int, int]]:
        """Every record that is there, by its offset."""
        there: dict[TopicPartition, dict[int, int]] = {each: {} for each in self.partitions}
        async with self.consumer(guide) as consumer:
            consumer.assign(self.partitions)
            quiet_count = 0
            while quiet_count < 30:
                messages = await consumer.poll(timeout_ms=200)
                quiet_count = 0 if messages else quiet_count + 1
                for message in messages:
                    there[message.topic_partition][message.offset] = decode_value(message.value)
        return there


class TopicOfItsOwn(Protocol):
    """A topic that has clients of its own, and what they found."""

    async def make(self) -> None: ...

    def start(self, clients: asyncio.TaskGroup) -> None: ...

    async def conclude(self) -> None:
        """When everything is healed: read the rest, and judge."""

    @property
    def findings(self) -> list[Violation]: ...


class PoisonedTopic:
    def __init__(self, guides: Guides, bootstrap: str, _: Stage) -> None:
        settings = {"records.validate": "header", "min.insync.replicas": "2"}
        self._topic = SideTopic(guides, bootstrap, POISONED, settings, Acks.ALL)
        self._guides = guides
        self._delivered: dict[TopicPartition, set[int]] = {each: set() for each in self._topic.partitions}
        self._passed: dict[TopicPartition, set[int]] = {each: set() for each in self._topic.partitions}
        self._told: set[tuple[TopicPartition, int]] = set()
        self.findings: list[Violation] = []

    def start(self, clients: asyncio.TaskGroup) -> None:
        clients.create_task(self._topic.write(unreadable_share=_UNREADABLE_SHARE))
        clients.create_task(self._read())

    async def make(self) -> None:
        await self._topic.make()

    async def _read(self) -> None:
        guide = self._guides(f"{POISONED}-reader")

        def is_enough() -> bool:
            return guide.rng.random() < 0.01 or guide.workload.is_over

        await live_again(guide, lambda: self._live(guide, until=is_enough), pause_s=0.3)

    async def conclude(self) -> None:
        """Read the rest, and see that nothing is missing."""
        guide = self._guides(f"{POISONED}-last-reader")
        until_s = guide.workload.world.now_s + REST_S

        def is_over() -> bool:
            return self._is_complete() or guide.workload.world.now_s > until_s

        while not is_over():
            try:
                await self._live(guide, until=is_over)
            except RopewalkError:
                await asyncio.sleep(0.3)
        self._judge()

    def _judge(self) -> None:
        for partition, sound in self._topic.sound.items():
            for offset in sorted(set(sound) - self._delivered[partition]):
                text = f"{partition} has {sound[offset]} at {offset}, which the group was never given"
                self.findings.append(Violation("passed-over", text))

    def _is_complete(self) -> bool:
        return all(
            not sound or max(sound) in self._delivered[each] or max(sound) in self._passed[each]
            for each, sound in self._topic.sound.items()
        )

    async def _live(self, guide: EosGuide, *, until: Callable[[], bool]) -> None:
        async with self._topic.consumer(guide, _GROUP) as consumer:
            consumer.subscribe(POISONED)
            while not until():
                guide.workload.operation_count += 1
                try:
                    for message in await consumer.poll(timeout_ms=200):
                        self._on_message(message.topic_partition, message.offset, decode_value(message.value))
                except UnreadableBatch as error:
                    self._on_unreadable(guide, consumer, error)
                await guide.pause(0.1)

    def _on_message(self, partition: TopicPartition, offset: int, value: int) -> None:
        self._delivered[partition].add(offset)
        # Whoever polls on is past everything below, by its own account.
        self._passed[partition].update(each for each in self._topic.sound[partition] if each <= offset)
        known = self._topic.sound[partition].get(offset)
        if known is not None and known != value:
            self.findings.append(Violation("invented", f"{partition} gave {value} at {offset} for {known}"))

    def _on_unreadable(self, guide: EosGuide, consumer: Consumer, error: UnreadableBatch) -> None:
        note, partition = guide.workload.sometimes.note, error.partition
        note("a batch that cannot be opened was met")
        position = consumer.position(partition)
        if position is None or position > error.base_offset or error.end_offset is None:
            text = f"{partition} is read from {position}, and {error.base_offset} cannot be opened"
            self.findings.append(Violation("passed-over", text))
            return
        if guide.rng.random() < 0.5:
            consumer.seek(partition, error.end_offset)


class UncleanTopic:
    def __init__(self, guides: Guides, bootstrap: str, stage: Stage) -> None:
        self._stage = stage
        settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        self._topic = SideTopic(guides, bootstrap, UNCLEAN, settings, Acks.LEADER, replicas=2)
        self._guides = guides
        self._seen: dict[TopicPartition, dict[int, int]] = {each: {} for each in self._topic.partitions}
        self._next: dict[TopicPartition, int] = {}
        self._consumer: Consumer | None = None
        self._is_carried = False
        """Nothing is read until the other history is as long as the former: until then only its end would be out of range."""
        self.findings: list[Violation] = []

    def start(self, clients: asyncio.TaskGroup) -> None:
        clients.create_task(self._topic.write())
        clients.create_task(self._read())
        clients.create_task(self._carry_off(self._guides(f"{UNCLEAN}-fate"), self._stage))

    async def make(self) -> None:
        await self._topic.make()

    async def _carry_off(self, guide: EosGuide, stage: Stage) -> None:
        """Take a replica away until the leader goes on alone, then the leader, and have the replica lead in its place."""
        await asyncio.sleep(guide.rng.uniform(2, 8))
        partition = guide.rng.choice(self._topic.partitions)

        def facts() -> Partition:
            (topic,) = (each for each in stage.judge.image.topics.values() if each.name == partition.topic)
            return topic.partitions[partition.partition]

        leader = facts().leader
        others = [each for each in facts().replicas if each != leader and not stage.members.holds_home(each)]
        if leader is None or stage.members.holds_home(leader) or not others:
            return
        ahead, away = stage.members.by_id[leader], [stage.members.by_id[each] for each in others]
        try:
            for member in away:
                member.is_held_down = True
                member.machine.kill()
            await _until(lambda: facts().isr == (leader,) or facts().leader != leader)
            await asyncio.sleep(2)
            self._is_carried = True
            ahead.is_held_down = True
            ahead.machine.kill()
            away[0].is_held_down = False
            await _until(lambda: facts().leader not in (None, leader))
            await asyncio.sleep(6)
        finally:
            self._is_carried = False
            for member in (ahead, *away):
                member.is_held_down = False

    async def _read(self) -> None:
        """One consumer for the whole of the run: only who remembers can be wrong."""
        guide = self._guides(f"{UNCLEAN}-reader")
        while self._consumer is None:
            consumer = self._topic.consumer(guide)
            try:
                await consumer.start()
            except RopewalkError:
                await guide.pause(0.5)
                continue
            self._consumer = consumer
            consumer.assign(self._topic.partitions)
        while not guide.workload.is_over:
            await self._poll(guide, self._consumer)
            await guide.pause(0.2)

    async def _poll(self, guide: EosGuide, consumer: Consumer) -> int:
        guide.workload.operation_count += 1
        (consumer.pause if self._is_carried else consumer.resume)(*self._topic.partitions)
        try:
            messages = await consumer.poll(timeout_ms=200)
        except RopewalkError:
            await asyncio.sleep(0.2)
            return 1
        for message in messages:
            partition = message.topic_partition
            if message.offset < self._next.get(partition, 0):
                guide.workload.sometimes.note("a consumer of the library was carried into another history")
            self._next[partition] = message.offset + 1
            self._seen[partition][message.offset] = decode_value(message.value)
        return len(messages)

    async def conclude(self) -> None:
        """Read to the end with the consumer of the run, and all of it with another; what both have must be the same."""
        guide, consumer = self._guides(f"{UNCLEAN}-last-reader"), self._consumer
        assert consumer is not None, "the run was too short for a consumer to start"
        quiet_count = 0
        while quiet_count < 30:
            quiet_count = 0 if await self._poll(guide, consumer) else quiet_count + 1
        await consumer.close()
        for partition, there in (await self._topic.read_all(guide)).items():
            for offset, value in there.items():
                seen = self._seen[partition].get(offset)
                if seen != value:
                    text = f"{partition} has {value} at {offset}, and its reader saw {seen}"
                    self.findings.append(Violation("other-history", text))


async def _until(condition: Callable[[], bool]) -> None:
    """Or long enough: other trouble may be in the way."""
    for _ in range(_PATIENCE_STEPS):
        if condition():
            return
        await asyncio.sleep(0.1)


def _batch(value: int, now_ms: int) -> bytearray:
    return build([Record(timestamp=now_ms, value=encode_value(value))], codec=Codec(value % len(Codec)))


def _unreadable() -> bytearray:
    """Under a true CRC: only who opens it can tell."""
    batch = build([Record(timestamp=0, value=b"x" * 100)], codec=Codec.GZIP)
    batch[HEADER_BYTES:] = bytes(len(batch) - HEADER_BYTES)
    stamp_crc(memoryview(batch))
    return batch
