"""What members and administrators of groups are refused with.

RopewalkError
  GroupError
    InvalidGroupId          empty, or longer than a record can hold
    InvalidInstanceId       a static member's name that is empty or longer than a record can hold
    InvalidSessionTimeout   outside the bounds of the settings
    InconsistentProtocol    no protocol that all members speak, or another protocol type
    MemberIdRequired        join again with the member id that is given here (KIP-394)
    UnknownMember           no such member; join again with an empty member id
    FencedInstance          another process has taken over this static member (KIP-345)
    StaleGeneration         a generation that is not the current one
    RebalanceInProgress     join again: a new generation is being prepared
    GroupFull               as many members as the settings allow
    OffsetMetadataTooLarge  more metadata with an offset than the settings allow
    GroupNotEmpty           only a group without members can be deleted
    UnknownGroup            no such group
    SubscribedToTopic       the offsets of a topic that members read cannot be deleted
    UnstableOffset          an open transaction may be about to change the offset; ask again

    of groups whose assignments are made here (KIP-848)
    InvalidHeartbeat        a heartbeat that says too little, or what cannot be
    InvalidPattern          not a regular expression
    UnsupportedAssignor     no assignor of that name
    FencedMemberEpoch       an epoch that the member is not in; give everything up and join again
    StaleMemberEpoch        a commit or a fetch in an epoch that the member is no longer in
    UnreleasedInstance      the static member of that name has not left
    EpochsNotSpoken         the request's version cannot name epochs
"""

from ropewalk.base.errors import RopewalkError


class GroupError(RopewalkError):
    """The root of what is refused here. Nothing has changed for the caller, except where a subclass says so."""


class InvalidGroupId(GroupError):
    pass


class InvalidInstanceId(GroupError):
    pass


class InvalidSessionTimeout(GroupError):
    pass


class InconsistentProtocol(GroupError):
    pass


class MemberIdRequired(GroupError):
    """The caller has been given a place, under `member_id`, that is kept for one session timeout."""

    def __init__(self, group_id: str, member_id: str) -> None:
        super().__init__(f"join {group_id} again as {member_id}")
        self.member_id = member_id


class UnknownMember(GroupError):
    pass


class FencedInstance(GroupError):
    pass


class StaleGeneration(GroupError):
    pass


class RebalanceInProgress(GroupError):
    pass


class GroupFull(GroupError):
    """A member that had a place and may not keep it has lost it."""


class OffsetMetadataTooLarge(GroupError):
    pass


class GroupNotEmpty(GroupError):
    pass


class UnknownGroup(GroupError):
    pass


class SubscribedToTopic(GroupError):
    pass


class UnstableOffset(GroupError):
    pass


class InvalidHeartbeat(GroupError):
    pass


class InvalidPattern(GroupError):
    pass


class UnsupportedAssignor(GroupError):
    pass


class FencedMemberEpoch(GroupError):
    pass


class StaleMemberEpoch(GroupError):
    pass


class UnreleasedInstance(GroupError):
    pass


class EpochsNotSpoken(GroupError):
    pass
