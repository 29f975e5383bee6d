"""Members of groups: they join, commit, fall silent, crash, come back, and some go on after others took their place."""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.group_calls import GroupCalls, Identity
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.workload import Caller
from ropewalk.sim.judges.group_history import Led
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import find_coordinator, join_group

LONE_GROUP: Final = "lone"
"""A group that is nothing but a place for offsets: nobody joins it."""

_FENCED: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)


class GroupMember:
    """One member of one group, over all its lives."""

    def __init__(
        self,
        caller: Caller,
        group: str,
        partitions: Sequence[TopicPartition],
        *,
        instance_id: str | None,
        knows_instances: bool,
    ) -> None:
        """`knows_instances`: some of the group are static, so whoever leads it must be told who."""
        self._caller = caller
        self._workload = caller.workload
        self._rng = caller.rng
        self._partitions = partitions
        self._topics = sorted({partition.topic for partition in partitions})
        self._knows_instances = knows_instances
        self._newcomer = Identity(group, instance_id=instance_id)
        self._identity = self._newcomer
        self._former: Identity | None = None
        """Whom it was before a crash or in the generation before; somebody still commits in that name."""
        self._share: tuple[TopicPartition, ...] = ()
        self._session_timeout_ms = self._rng.choice([600, 1500, 3000])
        self._rebalance_timeout_ms = self._rng.choice([500, 1000, 2000])
        self._heard_at_s = 0.0

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def share(self) -> tuple[TopicPartition, ...]:
        """Its partitions in the generation it belongs to."""
        return self._share

    async def run(self) -> None:
        while (link := await self._caller.connect()) is not None:
            if not link.offers(find_coordinator.API):
                link.close()
                return
            calls = GroupCalls(self._caller, link)
            try:
                await calls.find_coordinator(self._identity.group)
                while link.is_open and not self._workload.is_over:
                    await self._step(link, calls)
                    await self._caller.pause(0.4)
            except LinkLost:
                await self._caller.pause(0.3)
            link.close()

    async def take_part_once(self, calls: GroupCalls) -> bool:
        """Join, and be given a share; False if it has to be tried again."""
        if self._identity.generation < 0:
            await self._join(calls)
        return self._identity.generation >= 0

    async def _step(self, link: Link, calls: GroupCalls) -> None:
        if self._identity.generation < 0:
            await self._join(calls)
            return
        fate = self._rng.random()
        if fate < 0.4:
            await self._commit(calls, self._identity)
        elif fate < 0.6:
            await calls.fetch_offsets(self._identity.group, self._share or self._partitions)
        elif fate < 0.88:
            self.heed(await calls.heartbeat(self._identity))
        elif fate < 0.91:
            await calls.leave(self._identity)
            self._workload.sometimes.note("a member left")
            self._identity = self._newcomer
        elif fate < 0.95:
            self._former, self._identity = self._identity, self._newcomer
            link.close()
        elif fate < 0.97:
            await asyncio.sleep(self._session_timeout_ms * self._rng.uniform(0.8, 2.0) / 1000)
            await self._commit(calls, self._identity)
        elif self._former is not None:
            await self._commit(calls, self._former)

    async def _commit(self, calls: GroupCalls, identity: Identity) -> None:
        candidates = self._share or self._partitions
        partitions = self._rng.sample(candidates, self._rng.randrange(1, min(3, len(candidates)) + 1))
        code = await calls.commit(identity, partitions)
        if code == ErrorCode.NONE:
            self._workload.sometimes.note("a member's commit was acknowledged")
        if code in _FENCED:
            self._workload.sometimes.note("a commit of a stale member was refused")
        if identity is self._identity:
            self.heed(code)

    async def _join(self, calls: GroupCalls) -> None:
        response = await calls.join(
            self._identity,
            self._topics,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            knows_instances=self._knows_instances,
        )
        code = ErrorCode(response.error_code)
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._identity = replace(self._identity, member_id=response.member_id)
            return
        self.heed(code)
        if code != ErrorCode.NONE:
            return
        joined = replace(self._identity, member_id=response.member_id, generation=response.generation_id)
        if self._identity.instance_id is not None and not self._identity.member_id and self._former:
            self._workload.sometimes.note("a static member came back")
        self._identity = joined  # whatever becomes of the sync, the id is taken
        code, share = await calls.sync(joined, self._lead(joined, response))
        if code == ErrorCode.NONE:
            self._share = share
            self._workload.sometimes.note("a rebalance was finished")
        else:
            self._identity = replace(joined, generation=-1)
        self.heed(code)

    def _lead(
        self, joined: Identity, response: join_group.JoinGroupResponse
    ) -> list[tuple[str, list[TopicPartition]]]:
        """Deal the partitions out, if that is this member's task."""
        if response.leader != joined.member_id:
            return []
        if response.skip_assignment:
            self._workload.sometimes.note("a leader was told not to assign")
            return []
        turn = self._rng.randrange(len(response.members))
        members = [*response.members[turn:], *response.members[:turn]]
        shares = [list(self._partitions[first :: len(members)]) for first in range(len(members))]
        owners = [member.instance_id or member.member_id for member in members]
        self._workload.group_journal.note(
            Led(
                joined.group,
                joined.generation,
                tuple((owner, tuple(share)) for owner, share in zip(owners, shares, strict=True)),
            )
        )
        return [(member.member_id, share) for member, share in zip(members, shares, strict=True)]

    def heed(self, code: ErrorCode) -> None:
        """Draw the conclusions from an answer; but now and then go on as if nothing had been said."""
        now_s = self._workload.world.now_s
        silence_ms = (now_s - self._heard_at_s) * 1000
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._workload.sometimes.note("a shard was replayed")
        if code == ErrorCode.NONE:
            self._heard_at_s = now_s
        elif code == ErrorCode.UNKNOWN_MEMBER_ID and silence_ms > self._session_timeout_ms:
            self._workload.sometimes.note("a session expired")
        if code in _FENCED or code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self._identity.generation >= 0 and self._rng.random() < 0.3:
                return
            if code in _FENCED and code != ErrorCode.ILLEGAL_GENERATION:
                self._identity = self._newcomer
            else:
                if self._identity.generation >= 0:
                    self._former = self._identity
                self._identity = replace(self._identity, generation=-1)


