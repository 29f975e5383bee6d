"""Groups whose assignments are made here, as administrators see them."""

from ropewalk.groups.answers import (
    DescribedConsumerGroup,
    DescribedConsumerMember,
    GroupType,
    ListedGroup,
)
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.overview import GroupOverview
from ropewalk.groups.subscription import CONSUMER_PROTOCOL_TYPE


def consumer_group_overview(group: ConsumerGroup) -> GroupOverview:
    return GroupOverview(group.group_id, group.state, len(group.members), GroupType.CONSUMER, group.epoch)


def listed_consumer_group(group: ConsumerGroup) -> ListedGroup:
    return ListedGroup(group.group_id, CONSUMER_PROTOCOL_TYPE, group.state, GroupType.CONSUMER)


def described_consumer_group(group: ConsumerGroup, assignor: str) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group.group_id,
        state=group.state,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=assignor,
        members=tuple(
            DescribedConsumerMember(
                member_id=member_id,
                instance_id=details.instance_id,
                rack_id=details.rack_id,
                epoch=group.current(member_id).epoch,
                client_id=details.client_id,
                client_host=details.client_host,
                topics=details.topics,
                pattern=details.pattern,
                assigned=group.current(member_id).assigned,
                target=group.target(member_id),
                is_classic=details.classic is not None,
            )
            for member_id, details in group.members.items()
        ),
    )
