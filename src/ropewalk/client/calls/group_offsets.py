"""The offsets that groups have committed: read, set and removed, by members and by others."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.coordinators import Coordinators, only_group
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import offset_commit, offset_delete, offset_fetch

_NAMED_TOPICS_VERSION_MAX: Final = 9
"""The last version of OffsetCommit and OffsetFetch that says a topic's name. A group may hold offsets of topics
that are gone, whose id nobody knows."""
_MANY_GROUPS_SINCE: Final = 8

_COORDINATOR_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class Committed(Struct, frozen=True, gc=False):
    """The next offset a group would read of a partition."""

    offset: int
    leader_epoch: int
    metadata: str


class GroupIdentity(Struct, frozen=True, gc=False):
    """A member of a group, in a generation of it: what a former one commits is refused. Without a member it is nobody."""

    group: str
    generation: int = -1
    """Or the member's epoch, in groups with assignment by the server."""
    member_id: str = ""
    instance_id: str | None = None


class OffsetToCommit(Struct, frozen=True, gc=False):
    """The next offset to be read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


PartitionOutcomes = dict[TopicPartition, RemoteError | None]


async def fetch(
    coordinators: Coordinators,
    group: str,
    *,
    deadline_ms: float,
    partitions: Iterable[TopicPartition] | None = None,
    member: GroupIdentity | None = None,
    require_stable: bool = False,
) -> dict[TopicPartition, Committed]:
    """Of these partitions, or of all. `require_stable` waits while a transaction is about to commit offsets of them."""
    by_topic = None if partitions is None else _by_topic(partitions)
    asked = offset_fetch.OffsetFetchRequestGroup(
        group,
        member_id=None if member is None else member.member_id or None,
        member_epoch=-1 if member is None else member.generation,
        topics=None
        if by_topic is None
        else tuple(
            offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=tuple(indexes))
            for name, indexes in by_topic.items()
        ),
    )
    request = offset_fetch.OffsetFetchRequest(
        group_id=group,
        topics=None
        if by_topic is None
        else tuple(
            offset_fetch.OffsetFetchRequestTopic(name, tuple(indexes)) for name, indexes in by_topic.items()
        ),
        groups=(asked,),
        require_stable=require_stable,
    )

    async def once(connection: Connection) -> dict[TopicPartition, Committed]:
        version = connection.versions.choose(offset_fetch.API, version_max=_NAMED_TOPICS_VERSION_MAX)
        response = await connection.call(
            offset_fetch.API, request, deadline_ms=deadline_ms, version_max=_NAMED_TOPICS_VERSION_MAX
        )
        if version < _MANY_GROUPS_SINCE:
            return _committed(group, response.error_code, response.topics)
        answer = only_group(response.groups, offset_fetch.API.name)
        return _committed(group, answer.error_code, answer.topics)

    return await coordinators.ask(group, once, deadline_ms=deadline_ms)


async def commit(
    coordinators: Coordinators,
    member: GroupIdentity,
    offsets: Mapping[TopicPartition, OffsetToCommit],
    *,
    deadline_ms: float,
) -> PartitionOutcomes:
    group = member.group

    async def once(connection: Connection) -> PartitionOutcomes:
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            instance_id=member.instance_id,
            topics=tuple(
                offset_commit.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        _to_commit(index, offsets[TopicPartition(topic, index)]) for index in indexes
                    ),
                )
                for topic, indexes in _by_topic(offsets).items()
            ),
        )
        response = await connection.call(
            offset_commit.API, request, deadline_ms=deadline_ms, version_max=_NAMED_TOPICS_VERSION_MAX
        )
        return _outcomes(
            (topic.name, each.index, each.error_code)
            for topic in response.topics
            for each in topic.partitions
        )

    return await coordinators.ask(group, once, deadline_ms=deadline_ms) if offsets else {}


async def delete(
    coordinators: Coordinators, group: str, partitions: Iterable[TopicPartition], *, deadline_ms: float
) -> PartitionOutcomes:
    by_topic = _by_topic(partitions)

    async def once(connection: Connection) -> PartitionOutcomes:
        request = offset_delete.OffsetDeleteRequest(
            group,
            tuple(
                offset_delete.OffsetDeleteRequestTopic(
                    topic, tuple(map(offset_delete.OffsetDeleteRequestPartition, indexes))
                )
                for topic, indexes in by_topic.items()
            ),
        )
        response = await connection.call(offset_delete.API, request, deadline_ms=deadline_ms)
        if response.error_code != ErrorCode.NONE:
            raise RemoteError(response.error_code, about=group)
        return _outcomes(
            (topic.name, each.index, each.error_code)
            for topic in response.topics
            for each in topic.partitions
        )

    return await coordinators.ask(group, once, deadline_ms=deadline_ms) if by_topic else {}


def _to_commit(index: int, offset: OffsetToCommit) -> offset_commit.OffsetCommitRequestPartition:
    return offset_commit.OffsetCommitRequestPartition(
        index, offset.offset, offset.leader_epoch, offset.metadata
    )


def _committed(
    group: str,
    code: int,
    topics: Iterable[offset_fetch.OffsetFetchResponseTopic | offset_fetch.OffsetFetchResponseTopics],
) -> dict[TopicPartition, Committed]:
    if code != ErrorCode.NONE:
        raise RemoteError(code, about=group)
    found: dict[TopicPartition, Committed] = {}
    for topic in topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.index)
            if each.error_code != ErrorCode.NONE:
                raise RemoteError(each.error_code, about=f"{group}: {partition}")
            if each.committed_offset >= 0:
                found[partition] = Committed(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
    return dict(sorted(found.items()))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        indexes.setdefault(partition.topic, []).append(partition.partition)
    return indexes


def _outcomes(answers: Iterable[tuple[str, int, int]]) -> PartitionOutcomes:
    """Where the coordinator is elsewhere nothing was done: have the call repeated."""
    outcomes: PartitionOutcomes = {}
    for topic, index, code in answers:
        partition = TopicPartition(topic, index)
        outcomes[partition] = None
        if code != ErrorCode.NONE:
            outcomes[partition] = error = RemoteError(code, about=str(partition))
            if error.code in _COORDINATOR_ELSEWHERE:
                raise error
    return outcomes
