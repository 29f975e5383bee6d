"""Being a member of a group, in either protocol: assigned by one of the members, or by the broker (KIP-848)."""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.group_calls import GroupCalls, Identity
from ropewalk.sim.clients.group_members import GroupMember
from ropewalk.sim.clients.link import Link
from ropewalk.sim.runs.eos.guide import MemberGuide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import consumer_group_heartbeat

LEFT_BEHIND: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""The group goes on, or has gone on, without the member."""

REBALANCE_TIMEOUT_MS: Final = 2000


class Membership(Protocol):
    @property
    def identity(self) -> Identity: ...

    @property
    def share(self) -> tuple[TopicPartition, ...]: ...

    async def take_part(self, link: Link) -> ErrorCode:
        """Tell the coordinator of the group that it is there. It is a member afterwards if its generation is none below 0."""

    def heed(self, code: ErrorCode) -> None:
        """Draw the conclusions from an answer to something else."""


class ClassicMembership:
    def __init__(self, guide: MemberGuide, group: str, partitions: Sequence[TopicPartition]) -> None:
        self._guide = guide
        self._member = GroupMember(guide, group, partitions, instance_id=None, knows_instances=False)

    @property
    def identity(self) -> Identity:
        return self._member.identity

    @property
    def share(self) -> tuple[TopicPartition, ...]:
        return self._member.share

    async def take_part(self, link: Link) -> ErrorCode:
        calls = GroupCalls(self._guide, link)
        if not await self._member.take_part_once(calls):
            return ErrorCode.NONE
        code = await calls.heartbeat(self._member.identity)
        self._member.heed(code)
        return code

    def heed(self, code: ErrorCode) -> None:
        self._member.heed(code)


class ServerAssignedMembership:
    """Says with every heartbeat what it owns. It does nothing between two of them but what it was given leave for."""

    def __init__(self, guide: MemberGuide, group: str, partitions: Sequence[TopicPartition]) -> None:
        self._guide = guide
        self._topics = sorted({partition.topic for partition in partitions})
        self._group = group
        self._identity = self._newcomer()
        self.share: tuple[TopicPartition, ...] = ()

    @property
    def identity(self) -> Identity:
        return self._identity

    async def take_part(self, link: Link) -> ErrorCode:
        guide = self._guide
        owned: dict[str, list[int]] = {}
        for partition in self.share:
            owned.setdefault(partition.topic, []).append(partition.partition)
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._identity.member_id,
            member_epoch=max(0, self._identity.generation),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=tuple(self._topics),
            topic_partitions=tuple(
                consumer_group_heartbeat.TopicPartitions(guide.workload.topics.id_of(topic), tuple(indexes))
                for topic, indexes in owned.items()
            ),
        )
        guide.workload.operation_count += 1
        response = await link.send(
            consumer_group_heartbeat.API, consumer_group_heartbeat.API.version_max, request
        )
        code = ErrorCode(response.error_code)
        self.heed(code)
        if code == ErrorCode.NOT_COORDINATOR:
            link.close()
        if code == ErrorCode.NONE:
            if response.member_epoch != self._identity.generation:
                self._identity = replace(self._identity, generation=response.member_epoch)
            if response.assignment is not None:
                self._take(response.assignment)
        return code

    def heed(self, code: ErrorCode) -> None:
        """One whose epoch is stale learns the newer with its next heartbeat."""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self._identity = self._newcomer()
            self.share = ()

    def _take(self, assignment: consumer_group_heartbeat.Assignment) -> None:
        topics = self._guide.workload.topics
        share = tuple(
            TopicPartition(topics.name_of(bytes(topic.topic_id)), index)
            for topic in assignment.topic_partitions
            for index in topic.partitions
        )
        if share != self.share:
            self.share = share
            self._identity = replace(self._identity)  # the positions of another share are others
            self._guide.workload.sometimes.note("a broker assigned partitions")

    def _newcomer(self) -> Identity:
        return Identity(self._group, member_id=f"{self._guide.rng.getrandbits(128):032x}")
