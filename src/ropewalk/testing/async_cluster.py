"""A cluster for tests that await: one node on the running loop, asyncio's or uvloop's, or several.

    async with AsyncCluster() as cluster:
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer: ...

What a reader could get wrong
    Without a data directory the node's disk is memory. It belongs to the cluster, not to the node, so records
    survive `restart` and `kill` as they would on a disk. With the setting `storage=memory` they do not.
    The node shares the caller's loop: a client that blocks that loop waits for an answer that cannot come. Such a
    client wants `Cluster`.
    With several nodes there is one more, which keeps the metadata and decides, and which no client hears of: so any of the others may go.
"""

import asyncio
import os
import random
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Final, Self

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.ports import Network
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.administration.groups import Groups
from ropewalk.client.administration.membership import ClusterViewer
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.connections.address import Address, parse_addresses
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import RemoteError
from ropewalk.client.queues.administration import Queues, open_queues
from ropewalk.records.record import Record
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.testing.member import Member, NotRunning, let_sockets_close
from ropewalk.testing.moved_clock import MovedClock
from ropewalk.testing.settings import Among, SettingValue, node_config, queue_attributes, written_out
from ropewalk.testing.wires import Wires
from ropewalk.wire.error_code import ErrorCode

NODES_MAX: Final = 9
"""All of them share one process and its loop."""
_MEMORY_PATH: Final = "/ropewalk"
_QUEUES_MS: Final = 30_000
"""For one thing that is asked of the node about queues."""
_REPLICAS: Final = 3
_SECRET_BYTES: Final = 16
_AGAIN_S: Final = 0.02
_TOGETHER_S: Final = 60


