"""The load of committed offsets: many groups that commit as fast as the broker answers, and one ordinary client.

The raw client is the same for both brokers and cheap: requests are bytes made beforehand, in which only the offsets
and the correlation id change; answers are compared, not decoded.
"""

import asyncio
import time
from collections import deque
from contextlib import AsyncExitStack
from struct import Struct as Layout
from typing import Final, cast

from confluent_kafka import Consumer, TopicPartition

from bench.brokers import Broker
from bench.client_load import LoadFailed
from bench.processes import Meter
from bench.wire_client import Wire, await_coordinator, connect, run
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.headers import encode_request_header, encode_response_header
from ropewalk.wire.messages import offset_commit, offset_fetch

_VERSION: Final = 8
PARTITION_COUNT: Final = 6
"""In every commit."""
_OFFSET_MARK: Final = 0x1122_3344_5566_7788
"""Where a request has this, each round puts its own offset."""
_OFFSET: Final = Layout(">q")
_CORRELATION_AT: Final = 8
_CORRELATION: Final = Layout(">i")


def commit(
    broker: Broker, topic: str, *, connection_count: int, depth: int, group_count: int, seconds: float
) -> dict[str, float]:
    """Commits of six partitions each, for many groups without members, `depth` at a time on each connection."""
    return run(_commit(broker, topic, connection_count, depth, group_count, seconds))


