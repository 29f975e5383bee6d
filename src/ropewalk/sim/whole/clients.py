"""Producers and consumers of a simulated cluster, made of the real client.

What a reader could get wrong
    A sender that hears no answer, or an error that leaves open what was done, is never heard of again: another goes on under
    another name. What it sent may turn up late, and in no order with what came after.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from ropewalk.base.errors import OffsetOutOfRange, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.client.address import Address
from ropewalk.client.client import Client
from ropewalk.client.consumer import Consumer
from ropewalk.client.list_offsets import OffsetQuery
from ropewalk.client.produce import Acks
from ropewalk.client.producer import Producer
from ropewalk.client.settings import ClientSettings
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.sim.whole.verdict import Place, Told
from ropewalk.sim.world import World

PATIENCE: Final = ClientSettings(
    request_timeout_ms=5_000, metadata_max_age_ms=2_000, connect_timeout_ms=1_000
)


class Sender:
    """Sends one record after the other, each to one partition, until it is time to end."""

    def __init__(
        self,
        name: str,
        world: World,
        clock: Clock,
        bootstrap: tuple[Address, ...],
        places: list[Place],
        told: Told,
        *,
        numbered: bool,
        acks: Acks,
    ) -> None:
        self._name = name
        self._world = world
        self._clock = clock
        self._bootstrap = bootstrap
        self._places = places
        self._told = told
        self._numbered = numbered
        self._acks = acks
        self._rng = world.rng_for(name)
        self._life = 0

    async def run(self, until_s: float) -> None:
        while self._world.now_s < until_s:
            self._life += 1
            client = client_of(self._name, self._world, self._clock, self._bootstrap)
            try:
                await client.metadata(())
                await self._send_all(client, until_s)
            except RopewalkError:
                self._told.unknown_count += 1
                await asyncio.sleep(self._rng.uniform(0.0, 0.5))
            finally:
                client.close()

    async def _send_all(self, client: Client, until_s: float) -> None:
        """Until something goes wrong; what was under way then may or may not have happened."""
        topic, partition = self._rng.choice(self._places)
        producer = Producer(client, topic, acks=self._acks)
        number = 0
        while self._world.now_s < until_s:
            count = self._rng.randrange(1, 4)
            values = [f"{self._name}.{self._life}/{number + each}".encode() for each in range(count)]
            number += count
            self._told.sent_count += count
            records = [Record(timestamp=self._clock.now_ms(), key=None, value=value) for value in values]
            if self._numbered:
                (delivered,) = await producer.send(records, partition=partition)
                base_offset = delivered.base_offset
            else:
                batch = build(records, codec=Codec.NONE)
                base_offset = (await client.produce(topic, partition, batch, acks=self._acks)).base_offset
            if self._acks is Acks.ALL:
                for each, value in enumerate(values):
                    self._told.on_acknowledged((topic, partition), base_offset + each, value)
            await asyncio.sleep(self._rng.uniform(0.0, 0.1))


class Reader:
    """Reads everything from the start, over and over, and tells what it saw."""

    def __init__(
        self,
        name: str,
        world: World,
        clock: Clock,
        bootstrap: tuple[Address, ...],
        places: list[Place],
        on_read: Callable[[Place, int, bytes], None],
    ) -> None:
        self._name = name
        self._world = world
        self._clock = clock
        self._bootstrap = bootstrap
        self._places = places
        self._on_read = on_read
        self._rng: random.Random = world.rng_for(name)

    async def run(self, until_s: float) -> None:
        while self._world.now_s < until_s:
            client = client_of(self._name, self._world, self._clock, self._bootstrap)
            try:
                await self._follow(client, until_s)
            except (RopewalkError, OffsetOutOfRange):
                await asyncio.sleep(self._rng.uniform(0.0, 0.5))
            finally:
                client.close()

    async def read_all(self) -> None:
        """Once, from the start to where each partition ends now. Raises where it cannot."""
        client = client_of(self._name, self._world, self._clock, self._bootstrap)
        try:
            ends: dict[Place, int] = {}
            for topic, index in self._places:
                listed = await client.list_offsets(topic, {index: OffsetQuery.LATEST})
                ends[topic, index] = listed[index].offset
            consumer = self._consumer(client)
            while any(
                consumer.positions[TopicPartition(*place)] < end_offset for place, end_offset in ends.items()
            ):
                await self._poll(consumer)
        finally:
            client.close()

    async def _follow(self, client: Client, until_s: float) -> None:
        consumer = self._consumer(client)
        begins_again_s = self._world.now_s + self._rng.uniform(2.0, 10.0)
        while self._world.now_s < min(until_s, begins_again_s):
            await self._poll(consumer)

    def _consumer(self, client: Client) -> Consumer:
        return Consumer(client, {TopicPartition(topic, index): 0 for topic, index in self._places})

    async def _poll(self, consumer: Consumer) -> None:
        for consumed in await consumer.poll(wait_ms=200):
            for record in consumed.records:
                place = (consumed.partition.topic, consumed.partition.partition)
                self._on_read(place, record.offset, record.value or b"")


def client_of(name: str, world: World, clock: Clock, bootstrap: tuple[Address, ...]) -> Client:
    return Client(world.network.host(name), clock, world.rng_for(f"client of {name}"), bootstrap, PATIENCE)
