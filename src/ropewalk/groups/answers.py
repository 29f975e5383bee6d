"""What a group answers. Where an answer is about several things, it has one entry for each, in the order asked."""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.errors import GroupError, UnstableOffset


class GroupState(Enum):
    """The states of a group, by the names that tools print."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """A generation is to begin; members are awaited."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation has begun; the leader's assignments are awaited."""
    STABLE = "Stable"
    ASSIGNING = "Assigning"
    """What members are to have has changed and will be worked out with the next heartbeat (KIP-848)."""
    RECONCILING = "Reconciling"
    """Members are on their way to what they are to have (KIP-848)."""


class GroupType(Enum):
    """Who makes the assignments, by the names that tools print."""

    CLASSIC = "classic"
    """A member does."""
    CONSUMER = "consumer"
    """The broker does."""


class JoinedMember(Struct, frozen=True, gc=False):
    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(Struct, frozen=True):
    """A generation has begun with the caller in it; it must sync next."""

    generation: int
    protocol_type: str
    protocol: str
    leader_id: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()
    """Everyone, for the leader; nobody, for the others."""
    skip_assignment: bool = False
    """The caller leads, but the assignments of this generation are made already (KIP-814)."""


class Synced(Struct, frozen=True, gc=False):
    protocol_type: str
    protocol: str
    assignment: bytes


class HeartbeatTaken(Struct, frozen=True, gc=False):
    """The session goes on, and the generation too."""


class ConsumerHeartbeatTaken(Struct, frozen=True):
    """The member goes on, in this epoch."""

    member_id: str
    epoch: int
    interval_ms: int
    """When to come again."""
    assigned: Share | None
    """All that it has; None: as before."""


class Left(Struct, frozen=True):
    members: tuple[GroupError | None, ...]


class Committed(Struct, frozen=True):
    offsets: tuple[GroupError | None, ...]


class CommittedOffset(Struct, frozen=True, gc=False):
    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int


class FetchedOffset(Struct, frozen=True, gc=False):
    topic_partition: TopicPartition
    committed: CommittedOffset | UnstableOffset | None
    """None: the group has committed nothing there, which is not the same as zero."""


class OffsetsFetched(Struct, frozen=True):
    offsets: tuple[FetchedOffset, ...]


class ListedGroup(Struct, frozen=True, gc=False):
    group_id: str
    protocol_type: str
    """Empty for a group that only stores offsets."""
    state: GroupState
    group_type: GroupType = GroupType.CLASSIC


class GroupsListed(Struct, frozen=True):
    groups: tuple[ListedGroup, ...]


class DescribedMember(Struct, frozen=True, gc=False):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    """Empty, as the assignment is, unless the group is stable."""
    assignment: bytes


class DescribedGroup(Struct, frozen=True):
    group_id: str
    state: GroupState
    protocol_type: str
    protocol: str
    """Empty unless the group is stable."""
    members: tuple[DescribedMember, ...]


class GroupsDescribed(Struct, frozen=True):
    groups: tuple[DescribedGroup | GroupError, ...]


class DescribedConsumerMember(Struct, frozen=True):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    pattern: str | None
    assigned: Share
    target: Share
    is_classic: bool


class DescribedConsumerGroup(Struct, frozen=True):
    group_id: str
    state: GroupState
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedConsumerMember, ...]


class ConsumerGroupsDescribed(Struct, frozen=True):
    groups: tuple[DescribedConsumerGroup | GroupError, ...]


class GroupsDeleted(Struct, frozen=True):
    groups: tuple[GroupError | None, ...]


class OffsetsDeleted(Struct, frozen=True):
    partitions: tuple[GroupError | None, ...]


Answer: TypeAlias = (
    Joined
    | Synced
    | HeartbeatTaken
    | ConsumerHeartbeatTaken
    | Left
    | Committed
    | OffsetsFetched
    | GroupsListed
    | GroupsDescribed
    | ConsumerGroupsDescribed
    | GroupsDeleted
    | OffsetsDeleted
)
