"""A node behind its Kafka door on simulated ports, and a bare connection to it.

Virtual time and an in-memory network: nothing sleeps, no socket is opened, and the node is the real one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record
from ropewalk.records.record import build as build_batch
from ropewalk.sim.machines.world import EPOCH_MS, Machine, World
from ropewalk.wire.api import Api
from ropewalk.wire.messages import create_topics, delete_topics, fetch, metadata, produce
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
T = TypeVar("T")

NODE = Address("node", 9092)
PATIENCE_MS = 60_000


class Door:
    """What a test holds: the world, the running node, and one connection."""

    def __init__(self, world: World, machine: Machine, options: NodeOptions) -> None:
        self.world = world
        self.machine = machine
        self._options = options

    node: Node
    connection: Connection

    async def open(self) -> None:
        self.node = await self.machine.start(lambda ports: life.start(load(self._options, {}), ports))
        await self._connect()

    async def restart(self) -> None:
        """kill -9, and up again."""
        self.machine.kill()
        await self.open()

    async def another(self) -> "Door":
        """The same node by another connection."""
        door = Door(self.world, self.machine, self._options)
        door.node = self.node
        await door._connect()
        return door

    async def _connect(self) -> None:
        self.connection = await Connection.open(
            self.world.network.host("client"),
            self.machine.clock,
            NODE,
            client_id="test",
            deadline_ms=self.deadline_ms,
        )

    @property
    def deadline_ms(self) -> float:
        return self.world.now_s * 1000 + PATIENCE_MS

    async def call(self, api: Api[Q, R], version: int, request: Q) -> R:
        return await self.send(api, version, request)

    def send(self, api: Api[Q, R], version: int, request: Q) -> "asyncio.Future[R]":
        return self.connection.send(api, version, request, deadline_ms=self.deadline_ms)

    async def create(self, name: str, partitions: int = 1, **settings: str) -> bytes:
        """Make a topic and answer its id; settings with underscores for dots."""
        configs = tuple(
            create_topics.CreatableTopicConfig(key.replace("_", "."), value)
            for key, value in settings.items()
        )
        request = create_topics.CreateTopicsRequest(
            (create_topics.CreatableTopic(name, partitions, 1, (), configs),)
        )
        (result,) = (await self.call(create_topics.API, 7, request)).topics
        assert result.error_code == 0, result.error_message
        return result.topic_id

    async def produce(
        self, topic: str, batch: bytes | bytearray, *, acks: int = -1, version: int = 9, partition: int = 0
    ) -> produce.PartitionProduceResponse:
        response = await self.call(produce.API, version, produce_request(topic, batch, acks, partition))
        return response.topics[0].partitions[0]

    async def fetch(
        self, topic: str, offset: int, *, partition: int = 0, max_bytes: int = 1 << 20, wait_ms: int = 0
    ) -> fetch.PartitionData:
        request = fetch_request(topic, offset, partition=partition, max_bytes=max_bytes, wait_ms=wait_ms)
        return (await self.call(fetch.API, 12, request)).topics[0].partitions[0]

    async def delete(self, name: str) -> None:
        request = delete_topics.DeleteTopicsRequest((), (name,), PATIENCE_MS)
        (result,) = (await self.call(delete_topics.API, 5, request)).topics
        assert result.error_code == 0, result.error_message

    async def topics(self) -> dict[str, metadata.MetadataResponseTopic]:
        response = await self.call(metadata.API, 12, metadata.MetadataRequest(None))
        return {topic.name or "": topic for topic in response.topics}


def at_the_door(
    story: Callable[[Door], Awaitable[T]],
    *settings: str,
    seed: int = 0,
    can_sync_everything: bool = True,
    http: str = "none",
    telemetry: bool = False,
    limit_s: float = 600,
) -> T:
    """Run `story` against a fresh node that has the given settings."""

    async def main(world: World) -> T:
        machine = world.machine("node", can_sync_everything=can_sync_everything)
        quiet = (
            "node.reserve.bytes=65536",
            *(
                ()
                if telemetry
                else (
                    "telemetry.interval.ms=0",
                    "audit.topic=false",
                )
            ),
        )
        options = NodeOptions(kafka=str(NODE), http=http, data="/data", settings=(*quiet, *settings))
        world.machine("client")
        door = Door(world, machine, options)
        await door.open()
        return await story(door)

    with World(seed) as world:
        return world.run(main(world), limit_s=limit_s)


def batch_of(
    *values: str,
    codec: Codec = Codec.NONE,
    timestamp: int = EPOCH_MS,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] | None = None,
    is_control: bool = False,
) -> bytearray:
    """A batch as a producer sends it; `producer` is id, epoch and first sequence."""
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    return build_batch(
        [Record(timestamp=timestamp, key=key, value=value.encode()) for value in values],
        codec=codec,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        base_sequence=sequence,
        is_control=is_control,
    )


def produce_request(
    topic: str, batch: bytes | bytearray, acks: int = -1, partition: int = 0, topic_id: bytes = bytes(16)
) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(partition, bytes(batch))
    return produce.ProduceRequest(None, acks, 30_000, (produce.TopicProduceData(topic, topic_id, (data,)),))


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_bytes: int = 1 << 20,
    wait_ms: int = 0,
    min_bytes: int = 1,
    topic_id: bytes = bytes(16),
    epoch: int = -1,
) -> fetch.FetchRequest:
    asked = fetch.FetchPartition(
        partition, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(fetch.FetchTopic(topic, topic_id, (asked,)),),
    )
