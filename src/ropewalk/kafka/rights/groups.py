"""Guards of groups: their members, their offsets, and what is told of them.

Behaviour worth knowing
    Who waits in a rebalance is asked again when the answer comes: the right may be gone by then.
    What a description tells of topics is for those who may describe them. Subscriptions of the classic protocol are bytes that nobody
    looks into, as in Kafka.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.operations import OPERATIONS_NOT_ASKED
from ropewalk.kafka.rights.needs import Guard
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.security.access import Operation, ResourceType
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import consumer_group_describe as managed
from ropewalk.wire.messages import offset_commit, offset_delete, offset_fetch
from ropewalk.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ropewalk.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ropewalk.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ropewalk.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ropewalk.wire.messages.heartbeat import HeartbeatResponse
from ropewalk.wire.messages.join_group import JoinGroupResponse
from ropewalk.wire.messages.leave_group import LeaveGroupResponse
from ropewalk.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ropewalk.wire.messages.sync_group import SyncGroupResponse
from ropewalk.wire.types import Message

_CODE: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_WHY: Final = "not authorized on the group"
_NULL_PROTOCOL_SINCE: Final = 7
_MANY_COORDINATORS_SINCE: Final = 4
_MANY_GROUPS_SINCE: Final = 8
_WHOLE_ERROR_SINCE: Final = 2
_NOBODY: Final = -1
_TRANSACTION: Final = 1
_GROUP: Final = 0


def _for_members(refused: Callable[[Any, int], Message]) -> Guard:
    async def guard(request: Any, caller: Caller, rights: Rights, handle: Handle) -> Message | None:
        if not rights.group(caller, Operation.READ, request.group_id):
            return refused(request, caller.version)
        answer = await handle(request, caller)
        if not rights.group(caller, Operation.READ, request.group_id):
            return refused(request, caller.version)
        return answer

    return guard


JOIN_GROUP: Final = _for_members(
    lambda request, version: JoinGroupResponse(
        error_code=_CODE,
        protocol_name=None if version >= _NULL_PROTOCOL_SINCE else "",
        member_id=request.member_id,
    )
)
SYNC_GROUP: Final = _for_members(lambda _request, _version: SyncGroupResponse(error_code=_CODE))
HEARTBEAT: Final = _for_members(lambda _request, _version: HeartbeatResponse(error_code=_CODE))
LEAVE_GROUP: Final = _for_members(lambda _request, _version: LeaveGroupResponse(error_code=_CODE))


async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    if not rights.group(caller, Operation.READ, request.group_id):
        return ConsumerGroupHeartbeatResponse(0, _CODE, _WHY)
    for name in request.subscribed_topic_names or ():
        if not rights.topic(caller, Operation.DESCRIBE, name):
            return ConsumerGroupHeartbeatResponse(0, _TOPIC_CODE, "not authorized on all topics")
    return await handle(request, caller)


async def find_coordinator(
    request: FindCoordinatorRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    def refusal(key: str) -> ErrorCode | None:
        if request.key_type == _TRANSACTION and not rights.transactional_id(caller, Operation.DESCRIBE, key):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.key_type == _GROUP and not rights.group(caller, Operation.DESCRIBE, key):
            return _CODE
        return None  # of other types there are no coordinators, whoever asks

    if caller.version < _MANY_COORDINATORS_SINCE:
        code = refusal(request.key)
        if code is None:
            return await handle(request, caller)
        return FindCoordinatorResponse(error_code=code, error_message=_WHY, node_id=_NOBODY, port=_NOBODY)
    refused = {key: code for key in request.coordinator_keys if (code := refusal(key)) is not None}
    if not refused:
        return await handle(request, caller)
    allowed = tuple(key for key in request.coordinator_keys if key not in refused)
    answer = await handle(structs.replace(request, coordinator_keys=allowed), caller)
    assert isinstance(answer, FindCoordinatorResponse)
    refusals = [Coordinator(key, _NOBODY, "", _NOBODY, code, _WHY) for key, code in refused.items()]
    return structs.replace(answer, coordinators=(*answer.coordinators, *refusals))


async def offset_commit_guard(
    request: offset_commit.OffsetCommitRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    code = _CODE
    allowed: list[offset_commit.OffsetCommitRequestTopic] = []
    refused = list(request.topics)
    if rights.group(caller, Operation.READ, request.group_id):
        code = _TOPIC_CODE
        allowed, refused = rights.split(caller, Operation.READ, request.topics)
        if not refused:
            return await handle(request, caller)
    answer: Message | None = offset_commit.OffsetCommitResponse()
    if allowed:
        answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    assert isinstance(answer, offset_commit.OffsetCommitResponse)
    refusals = [
        offset_commit.OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            tuple(offset_commit.OffsetCommitResponsePartition(each.index, code) for each in topic.partitions),
        )
        for topic in refused
    ]
    return structs.replace(answer, topics=(*answer.topics, *refusals))


async def offset_fetch_guard(
    request: offset_fetch.OffsetFetchRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    if caller.version < _MANY_GROUPS_SINCE:
        return await _one_group(request, caller, rights, handle)
    allowed: list[offset_fetch.OffsetFetchRequestGroup] = []
    hidden: list[list[offset_fetch.OffsetFetchRequestTopics]] = []
    """Of each group that is allowed, the topics that were named and are refused."""
    refused: list[offset_fetch.OffsetFetchResponseGroup] = []
    for group in request.groups:
        if not rights.group(caller, Operation.DESCRIBE, group.group_id):
            refused.append(offset_fetch.OffsetFetchResponseGroup(group.group_id, (), _CODE))
        elif group.topics is None:
            allowed.append(group)
            hidden.append([])
        else:
            topics, others = rights.split(caller, Operation.DESCRIBE, group.topics)
            allowed.append(structs.replace(group, topics=tuple(topics)))
            hidden.append(others)
    answer = await handle(structs.replace(request, groups=tuple(allowed)), caller)
    assert isinstance(answer, offset_fetch.OffsetFetchResponse)
    groups = [
        structs.replace(told, topics=_told_of_group(told, asked, others, caller, rights))
        for told, asked, others in zip(answer.groups, allowed, hidden, strict=True)
    ]
    return structs.replace(answer, groups=(*groups, *refused))


def _told_of_group(
    group: offset_fetch.OffsetFetchResponseGroup,
    asked: offset_fetch.OffsetFetchRequestGroup,
    hidden: list[offset_fetch.OffsetFetchRequestTopics],
    caller: Caller,
    rights: Rights,
) -> tuple[offset_fetch.OffsetFetchResponseTopics, ...]:
    if asked.topics is None:
        return tuple(rights.split(caller, Operation.DESCRIBE, group.topics)[0])
    if group.error_code:
        return group.topics
    refused = [
        offset_fetch.OffsetFetchResponseTopics(
            topic.name,
            topic.topic_id,
            tuple(
                offset_fetch.OffsetFetchResponsePartitions(index, -1, error_code=_TOPIC_CODE)
                for index in topic.partition_indexes
            ),
        )
        for topic in hidden
    ]
    return (*group.topics, *refused)


async def _one_group(
    request: offset_fetch.OffsetFetchRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    """Up to v7; v0 and v1 have no place for an error but the partitions."""
    if not rights.group(caller, Operation.DESCRIBE, request.group_id):
        topics = request.topics or () if caller.version < _WHOLE_ERROR_SINCE else ()
        return offset_fetch.OffsetFetchResponse(
            topics=tuple(_unfetched(topic, _CODE) for topic in topics), error_code=_CODE
        )
    if request.topics is None:
        answer = await handle(request, caller)
        assert isinstance(answer, offset_fetch.OffsetFetchResponse)
        return structs.replace(
            answer, topics=tuple(rights.split(caller, Operation.DESCRIBE, answer.topics)[0])
        )
    allowed, refused = rights.split(caller, Operation.DESCRIBE, request.topics)
    answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    assert isinstance(answer, offset_fetch.OffsetFetchResponse)
    refusals = [_unfetched(topic, _TOPIC_CODE) for topic in refused]
    return structs.replace(answer, topics=(*answer.topics, *refusals))


def _unfetched(
    topic: offset_fetch.OffsetFetchRequestTopic, code: ErrorCode
) -> offset_fetch.OffsetFetchResponseTopic:
    return offset_fetch.OffsetFetchResponseTopic(
        topic.name,
        tuple(
            offset_fetch.OffsetFetchResponsePartition(index, -1, error_code=code)
            for index in topic.partition_indexes
        ),
    )


async def offset_delete_guard(
    request: offset_delete.OffsetDeleteRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    if not rights.group(caller, Operation.DELETE, request.group_id) or not rights.deletion(caller):
        return offset_delete.OffsetDeleteResponse(_CODE, 0, ())
    allowed, refused = rights.split(caller, Operation.READ, request.topics)
    if not refused:
        return await handle(request, caller)
    answer: Message | None = offset_delete.OffsetDeleteResponse(ErrorCode.NONE, 0, ())
    if allowed:
        answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    assert isinstance(answer, offset_delete.OffsetDeleteResponse)
    if answer.error_code:
        return answer
    refusals = [
        offset_delete.OffsetDeleteResponseTopic(
            topic.name,
            tuple(
                offset_delete.OffsetDeleteResponsePartition(each.index, _TOPIC_CODE)
                for each in topic.partitions
            ),
        )
        for topic in refused
    ]
    return structs.replace(answer, topics=(*answer.topics, *refusals))


async def describe_groups(
    request: DescribeGroupsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    allowed, refused = _split(request.groups, Operation.DESCRIBE, caller, rights)
    answer = await handle(structs.replace(request, groups=allowed), caller)
    assert isinstance(answer, DescribeGroupsResponse)
    described = [
        structs.replace(group, authorized_operations=rights.bits(caller, ResourceType.GROUP, group.group_id))
        if group.authorized_operations != OPERATIONS_NOT_ASKED
        else group
        for group in answer.groups
    ]
    refusals = [DescribedGroup(_CODE, _WHY, group_id) for group_id in refused]
    return structs.replace(answer, groups=(*described, *refusals))


async def consumer_group_describe_guard(
    request: managed.ConsumerGroupDescribeRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    allowed, refused = _split(request.group_ids, Operation.DESCRIBE, caller, rights)
    answer = await handle(structs.replace(request, group_ids=allowed), caller)
    assert isinstance(answer, managed.ConsumerGroupDescribeResponse)
    described = [_told_of_managed(group, caller, rights) for group in answer.groups]
    refusals = [_undescribed(group_id, _CODE, _WHY) for group_id in refused]
    return structs.replace(answer, groups=(*described, *refusals))


def _told_of_managed(group: managed.DescribedGroup, caller: Caller, rights: Rights) -> managed.DescribedGroup:
    assigned = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not all(rights.topic(caller, Operation.DESCRIBE, name) for name in assigned):
        return _undescribed(group.group_id, _TOPIC_CODE, "not authorized on all topics of its members")
    members = tuple(
        structs.replace(
            member,
            subscribed_topic_names=tuple(
                name
                for name in member.subscribed_topic_names
                if rights.topic(caller, Operation.DESCRIBE, name)
            ),
        )
        for member in group.members
    )
    if group.authorized_operations == OPERATIONS_NOT_ASKED:
        return structs.replace(group, members=members)
    operations = rights.bits(caller, ResourceType.GROUP, group.group_id)
    return structs.replace(group, members=members, authorized_operations=operations)


def _undescribed(group_id: str, code: ErrorCode, why: str) -> managed.DescribedGroup:
    return managed.DescribedGroup(code, why, group_id, "", 0, 0, "", ())


async def list_groups(
    request: ListGroupsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    answer = await handle(request, caller)
    assert isinstance(answer, ListGroupsResponse)
    if rights.cluster(caller, Operation.DESCRIBE):
        return answer
    listed = [each for each in answer.groups if rights.group(caller, Operation.DESCRIBE, each.group_id)]
    return structs.replace(answer, groups=tuple(listed))


async def delete_groups(
    request: DeleteGroupsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    allowed, refused = _split(request.groups_names, Operation.DELETE, caller, rights)
    if not rights.deletion(caller):
        allowed, refused = (), tuple(dict.fromkeys(request.groups_names))
    answer = await handle(structs.replace(request, groups_names=allowed), caller)
    assert isinstance(answer, DeleteGroupsResponse)
    refusals = [DeletableGroupResult(group_id, _CODE, _WHY) for group_id in refused]
    return structs.replace(answer, results=(*answer.results, *refusals))


def _split(
    group_ids: tuple[str, ...], operation: Operation, caller: Caller, rights: Rights
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Groups on which the operation is allowed, and the others, each once."""
    refused = {group_id: None for group_id in group_ids if not rights.group(caller, operation, group_id)}
    return tuple(group_id for group_id in group_ids if group_id not in refused), tuple(refused)
