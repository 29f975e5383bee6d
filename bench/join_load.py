"""Members that all join one group at once: how long until every one of them has its assignment.

A member does what clients do: it joins, is given an id and joins again, brings or fetches the assignments, and joins
anew when a heartbeat tells of another generation. Connections are open beforehand.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Final

from bench.brokers import Broker
from bench.client_load import LoadFailed
from bench.wire_client import Wire, await_coordinator, connect, run
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import heartbeat, join_group, leave_group, sync_group

_HEARTBEAT_SECONDS: Final = 0.05
"""Far more often than clients do, or their patience would be what is measured."""
_SECONDS_MAX: Final = 60.0
_PROTOCOL: Final = "range"
_SUBSCRIPTION: Final = b"\0\0" + b"\0\0\0\1" + b"\0\5topic" + b"\xff\xff\xff\xff"
"""Version 0, one topic, nothing else: Kafka reads it, and never answers a member with one that it cannot read."""


def join(broker: Broker, *, member_count: int) -> dict[str, float]:
    return run(_join(broker, member_count))


async def _join(broker: Broker, member_count: int) -> dict[str, float]:
    group = _Group(f"bench-join-{time.monotonic_ns()}", member_count)
    async with AsyncExitStack() as connections:
        members = [_Member(await connect(broker, connections), group) for _ in range(member_count)]
        await await_coordinator(members[0].wire, group.name)
        started_at = time.perf_counter()
        async with asyncio.timeout(_SECONDS_MAX):
            await asyncio.gather(*(member.live() for member in members))
        taken_seconds = time.perf_counter() - started_at
        await asyncio.gather(*(member.leave() for member in members))
    return {"ms": taken_seconds * 1000, "generations": group.generation}


class _Group:
    """What all members see of each other: who has an assignment of the newest generation."""

    def __init__(self, name: str, member_count: int) -> None:
        self.name = name
        self.generation = 0
        self.is_whole = asyncio.Event()
        self._member_count = member_count
        self._assigned: set[str] = set()

    def on_assigned(self, member_id: str, generation: int) -> None:
        if generation > self.generation:
            self.generation = generation
            self._assigned.clear()
        if generation == self.generation:
            self._assigned.add(member_id)
        if len(self._assigned) == self._member_count:
            self.is_whole.set()


class _Member:
    def __init__(self, wire: Wire, group: _Group) -> None:
        self.wire = wire
        self._group = group
        self._id = ""

    async def live(self) -> None:
        """Until everyone has an assignment of one generation."""
        while not self._group.is_whole.is_set():
            generation = await self._take_part()
            if generation is not None:
                self._group.on_assigned(self._id, generation)
                await self._stay(generation)

    async def leave(self) -> None:
        identity = leave_group.MemberIdentity(member_id=self._id)
        request = leave_group.LeaveGroupRequest(group_id=self._group.name, members=(identity,))
        await self.wire.call(leave_group.API, request)

    async def _take_part(self) -> int | None:
        """One join and one sync; the generation, or None where another began meanwhile."""
        joined = await self.wire.call(join_group.API, self._join_request())
        match joined.error_code:
            case ErrorCode.NONE:
                self._id = joined.member_id
            case ErrorCode.MEMBER_ID_REQUIRED:
                self._id = joined.member_id
                return None
            case ErrorCode.REBALANCE_IN_PROGRESS:
                return None
            case other:
                raise LoadFailed(f"JoinGroup was answered with {ErrorCode(other).name}")
        assignments = tuple(
            sync_group.SyncGroupRequestAssignment(member.member_id, f"for {member.member_id}".encode())
            for member in joined.members
        )
        request = sync_group.SyncGroupRequest(
            self._group.name,
            joined.generation_id,
            self._id,
            protocol_type="consumer",
            protocol_name=_PROTOCOL,
            assignments=assignments,
        )
        synced = await self.wire.call(sync_group.API, request)
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return None
        if synced.error_code != ErrorCode.NONE or synced.assignment != f"for {self._id}".encode():
            raise LoadFailed(f"SyncGroup was answered with {synced}")
        return joined.generation_id

    async def _stay(self, generation: int) -> None:
        """Returns when the group is whole, or begins another generation."""
        request = heartbeat.HeartbeatRequest(self._group.name, generation, self._id)
        while not self._group.is_whole.is_set():
            answer = await self.wire.call(heartbeat.API, request)
            if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                return
            if answer.error_code != ErrorCode.NONE:
                raise LoadFailed(f"Heartbeat was answered with {ErrorCode(answer.error_code).name}")
            try:
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await self._group.is_whole.wait()
            except TimeoutError:
                continue

    def _join_request(self) -> join_group.JoinGroupRequest:
        protocol = join_group.JoinGroupRequestProtocol(_PROTOCOL, _SUBSCRIPTION)
        return join_group.JoinGroupRequest(
            self._group.name,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=self._id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