class AsyncCluster:
    def __init__(
        self,
        *,
        nodes: int = 1,
        data: str | os.PathLike[str] | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        **named: SettingValue,
    ) -> None:
        """`nodes` are numbered from 0 on. `data` is a directory that keeps everything; settings are Kafka's, as a mapping or as keywords
        (`num_partitions=3` is `num.partitions`). Both are checked on entry, with `InvalidSetting`."""
        if not 1 <= nodes <= NODES_MAX:
            raise ValueError(f"nodes={nodes}: there may be 1 to {NODES_MAX} of them")
        self._count = nodes
        self._data_path = None if data is None else os.path.abspath(data)
        self._settings = written_out(settings or {}, named)
        self._clock = MovedClock()
        self._members: list[Member] = []
        """In the order of their numbers; of several the last keeps the metadata."""
        self._wires = Wires()
        self._networks: dict[NodeId, Network] = {}
        self._secret = secrets.token_hex(_SECRET_BYTES)

    async def __aenter__(self) -> Self:
        self._members = [self._member(NodeId(number)) for number in range(self._count_with_keeper)]
        try:
            for member in self._members:
                port = int(member.peer.address.rpartition(":")[2])
                self._networks[member.node_id] = self._wires.add(member.node_id, port)
            for member in reversed(self._members):  # who decides comes first
                await self._start(member)
            await self._until_all_are_there()
        except BaseException:
            try:
                await self._end()
            finally:
                self._release_ports()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Raises what a node's background work failed with, if it did."""
        try:
            await self._end()
        finally:
            self._release_ports()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for `bootstrap.servers`, of every node; the same for as long as the cluster is open."""
        return ",".join(member.kafka.address for member in self._entered())

    @property
    def http(self) -> str:
        """http://HOST:PORT, where `/metrics` and `/readyz` of the first node are; the same for as long as the cluster is open."""
        return f"http://{self._entered()[0].http.address}"

    @property
    def sqs(self) -> str:
        """http://HOST:PORT, where the SQS API is, at the first node that runs."""
        members = self._entered()
        running = [member for member in members if member.is_running]
        return f"http://{(running or members)[0].sqs.address}"

    @property
    def running(self) -> list[int]:
        """The numbers of the nodes that run: those that were killed are not among them until they are restarted."""
        return [member.node_id for member in self._entered() if member.is_running]

    async def leader(self, topic: str, partition: int = 0) -> int:
        """The number of the node that leads it, as the others see it. Waits until there is one."""
        async with self._client() as client:
            while True:
                (state,) = await ClusterViewer(client).topics([topic], at=self._informed())
                found = [each.leader for each in state.partitions if each.index == partition]
                if not found:
                    raise ValueError(f"{topic} has {len(state.partitions)} partitions, and no {partition}")
                if found[0] is not None and found[0] in self.running:
                    return found[0]
                await asyncio.sleep(_AGAIN_S)

    async def restart(self, node: int | None = None) -> None:
        """Stop the node in order, unless it was killed, and start it again at the same address; of several all, unless one is named."""
        for member in self._entered() if node is None else [self._named(node)]:
            await member.stop()
            await self._start(member)
        await self._until_all_are_there()

    async def kill(self, node: int | None = None) -> None:
        """End the node as a crash would: nobody is answered, nothing is tidied up. `restart` brings it back. Of several one is to be named."""
        await self._named(node).kill()

    async def kill_leader(self, topic: str, partition: int = 0) -> int:
        """Kill the node that leads the partition; its number."""
        node = await self.leader(topic, partition)
        await self.kill(node)
        return node

    def freeze(self, node: int | None = None) -> None:
        """The node hangs: connections stay open and can still be made, and nothing is answered until `thaw`. What it does by itself goes on."""
        self._named(node).node.pause()

    def thaw(self, node: int | None = None) -> None:
        """What clients have asked meanwhile is answered, in order."""
        self._named(node).node.resume()

    def cut(self, node: int) -> None:
        """No other node reaches it, nor it them, until `heal`. Clients do."""
        self._named(node)
        self._wires.cut(node)

    def heal(self, node: int) -> None:
        self._named(node)
        self._wires.heal(node)

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """So much time has passed for the node, also when it is started again. What is kept by its age is gone at the node's next look:
        `log.retention.check.interval.ms` for records, `offsets.retention.check.interval.ms` for groups' offsets. Messages of queues become
        visible, and what was to be remembered for a time is forgotten, at once."""
        self._clock.advance(
            timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        )
        for member in self._members:
            if member.is_running:
                member.node.on_clock_moved()

    async def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int | None = None, **settings: SettingValue
    ) -> str:
        """The topic's name. It has a replica on every node, three at most, unless `replicas` says otherwise. Settings are Kafka's, with underscores: `cleanup_policy="compact"`."""
        copies = min(self._count, _REPLICAS) if replicas is None else replicas
        topic = NewTopic(name, partitions, copies, settings=tuple(written_out({}, settings).items()))
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

    async def wait_for_records(
        self, topic: str, count: int, *, partition: int | None = None, seconds: float = 30
    ) -> list[Record]:
        """As `records`, as soon as there are so many. Raises `TimeoutError`, which says how many there were."""
        found: list[Record] = []
        try:
            async with asyncio.timeout(seconds):
                while True:
                    found = await self.records(topic, partition=partition)
                    if len(found) >= count:
                        return found
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise TimeoutError(f"{topic} had {len(found)} of {count} records after {seconds:g} s") from None

    @property
    def _count_with_keeper(self) -> int:
        return self._count if self._count == 1 else self._count + 1

    def _member(self, node_id: NodeId) -> Member:
        path = self._data_path
        if path is not None and self._count > 1:
            path = os.path.join(path, f"node-{node_id}")
        return Member(node_id, path)

    async def _start(self, member: Member) -> None:
        config = node_config(
            self._settings,
            kafka=member.kafka.address,
            http=member.http.address,
            sqs=member.sqs.address,
            data_path=member.data_path or _MEMORY_PATH,
            among=self._among(member) if self._count > 1 else None,
        )
        await member.start(config, self._clock, self._networks[member.node_id])

    def _among(self, member: Member) -> Among:
        keeper = self._members[-1]
        return Among(member.node_id, member.peer.address, keeper.peer.address, self._secret, member is keeper)

    async def _until_all_are_there(self) -> None:
        """Until whoever decides knows all nodes that run to be in service."""
        if self._count == 1:
            return
        wanted = {NodeId(node) for node in self.running if not self._wires.is_cut(node)}
        async with asyncio.timeout(_TOGETHER_S), self._client() as client:
            while True:
                nodes = (await ClusterViewer(client).describe(at=self._informed())).nodes
                if wanted <= {node.node_id for node in nodes if node.state == "active"}:
                    return
                await asyncio.sleep(_AGAIN_S)

    def _informed(self) -> Address:
        """Of a node that runs and hears the others, if there is one: who is cut off still takes itself for what it was."""
        running = [member for member in self._entered() if member.is_running]
        hearing = [member for member in running if not self._wires.is_cut(member.node_id)]
        (address,) = parse_addresses((hearing or running)[0].kafka.address)
        return address

    async def _end(self) -> None:
        """All of them, whatever becomes of one; who decides goes last."""
        async with AsyncExitStack() as stack:
            for member in reversed(self._members):
                stack.push_async_callback(member.stop)

    def _release_ports(self) -> None:
        for member in self._members:
            member.release_ports()

    def _entered(self) -> list[Member]:
        """Those that clients hear of."""
        if not self._members:
            raise NotRunning("the cluster has no address yet: enter it first, with Cluster() as cluster")
        return self._members[: self._count]

    def _named(self, node: int | None) -> Member:
        members = self._entered()
        if node is None:
            if len(members) > 1:
                raise ValueError(f"there are {len(members)} nodes: say which, from 0 to {len(members) - 1}")
            return members[0]
        if not 0 <= node < len(members):
            raise ValueError(f"there is no node {node}: they are numbered from 0 to {len(members) - 1}")
        return members[node]

    def _check_running(self) -> None:
        if not any(member.is_running for member in self._entered()):
            raise NotRunning("there is no node: enter the cluster first, or restart() it after kill()")

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        self._check_running()
        addresses = parse_addresses(self.bootstrap)
        async with Client(TcpNetwork(), SystemClock(), random.SystemRandom(), addresses) as client:
            yield client
        await let_sockets_close()

    @asynccontextmanager
    async def _queues(self) -> AsyncIterator[Queues]:
        self._check_running()
        async with open_queues(
            SystemClientPorts(),
            endpoint=self.sqs,
            bootstrap=None,
            timeout_ms=_QUEUES_MS,
            patience_ms=_QUEUES_MS,
        ) as queues:
            yield queues
        await let_sockets_close()


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


def _raise_first(outcomes: Iterable[Exception | None]) -> None:
    for error in outcomes:
        if error is not None:
            raise error
