"""Members that all join one group whose assignments the broker makes (KIP-848): how long until the topic is shared out.

A member does what clients do: it joins with a heartbeat, takes up what it is assigned, gives up what it is not any more,
and says so with the next heartbeat. Connections are open beforehand.
"""

import asyncio
import time
import uuid
from contextlib import AsyncExitStack
from typing import Final

from bench.brokers import Broker
from bench.client_load import LoadFailed
from bench.wire_client import Wire, await_coordinator, connect, run
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import consumer_group_heartbeat

_HEARTBEAT_SECONDS: Final = 0.05
"""Far more often than clients do, or their patience would be what is measured."""
_SECONDS_MAX: Final = 60.0
_REBALANCE_MS: Final = 60_000


def join(broker: Broker, topic: str, *, member_count: int, partition_count: int) -> dict[str, float]:
    """`partition_count` partitions of `topic` for at least as many members."""
    return run(_join(broker, topic, member_count, partition_count))


async def _join(broker: Broker, topic: str, member_count: int, partition_count: int) -> dict[str, float]:
    group = _Group(f"bench-join848-{time.monotonic_ns()}", topic, partition_count)
    async with AsyncExitStack() as connections:
        members = [_Member(await connect(broker, connections), group) for _ in range(member_count)]
        await await_coordinator(members[0].wire, group.name)
        started_at = time.perf_counter()
        async with asyncio.timeout(_SECONDS_MAX):
            await asyncio.gather(*(member.live() for member in members))
        taken_seconds = time.perf_counter() - started_at
        await asyncio.gather(*(member.leave() for member in members))
    shares = [len(member.owned) for member in members]
    if max(shares) - min(shares) > 1:
        raise LoadFailed(f"{broker.name} shared {partition_count} partitions out as {sorted(shares)}")
    return {"ms": taken_seconds * 1000, "heartbeats": group.heartbeat_count / member_count}


class _Group:
    """What all members see of each other: who owns which partition."""

    def __init__(self, name: str, topic: str, partition_count: int) -> None:
        self.name = name
        self.topic = topic
        self.heartbeat_count = 0
        self.is_shared = asyncio.Event()
        self._partition_count = partition_count
        self._members: list[_Member] = []

    def add(self, member: "_Member") -> None:
        self._members.append(member)

    def on_owned(self) -> None:
        """Shared out is what everyone has a part of and nobody lacks a part of."""
        counts = [len(member.owned) for member in self._members]
        if sum(counts) == self._partition_count and max(counts) - min(counts) <= 1:
            self.is_shared.set()


class _Member:
    def __init__(self, wire: Wire, group: _Group) -> None:
        self.wire = wire
        self.owned: frozenset[int] = frozenset()
        self._group = group
        self._id = str(uuid.uuid4())
        self._epoch = 0
        self._topic_id = b""
        group.add(self)

    async def live(self) -> None:
        """Until the group has shared out the topic."""
        is_news = True
        while not self._group.is_shared.is_set():
            is_news = await self._beat(is_news)
            if is_news:
                continue  # what was given up, or taken, is said at once
            try:
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await self._group.is_shared.wait()
            except TimeoutError:
                continue

    async def leave(self) -> None:
        await self._call(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(self._group.name, self._id, -1)
        )

    async def _beat(self, is_news: bool) -> bool:
        """Whether the answer changed what the member owns."""
        is_first = self._epoch == 0
        owned = consumer_group_heartbeat.TopicPartitions(self._topic_id, tuple(sorted(self.owned)))
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            self._group.name,
            self._id,
            self._epoch,
            rebalance_timeout_ms=_REBALANCE_MS if is_first else -1,
            subscribed_topic_names=(self._group.topic,) if is_first else None,
            topic_partitions=() if is_first else (owned,) if is_news and self._topic_id else None,
        )
        answer = await self._call(request)
        self._epoch = answer.member_epoch
        if answer.assignment is None:
            return False
        before = self.owned
        self.owned = frozenset(
            index for topic in answer.assignment.topic_partitions for index in topic.partitions
        )
        for topic in answer.assignment.topic_partitions:
            self._topic_id = bytes(topic.topic_id)
        self._group.on_owned()
        return self.owned != before

    async def _call(
        self, request: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest
    ) -> consumer_group_heartbeat.ConsumerGroupHeartbeatResponse:
        self._group.heartbeat_count += 1
        answer = await self.wire.call(consumer_group_heartbeat.API, request)
        if answer.error_code != ErrorCode.NONE:
            raise LoadFailed(
                f"ConsumerGroupHeartbeat was answered with {ErrorCode(answer.error_code).name}: {answer.error_message}"
            )
        return answer
