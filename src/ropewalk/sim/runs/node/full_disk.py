"""A disk that is full and stays so until somebody makes room: by deleting a topic or records, by retention, or from outside.

A topic of some size is written first, then nothing is left of the disk. Meanwhile everything must be readable, and the node
must start again however it ended. When what is to make room has been done, records must be taken within a bounded time.
"""

import asyncio
import random
from enum import Enum
from typing import Final

from ropewalk.records.record import Record, build
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.workload import TOPIC_BY_NAME_VERSION_MAX, Caller, Workload
from ropewalk.sim.machines.world import Machine
from ropewalk.sim.runs.node.keeper import Keeper
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics, delete_records, delete_topics, fetch, produce

BATCH_BYTES: Final = 45_000
BATCH_COUNT: Final = 6
"""More than the node keeps back of its disk, twice over: it must be whole again, with as much beside it."""

EMPTIED_S: Final = 12.0
"""Within this time of being allowed to, a node has emptied its disk, restarts included."""


class Way(Enum):
    """How a disk comes to have room. The value is for the counter."""

    TOPIC = "a full disk was emptied by deleting a topic"
    RECORDS = "a full disk was emptied by deleting records"
    RETENTION = "a full disk was emptied by retention"
    OUTSIDE = "there was room again on a full disk"


class StayedFull(Exception):
    """What makes room was done, and the node does not take records."""


class FullDisk:
    def __init__(self, workload: Workload, machine: Machine, keeper: Keeper, rng: random.Random) -> None:
        self._workload = workload
        self._machine = machine
        self._keeper = keeper
        self._rng = rng
        self._caller = Caller(workload, "filler")
        self._count = 0

    async def befall(self) -> None:
        self._count += 1
        way, large, small = self._rng.choice(list(Way)), f"large-{self._count}", f"small-{self._count}"
        platters = self._machine.platters
        if not await self._prepare(large, small, way):
            return
        try:
            platters.capacity_bytes = platters.used_bytes + self._rng.choice([0, 10, 300])
            self._workload.sometimes.note("a disk stayed full")
            await asyncio.sleep(self._rng.uniform(0.2, 2.0))
            await self._strike()
            began_s = self._workload.world.now_s
            if way is Way.OUTSIDE:
                platters.make_room()
            while (link := await self._caller.connect()) is not None:
                try:
                    if await self._go_on(link, way, large, small):
                        self._workload.sometimes.note(way.value)
                        return
                except LinkLost:
                    await self._caller.pause(0.2)
                finally:
                    link.close()
                if self._workload.world.now_s - began_s > EMPTIED_S:
                    raise StayedFull(f"{EMPTIED_S} s after {way.name}")
        finally:
            platters.make_room()

    async def _prepare(self, large: str, small: str, way: Way) -> bool:
        """Whether both topics are there, and the large one has its records."""
        link = await self._caller.connect()
        if link is None:
            return False
        try:
            if not link.offers(delete_records.API) or not link.offers(delete_topics.API):
                return False
            retention_ms = "2000" if way is Way.RETENTION else "-1"
            if not (await self._create(link, large, retention_ms) and await self._create(link, small, "-1")):
                return False
            for _ in range(BATCH_COUNT):
                if await self._produce(link, large, BATCH_BYTES) != ErrorCode.NONE:
                    return False
        except LinkLost:
            return False
        finally:
            link.close()
        return True

    async def _strike(self) -> None:
        """It may be gone meanwhile, and has to come back."""
        blow = self._rng.choice(["none", "none", "kill", "cut power", "stop"])
        if blow == "none":
            return
        if blow == "kill":
            self._machine.kill()
        elif blow == "cut power":
            self._machine.cut_power()
        else:
            await self._keeper.stop()
        for _ in range(int(EMPTIED_S / 0.1)):
            if self._machine.has_started:
                self._workload.sometimes.note("a node started with a full disk")
                return
            await asyncio.sleep(0.1)

    async def _go_on(self, link: Link, way: Way, large: str, small: str) -> bool:
        """One attempt; True when a record was taken."""
        if way is Way.TOPIC:
            state = delete_topics.DeleteTopicState(name=large)
            await link.send(
                delete_topics.API,
                link.newest_version(delete_topics.API),
                delete_topics.DeleteTopicsRequest(topics=(state,), topic_names=(large,), timeout_ms=3000),
            )
        elif way is Way.RECORDS:
            await self._read(link, large)
            asked = delete_records.DeleteRecordsTopic(large, (delete_records.DeleteRecordsPartition(0, -1),))
            await link.send(
                delete_records.API,
                link.newest_version(delete_records.API),
                delete_records.DeleteRecordsRequest((asked,), 3000),
            )
        await self._caller.pause(0.5)
        return await self._produce(link, small, 100) == ErrorCode.NONE

    async def _create(self, link: Link, name: str, retention_ms: str) -> bool:
        configs = (create_topics.CreatableTopicConfig("retention.ms", retention_ms),)
        topic = create_topics.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, configs=configs
        )
        response = await link.send(
            create_topics.API,
            link.newest_version(create_topics.API),
            create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=3000),
        )
        return bool(response.topics[0].error_code == ErrorCode.NONE)

    async def _produce(self, link: Link, name: str, size_bytes: int) -> ErrorCode:
        record = Record(timestamp=self._machine.clock.now_ms(), value=self._rng.randbytes(size_bytes))
        data = produce.PartitionProduceData(0, bytes(build([record])))
        request = produce.ProduceRequest(
            None, -1, 3000, (produce.TopicProduceData(name, partitions=(data,)),)
        )
        version = min(TOPIC_BY_NAME_VERSION_MAX, link.newest_version(produce.API))
        response = await link.send(produce.API, version, request)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def _read(self, link: Link, name: str) -> None:
        asked = fetch.FetchPartition(index=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = fetch.FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=(fetch.FetchTopic(name, partitions=(asked,)),)
        )
        version = min(TOPIC_BY_NAME_VERSION_MAX, link.newest_version(fetch.API))
        (answer,) = (await link.send(fetch.API, version, request)).topics[0].partitions
        if answer.error_code == ErrorCode.NONE and answer.records:
            self._workload.sometimes.note("a full disk was read from")
