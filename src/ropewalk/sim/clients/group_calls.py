"""The calls that take part in a group, as a client makes them over one link: any version, any error, written down."""

from collections.abc import Sequence
from struct import pack
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.workload import Caller, Q, R
from ropewalk.sim.judges.group_history import (
    FORGED,
    NO_OFFSET,
    Assigned,
    CommitAnswered,
    CommitSent,
    OffsetSeen,
)
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)

PROTOCOL_TYPE: Final = "consumer"
PROTOCOL: Final = "any"

_COORDINATORS_SINCE: Final = 4
_LEAVE_MEMBERS_SINCE: Final = 3
_COMMIT_BY_ID_SINCE: Final = 10
_FETCH_GROUPS_SINCE: Final = 8
_FETCH_BY_ID_SINCE: Final = 10
_FETCH_ALL_SINCE: Final = 2

_INDEFINITE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""After these a commit may still take effect: whoever ceases to look after a group does not know what becomes of it."""


_Committed = offset_fetch.OffsetFetchResponsePartition | offset_fetch.OffsetFetchResponsePartitions


class Identity(Struct, frozen=True):
    """Who somebody is for a group."""

    group: str
    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1

    @property
    def owner(self) -> str:
        return self.instance_id or self.member_id


class GroupCalls:
    """Raises `LinkLost` whenever an answer does not come."""

    def __init__(self, caller: Caller, link: Link) -> None:
        self._caller = caller
        self._workload = caller.workload
        self._journal = caller.workload.group_journal
        self._link = link

    async def find_coordinator(self, group: str) -> bool:
        """Makes the groups' topic on first use."""
        self._workload.operation_count += 1
        version = self._caller.draw_version(self._link, find_coordinator.API)
        request = find_coordinator.FindCoordinatorRequest(key=group, coordinator_keys=(group,))
        response = await self._link.send(find_coordinator.API, version, request)
        if version < _COORDINATORS_SINCE:
            return response.error_code == ErrorCode.NONE
        return response.coordinators[0].error_code == ErrorCode.NONE

    async def join(
        self,
        identity: Identity,
        topics: Sequence[str],
        *,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        knows_instances: bool,
    ) -> join_group.JoinGroupResponse:
        self._workload.operation_count += 1
        request = join_group.JoinGroupRequest(
            group_id=identity.group,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=identity.member_id,
            instance_id=identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(join_group.JoinGroupRequestProtocol(PROTOCOL, _encode_subscription(topics)),),
        )
        version = self._draw_version(join_group.API, 5 if knows_instances else 0)
        response = await self._link.send(join_group.API, version, request)
        self._notice(ErrorCode(response.error_code))
        return response

    async def sync(
        self, identity: Identity, shares: Sequence[tuple[str, Sequence[TopicPartition]]]
    ) -> tuple[ErrorCode, tuple[TopicPartition, ...]]:
        """`shares` by member id, from a leader; empty from the others."""
        began = self._journal.now
        self._workload.operation_count += 1
        request = sync_group.SyncGroupRequest(
            group_id=identity.group,
            generation_id=identity.generation,
            member_id=identity.member_id,
            instance_id=identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=tuple(
                sync_group.SyncGroupRequestAssignment(member_id, _encode_share(share))
                for member_id, share in shares
            ),
        )
        version = self._draw_version(sync_group.API, 0 if identity.instance_id is None else 3)
        response = await self._link.send(sync_group.API, version, request)
        code = self._notice(ErrorCode(response.error_code))
        if code != ErrorCode.NONE:
            return code, ()
        share = _decode_share(bytes(response.assignment))
        self._journal.note(
            Assigned(began, identity.group, identity.generation, identity.owner, identity.member_id, share)
        )
        return code, share

    async def heartbeat(self, identity: Identity) -> ErrorCode:
        self._workload.operation_count += 1
        request = heartbeat.HeartbeatRequest(
            identity.group, identity.generation, identity.member_id, identity.instance_id
        )
        version = self._draw_version(heartbeat.API, 0 if identity.instance_id is None else 3)
        response = await self._link.send(heartbeat.API, version, request)
        return self._notice(ErrorCode(response.error_code))

    async def leave(self, identity: Identity) -> ErrorCode:
        self._workload.operation_count += 1
        member = leave_group.MemberIdentity(identity.member_id, identity.instance_id)
        request = leave_group.LeaveGroupRequest(identity.group, identity.member_id, (member,))
        version = self._draw_version(leave_group.API, 0 if identity.instance_id is None else 3)
        response = await self._link.send(leave_group.API, version, request)
        if version >= _LEAVE_MEMBERS_SINCE and response.error_code == ErrorCode.NONE:
            return ErrorCode(response.members[0].error_code)
        return ErrorCode(response.error_code)

    async def commit(self, identity: Identity, partitions: Sequence[TopicPartition]) -> ErrorCode:
        """Commit an offset of its own for each place; the node's first word about it."""
        journal = self._journal
        offsets = tuple((partition, journal.next_offset()) for partition in partitions)
        commit = journal.next_commit()
        version = self._draw_version(offset_commit.API, 0 if identity.instance_id is None else 7)
        request = offset_commit.OffsetCommitRequest(
            group_id=identity.group,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            instance_id=identity.instance_id,
            topics=tuple(
                offset_commit.OffsetCommitRequestTopic(
                    name=partition.topic if version < _COMMIT_BY_ID_SINCE else "",
                    topic_id=self._workload.topics.id_of(partition.topic),
                    partitions=(
                        offset_commit.OffsetCommitRequestPartition(
                            partition.partition, offset, committed_metadata=_metadata(offset)
                        ),
                    ),
                )
                for partition, offset in offsets
            ),
        )
        self._workload.operation_count += 1
        journal.note(
            CommitSent(
                commit, identity.group, identity.owner, identity.member_id, identity.generation, offsets
            )
        )
        try:
            response = await self._link.send(offset_commit.API, version, request)
        except LinkLost:
            self._workload.sometimes.note("a commit's outcome stayed unknown")
            raise
        codes = [ErrorCode(topic.partitions[0].error_code) for topic in response.topics]
        journal.note(CommitAnswered(commit, tuple(_outcome(code) for code in codes)))
        if codes[0] in _INDEFINITE:
            self._workload.sometimes.note("a commit's outcome stayed unknown")
        return self._notice(codes[0])

    async def fetch_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> bool:
        """What is committed for the places, written down; False if the node would not say."""
        began = self._journal.now
        self._workload.operation_count += 1
        version = self._caller.draw_version(self._link, offset_fetch.API)
        asks_for_all = version >= _FETCH_ALL_SINCE and self._caller.rng.random() < 0.3
        seen = await self._ask_offsets(version, group, None if asks_for_all else partitions)
        if seen is None:
            return False
        is_of_former = self._caller.asks_former(group)
        for partition in partitions:
            offset, metadata = seen.get(partition, (NO_OFFSET, ""))
            if offset > 0 and metadata != _metadata(offset):
                offset = FORGED
            self._journal.note(OffsetSeen(began, group, partition, offset, is_of_former))
        return True

    async def _ask_offsets(
        self, version: int, group: str, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, tuple[int, str]] | None:
        """None where any part of the answer is an error. No partitions: all."""
        if version < _FETCH_GROUPS_SINCE:
            topics = tuple(
                offset_fetch.OffsetFetchRequestTopic(each.topic, (each.partition,))
                for each in partitions or ()
            )
            request = offset_fetch.OffsetFetchRequest(
                group_id=group, topics=None if partitions is None else topics
            )
            response = await self._link.send(offset_fetch.API, version, request)
            errors = [response.error_code]
            found: list[tuple[str, _Committed]] = [
                (topic.name, partition) for topic in response.topics for partition in topic.partitions
            ]
        else:
            asked = tuple(
                offset_fetch.OffsetFetchRequestTopics(
                    name=each.topic if version < _FETCH_BY_ID_SINCE else "",
                    topic_id=self._workload.topics.id_of(each.topic),
                    partition_indexes=(each.partition,),
                )
                for each in partitions or ()
            )
            wanted = offset_fetch.OffsetFetchRequestGroup(group, topics=None if partitions is None else asked)
            response = await self._link.send(
                offset_fetch.API, version, offset_fetch.OffsetFetchRequest(groups=(wanted,))
            )
            (answer,) = response.groups
            errors = [answer.error_code]
            found = [
                (topic.name or self._workload.topics.name_of(bytes(topic.topic_id)), partition)
                for topic in answer.topics
                for partition in topic.partitions
            ]
        codes = [ErrorCode(code) for code in [*errors, *(each.error_code for _, each in found)]]
        if any(self._notice(code) != ErrorCode.NONE for code in codes):
            return None
        return {
            TopicPartition(name, each.index): (each.committed_offset, each.metadata or "")
            for name, each in found
        }

    def _notice(self, code: ErrorCode) -> ErrorCode:
        """Whoever does not look after the group will not soon: the caller has to look for who does."""
        if code == ErrorCode.NOT_COORDINATOR:
            self._link.close()
        return code

    def _draw_version(self, api: Api[Q, R], version_min: int) -> int:
        return max(version_min, self._caller.draw_version(self._link, api))


def _outcome(code: ErrorCode) -> bool | None:
    if code == ErrorCode.NONE:
        return True
    return None if code in _INDEFINITE else False


def _metadata(offset: int) -> str:
    return "" if offset == NO_OFFSET else f"commit of {offset}"


def _encode_subscription(topics: Sequence[str]) -> bytes:
    names = b"".join(pack(">h", len(topic)) + topic.encode() for topic in topics)
    return pack(">hi", 0, len(topics)) + names + pack(">i", -1)


def _encode_share(share: Sequence[TopicPartition]) -> bytes:
    """Nobody but members looks into it."""
    return " ".join(str(partition) for partition in share).encode()


def _decode_share(content: bytes) -> tuple[TopicPartition, ...]:
    names = [name.rpartition("-") for name in content.decode().split()]
    return tuple(TopicPartition(topic, int(index)) for topic, _, index in names)