class LoneCommitter:
    """Stores offsets without being a member of anything, as administrators and self-assigned consumers do."""

    def __init__(self, caller: Caller, partitions: Sequence[TopicPartition]) -> None:
        self._caller = caller
        self._partitions = partitions

    async def run(self) -> None:
        caller, identity = self._caller, Identity(LONE_GROUP)
        while (link := await caller.connect()) is not None:
            if not link.offers(find_coordinator.API):
                link.close()
                return
            calls = GroupCalls(caller, link)
            try:
                await calls.find_coordinator(LONE_GROUP)
                while link.is_open and not caller.workload.is_over:
                    if caller.rng.random() < 0.5:
                        await calls.commit(identity, [caller.rng.choice(self._partitions)])
                    else:
                        await calls.fetch_offsets(LONE_GROUP, self._partitions)
                    await caller.pause(0.5)
            except LinkLost:
                await caller.pause(0.3)
            link.close()


class FinalMember:
    """Reads a group's offsets once the world is well again, then takes part in it. Both must succeed."""

    def __init__(self, caller: Caller, partitions: Sequence[TopicPartition]) -> None:
        self._caller = caller
        self._partitions = partitions

    async def conclude(self, group: str) -> None:
        member = GroupMember(self._caller, group, self._partitions, instance_id=None, knows_instances=True)
        has_read = False
        while True:
            link = await self._caller.connect()
            assert link is not None, "the end has no end"
            calls = GroupCalls(self._caller, link)
            try:
                if not link.offers(find_coordinator.API):
                    return
                await calls.find_coordinator(group)
                while link.is_open:
                    has_read = has_read or await calls.fetch_offsets(group, self._partitions)
                    if has_read and (group == LONE_GROUP or await member.take_part_once(calls)):
                        return
                    await asyncio.sleep(0.2)
            except LinkLost:
                pass
            finally:
                link.close()
