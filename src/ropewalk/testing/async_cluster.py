"""A cluster for tests that await: one node on the running loop, asyncio's or uvloop's.

    async with AsyncCluster() as cluster:
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer: ...

What a reader could get wrong
    Without a data directory the node's disk is memory. It belongs to the cluster, not to the node, so records
    survive `restart` and `kill` as they would on a disk. With the setting `storage=memory` they do not.
    The node shares the caller's loop: a client that blocks that loop waits for an answer that cannot come. Such a
    client wants `Cluster`.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final, Self

from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import DISK_THREADS
from ropewalk.base.ports import Disk
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.administration.groups import Groups
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import RemoteError
from ropewalk.client.queues.administration import Queues, open_queues
from ropewalk.node import life
from ropewalk.node.life import Node
from ropewalk.records.record import Record
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.disk import OsDisk
from ropewalk.runtime.memory_disk import MemoryDisk
from ropewalk.runtime.network import TcpNetwork
from ropewalk.runtime.pool import ThreadPool
from ropewalk.runtime.ports import SystemClientPorts, SystemPorts
from ropewalk.testing.moved_clock import MovedClock
from ropewalk.testing.reserved_port import ReservedPort
from ropewalk.testing.settings import SettingValue, node_config, queue_attributes, written_out
from ropewalk.wire.error_code import ErrorCode

_MEMORY_PATH: Final = "/ropewalk"
_QUEUES_MS: Final = 30_000
"""For one thing that is asked of the node about queues."""


class NotRunning(RuntimeError):
    """The cluster has not been entered, or its node has been killed."""


class AsyncCluster:
    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        **named: SettingValue,
    ) -> None:
        """`data` is a directory that keeps everything; settings are Kafka's, as a mapping or as keywords
        (`num_partitions=3` is `num.partitions`). Both are checked on entry, with `InvalidSetting`."""
        self._data_path = None if data is None else os.path.abspath(data)
        self._settings = written_out(settings or {}, named)
        self._memory = MemoryDisk()
        self._clock = MovedClock()
        self._port: ReservedPort | None = None
        self._http_port: ReservedPort | None = None
        self._sqs_port: ReservedPort | None = None
        self._running: _Running | None = None

    async def __aenter__(self) -> Self:
        self._port, self._http_port, self._sqs_port = ReservedPort(), ReservedPort(), ReservedPort()
        try:
            await self._start()
        except BaseException:
            self._release_ports()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Raises what the node's background work failed with, if it did."""
        try:
            await self._stop()
        finally:
            self._release_ports()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for `bootstrap.servers`; the same for as long as the cluster is open."""
        if self._port is None:
            raise NotRunning("the cluster has no address yet: enter it first, with Cluster() as cluster")
        return self._port.address

    @property
    def http(self) -> str:
        """http://HOST:PORT, where `/metrics` and `/readyz` are; the same for as long as the cluster is open."""
        if self._http_port is None:
            raise NotRunning("the cluster has no address yet: enter it first, with Cluster() as cluster")
        return f"http://{self._http_port.address}"

    @property
    def sqs(self) -> str:
        """http://HOST:PORT, where the SQS API is; the same for as long as the cluster is open."""
        if self._sqs_port is None:
            raise NotRunning("the cluster has no address yet: enter it first, with Cluster() as cluster")
        return f"http://{self._sqs_port.address}"

    async def restart(self) -> None:
        """Stop the node in order, unless it was killed, and start it again at the same address."""
        await self._stop()
        await self._start()

    async def kill(self) -> None:
        """End the node as a crash would: nobody is answered, nothing is tidied up. `restart` brings it back."""
        running, self._running = self._the_running(), None
        await running.kill()

    def freeze(self) -> None:
        """The node hangs: connections stay open and can still be made, and nothing is answered until `thaw`."""
        self._the_running().node.pause()

    def thaw(self) -> None:
        """What clients have asked meanwhile is answered, in order."""
        self._the_running().node.resume()

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """So much time has passed for the node, also when it is started again. What is kept by its age is gone at the node's next look:
        `log.retention.check.interval.ms` for records, `offsets.retention.check.interval.ms` for groups' offsets. Messages of queues become
        visible, and what was to be remembered for a time is forgotten, at once."""
        self._clock.advance(
            timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        )
        if self._running is not None:
            self._running.node.on_clock_moved()

    async def create_topic(self, name: str, *, partitions: int = 1, **settings: SettingValue) -> str:
        """The topic's name. Settings are Kafka's, with underscores: `cleanup_policy="compact"`."""
        topic = NewTopic(name, partitions, settings=tuple(written_out({}, settings).items()))
        async with self._client() as client:
            _raise_first((await Admin(client).create_topics([topic])).values())
        return name

    async def delete_topics(self, names: Iterable[str]) -> None:
        async with self._client() as client:
            _raise_first((await Admin(client).delete_topics(list(names))).values())

    async def topics(self) -> list[str]:
        """The names of all topics, sorted, without those that the node keeps for itself."""
        async with self._client() as client:
            view = await client.metadata()
        return sorted(topic.name for topic in view.topics if not topic.is_internal)

    async def groups(self) -> list[str]:
        """The names of all consumer groups, sorted."""
        async with self._client() as client:
            return [each.group for each in await Groups(client).list()]

    async def delete_groups(self, names: Iterable[str]) -> list[str]:
        """Delete groups and their offsets; answers those that still have members and are therefore kept."""
        async with self._client() as client:
            outcomes = await Groups(client).delete(names)
        _raise_first(
            error
            for error in outcomes.values()
            if error is not None and error.code is not ErrorCode.NON_EMPTY_GROUP
        )
        return [name for name, error in outcomes.items() if error is not None]

    async def create_queue(self, name: str, **attributes: SettingValue) -> str:
        """The queue's address. Attributes are those of SQS, with underscores: `visibility_timeout=5`; a name that ends in .fifo makes a FIFO queue."""
        async with self._queues() as queues:
            return await queues.create(name, queue_attributes(name, attributes))

    async def delete_queues(self, names: Iterable[str]) -> None:
        async with self._queues() as queues:
            for name in names:
                await queues.delete(name)

    async def queues(self) -> list[str]:
        """The names of all queues, sorted."""
        async with self._queues() as queues:
            return await queues.names()

    async def records(self, topic: str, *, partition: int | None = None) -> list[Record]:
        """All that the topic holds at this moment, in order, partition by partition; or one partition's."""
        async with self._client() as client:
            while True:
                try:
                    return await _held(client, topic, partition)
                except RemoteError as error:
                    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise
                    # What was there when it was looked at has been removed: the topic begins later.

    async def _start(self) -> None:
        config = node_config(
            self._settings,
            kafka=self.bootstrap,
            http=self.http.removeprefix("http://"),
            sqs=self.sqs.removeprefix("http://"),
            data_path=self._data_path or _MEMORY_PATH,
        )
        disk = self._memory if self._data_path is None else OsDisk(self._data_path)
        pool = ThreadPool(DISK_THREADS)
        ports = SystemPorts(self._clock, random.SystemRandom(), disk, pool, TcpNetwork())
        try:
            node = await life.start(config, ports)
        except BaseException:
            pool.stop()
            raise
        self._running = _Running(node, disk, pool)

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    def _release_ports(self) -> None:
        for port in (self._port, self._http_port, self._sqs_port):
            if port is not None:
                port.release()

    def _the_running(self) -> "_Running":
        if self._running is None:
            raise NotRunning("there is no node: enter the cluster first, or restart() it after kill()")
        return self._running

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        self._the_running()
        addresses = parse_addresses(self.bootstrap)
        async with Client(TcpNetwork(), SystemClock(), random.SystemRandom(), addresses) as client:
            yield client
        await _let_sockets_close()

    @asynccontextmanager
    async def _queues(self) -> AsyncIterator[Queues]:
        self._the_running()
        async with open_queues(
            SystemClientPorts(),
            endpoint=self.sqs,
            bootstrap=None,
            timeout_ms=_QUEUES_MS,
            patience_ms=_QUEUES_MS,
        ) as queues:
            yield queues
        await _let_sockets_close()


