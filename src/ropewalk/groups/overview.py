"""Groups as administrators see them. A group that only stores offsets has no members, and is empty."""

from msgspec import Struct

from ropewalk.groups.answers import DescribedGroup, DescribedMember, GroupState, GroupType, ListedGroup
from ropewalk.groups.group import Group


class GroupOverview(Struct, frozen=True, gc=False):
    group_id: str
    state: GroupState
    member_count: int
    group_type: GroupType = GroupType.CLASSIC
    generation: int = 0
    """How often the group was shared out anew: its generation, or its epoch where assignments are made here."""


def overview(group_id: str, group: Group | None) -> GroupOverview:
    if group is None:
        return GroupOverview(group_id, GroupState.EMPTY, 0)
    return GroupOverview(group_id, group.state, len(group.members), generation=group.generation)


def listed_group(group_id: str, group: Group | None) -> ListedGroup:
    if group is None:
        return ListedGroup(group_id, "", GroupState.EMPTY)
    return ListedGroup(group_id, group.protocol_type, group.state)


def described_group(group_id: str, group: Group | None) -> DescribedGroup:
    """Metadata and assignments are shown in a stable group only: before that they belong to no generation."""
    if group is None:
        return DescribedGroup(group_id, GroupState.EMPTY, "", "", ())
    is_stable = group.state is GroupState.STABLE
    protocol = group.protocol if is_stable else None
    return DescribedGroup(
        group_id=group_id,
        state=group.state,
        protocol_type=group.protocol_type,
        protocol=protocol or "",
        members=tuple(
            DescribedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=member.metadata_for(protocol),
                assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ),
    )