async def _commit(
    broker: Broker, topic: str, connection_count: int, depth: int, group_count: int, seconds: float
) -> dict[str, float]:
    run_name = f"bench-commit-{time.monotonic_ns()}"
    groups = [_Group(f"{run_name}-{number}", topic) for number in range(group_count)]
    committers = [
        _Committer(groups[number::connection_count], depth, _success(topic))
        for number in range(connection_count)
    ]
    async with AsyncExitStack() as connections:
        wire = await connect(broker, connections)
        for group in groups:
            await await_coordinator(wire, group.name)
        for committer in committers:
            await committer.connect(broker)
        await asyncio.sleep(min(1.0, seconds / 4))
        before = sum(committer.answered_count for committer in committers)
        for committer in committers:
            committer.latencies_ms.clear()
        with Meter(broker.pid) as meter:
            await asyncio.sleep(seconds)
            answered_count = sum(committer.answered_count for committer in committers) - before
        for committer in committers:
            await committer.stop()
        for group in groups:
            await _check(broker, wire, group, topic)
    latencies_ms = sorted(latency for committer in committers for latency in committer.latencies_ms)
    return {
        "commits/s": answered_count / meter.seconds,
        "p99 ms": latencies_ms[len(latencies_ms) * 99 // 100],
        "CPU µs each": meter.broker_cpu_seconds / answered_count * 1e6,
        "foreign cores": meter.foreign_cores,
    }


class _Group:
    """One group, and the request that it sends again and again, each time with the next offset."""

    def __init__(self, name: str, topic: str) -> None:
        self.name = name
        self.offset = 0
        partitions = tuple(
            offset_commit.OffsetCommitRequestPartition(index=index, committed_offset=_OFFSET_MARK)
            for index in range(PARTITION_COUNT)
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=name, topics=(offset_commit.OffsetCommitRequestTopic(name=topic, partitions=partitions),)
        )
        header = encode_request_header(offset_commit.API, _VERSION, 0, "bench")
        body = b"".join([header, *offset_commit.API.encode_request(_VERSION, request)])
        self._frame = bytearray(len(body).to_bytes(4, "big") + body)
        mark = _OFFSET.pack(_OFFSET_MARK)
        self._offsets_at = []
        position = self._frame.find(mark)
        while position != -1:
            self._offsets_at.append(position)
            position = self._frame.find(mark, position + 1)
        assert len(self._offsets_at) == PARTITION_COUNT

    def next_frame(self, correlation_id: int) -> bytes:
        self.offset += 1
        _CORRELATION.pack_into(self._frame, _CORRELATION_AT, correlation_id)
        for position in self._offsets_at:
            _OFFSET.pack_into(self._frame, position, self.offset)
        return bytes(self._frame)


def _success(topic: str) -> bytes:
    """The answer to a commit without its length and correlation id, where nothing went wrong."""
    partitions = tuple(
        offset_commit.OffsetCommitResponsePartition(index=index, error_code=0)
        for index in range(PARTITION_COUNT)
    )
    response = offset_commit.OffsetCommitResponse(
        topics=(offset_commit.OffsetCommitResponseTopic(name=topic, partitions=partitions),)
    )
    header = encode_response_header(offset_commit.API, _VERSION, 0)
    return b"".join([header, *offset_commit.API.encode_response(_VERSION, response)])[4:]


class _Committer(asyncio.Protocol):
    """One connection that has `depth` commits in flight, for its groups in turn."""

    def __init__(self, groups: list[_Group], depth: int, expected: bytes) -> None:
        self._groups = groups
        self._expected = expected
        self.answered_count = 0
        self.latencies_ms: list[float] = []
        self._depth = depth
        self._sent_at: deque[float] = deque()
        self._sent_count = 0
        self._received = bytearray()
        self._is_stopping = False
        self._idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def connect(self, broker: Broker) -> None:
        """Opens the connection and begins at once."""
        await asyncio.get_running_loop().create_connection(lambda: self, broker.host, broker.port)
        for _ in range(self._depth):
            self._send()

    async def stop(self) -> None:
        """Waits for what is in flight."""
        self._is_stopping = True
        await self._idle
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        position = 0
        while len(received) - position >= 4:
            stop = position + 4 + int.from_bytes(received[position : position + 4], "big")
            if len(received) < stop:
                break
            if received[position + 8 : stop] != self._expected:
                self._fail(LoadFailed(f"a commit was answered with {bytes(received[position:stop]).hex()}"))
                return
            position = stop
            self.answered_count += 1
            self.latencies_ms.append((time.perf_counter() - self._sent_at.popleft()) * 1000)
            if not self._is_stopping:
                self._send()
            elif not self._sent_at and not self._idle.done():
                self._idle.set_result(None)
        del received[:position]

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(LoadFailed(f"the broker closed the connection: {exc}"))

    def _send(self) -> None:
        group = self._groups[self._sent_count % len(self._groups)]
        self._sent_count += 1
        self._sent_at.append(time.perf_counter())
        self._transport.write(group.next_frame(self._sent_count & 0x7FFF_FFFF))

    def _fail(self, error: LoadFailed) -> None:
        if not self._idle.done():
            self._idle.set_exception(error)


async def _check(broker: Broker, wire: Wire, group: _Group, topic: str) -> None:
    """The broker must have stored the last offset that it acknowledged."""
    topics = offset_fetch.OffsetFetchRequestTopics(
        name=topic, partition_indexes=tuple(range(PARTITION_COUNT))
    )
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group.name, topics=(topics,))
    request = offset_fetch.OffsetFetchRequest(groups=(asked,))
    response = await wire.call(offset_fetch.API, request, version_max=9)
    stored = [partition.committed_offset for partition in response.groups[0].topics[0].partitions]
    if response.groups[0].error_code != ErrorCode.NONE or stored != [group.offset] * PARTITION_COUNT:
        raise LoadFailed(f"{broker.name} acknowledged offset {group.offset} of {group.name}, holds {stored}")


def commit_one_by_one(broker: Broker, topic: str, *, seconds: float) -> dict[str, float]:
    """One confluent-kafka client that waits for each commit before the next, as careful consumers do."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"bench-{time.monotonic_ns()}"})
    latencies_ms: list[float] = []

    def commit(offset: int) -> None:
        offsets = [TopicPartition(topic, partition, offset) for partition in range(PARTITION_COUNT)]
        started_at = time.perf_counter()
        consumer.commit(offsets=offsets, asynchronous=False)
        latencies_ms.append((time.perf_counter() - started_at) * 1000)

    try:
        for offset in range(100):
            commit(offset)
        latencies_ms.clear()
        with Meter(broker.pid) as meter:
            deadline = time.perf_counter() + seconds
            while time.perf_counter() < deadline:
                commit(len(latencies_ms))
    finally:
        consumer.close()
    latencies_ms.sort()
    return {
        "commits/s": len(latencies_ms) / meter.seconds,
        "p50 ms": latencies_ms[len(latencies_ms) // 2],
        "p99 ms": latencies_ms[len(latencies_ms) * 99 // 100],
        "foreign cores": meter.foreign_cores,
    }