async def _held(client: Client, topic: str, partition: int | None) -> list[Record]:
    indexes = [each.index for each in (await client.topic(topic)).partitions]
    found: dict[int, list[Record]] = {
        index: [] for index in indexes if partition is None or index == partition
    }
    starts = await client.list_offsets(topic, dict.fromkeys(found, OffsetQuery.EARLIEST))
    ends = await client.list_offsets(topic, dict.fromkeys(found, OffsetQuery.LATEST))
    consumer = Consumer(
        client,
        {
            TopicPartition(topic, index): starts[index].offset
            for index in found
            if starts[index].offset < ends[index].offset
        },
    )
    while consumer.positions:
        for batch in await consumer.poll():
            index = batch.partition.partition
            found[index] += [record for record in batch.records if record.offset < ends[index].offset]
            if consumer.positions[batch.partition] >= ends[index].offset:
                del consumer.positions[batch.partition]
    return [record for records in found.values() for record in records]


class _Running:
    """A node, and what it was given that must be taken back."""

    def __init__(self, node: Node, disk: Disk, pool: ThreadPool) -> None:
        self.node = node
        self._disk = disk
        self._pool = pool

    async def stop(self) -> None:
        try:
            if self.node.failed.done():
                raise self.node.failed.result()
            await self.node.stop()
        except BaseException:
            await self.kill()
            raise
        await self.node.kill()  # a client that does not take its last answers holds nobody up
        self._pool.stop()
        await _let_sockets_close()

    async def kill(self) -> None:
        await self.node.kill()
        self._pool.stop()
        self._disk.close()
        await _let_sockets_close()


async def _let_sockets_close() -> None:
    """A transport that was told to close does so in the next turns of the loop; two for asyncio, one more for uvloop."""
    for _ in range(3):
        await asyncio.sleep(0)


def _raise_first(outcomes: Iterable[Exception | None]) -> None:
    for error in outcomes:
        if error is not None:
            raise error
