"""ConsumerGroupDescribe: groups with server-side assignment, with what their members have and are to have (KIP-848).

Behaviour worth knowing
    A classic group is GROUP_ID_NOT_FOUND here; tools then ask DescribeGroups about it.
    Partitions of topics that are gone are left out.
    Where nothing is checked, every operation that exists is allowed to whoever asks; else a guard says which are (`kafka/rights`).
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicId
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.hosting.shard import Asked
from ropewalk.groups.answers import ConsumerGroupsDescribed, DescribedConsumerMember
from ropewalk.groups.answers import DescribedConsumerGroup as Description
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import DescribeConsumerGroups
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.operations import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)


async def handle(
    request: ConsumerGroupDescribeRequest, caller: Caller, *, groups: Groups, image: Image
) -> ConsumerGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_NOT_ASKED
    described: list[DescribedGroup] = []
    for group_id in dict.fromkeys(request.group_ids):
        await caller.next_item()
        described.append(await _describe(group_id, _ask(group_id, groups), image, operations))
    return ConsumerGroupDescribeResponse(throttle_ms=0, groups=tuple(described))


def _ask(group_id: str, groups: Groups) -> Asked[ConsumerGroupsDescribed] | RopewalkError:
    try:
        return groups.ask(group_id, DescribeConsumerGroups((group_id,)))
    except RopewalkError as error:
        return error


async def _describe(
    group_id: str, asked: Asked[ConsumerGroupsDescribed] | RopewalkError, image: Image, operations: int
) -> DescribedGroup:
    if isinstance(asked, RopewalkError):
        return _refused(group_id, asked)
    try:
        answer = await asked.answer
    except RopewalkError as error:
        return _refused(group_id, error)
    (group,) = answer.groups
    if not isinstance(group, Description):
        return _refused(group_id, group)
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=tuple(_member(member, image) for member in group.members),
        authorized_operations=operations,
    )


def _member(member: DescribedConsumerMember, image: Image) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.pattern,
        assignment=Assignment(_by_topic(member.assigned, image)),
        target_assignment=Assignment(_by_topic(member.target, image)),
        member_type=0 if member.is_classic else 1,
    )


def _by_topic(share: Share, image: Image) -> tuple[TopicPartitions, ...]:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, index in sorted(share):
        by_topic.setdefault(topic_id, []).append(index)
    return tuple(
        TopicPartitions(topic_id, image.topics_by_id[topic_id].name, tuple(indexes))
        for topic_id, indexes in by_topic.items()
        if topic_id in image.topics_by_id
    )


def _refused(group_id: str, error: RopewalkError) -> DescribedGroup:
    return DescribedGroup(
        error_code=code_for(error),
        error_message=str(error),
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )
