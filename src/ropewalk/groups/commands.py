"""What is asked of a group. The doors build these; nothing in them depends on a version of a protocol."""

from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ropewalk.base import state_machine
from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import (
    Committed,
    ConsumerGroupsDescribed,
    ConsumerHeartbeatTaken,
    GroupsDeleted,
    GroupsDescribed,
    GroupsListed,
    HeartbeatTaken,
    Joined,
    Left,
    OffsetsDeleted,
    OffsetsFetched,
    Synced,
)
from ropewalk.groups.assignors.model import Share

T_co = TypeVar("T_co", covariant=True)

GENERATION_NONE: Final = -1
"""The generation of a commit that comes from no member: an administrator, or a consumer that assigns itself."""

EPOCH_JOIN: Final = 0
EPOCH_LEAVE: Final = -1
EPOCH_AWAY: Final = -2
"""What a member of the consumer protocol says as its epoch to come, to go, and to go for a while."""


class Command(state_machine.Command[T_co], Generic[T_co], frozen=True):
    """Of groups."""


class Protocol(Struct, frozen=True, gc=False):
    """One way in which a member could be assigned its share, and what it tells the leader about itself then."""

    name: str
    metadata: bytes


MayDescribe: TypeAlias = Callable[[str], bool]
"""Whether whoever asks may know that the topic of that name is there; patterns are looked up among such topics alone."""


class Join(Command[Joined], frozen=True):
    """Become a member, or take part in the next generation."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """How long a rebalance waits for this member; not positive: as long as its session."""
    protocol_type: str
    protocols: tuple[Protocol, ...]
    """In order of preference."""
    member_id: str = ""
    """Empty at first; then the id that an answer has given."""
    instance_id: str | None = None
    """A static member keeps its place over a restart, under this name (KIP-345)."""
    client_id: str = ""
    client_host: str = ""
    requires_known_member: bool = False
    """The client understands `MemberIdRequired` (KIP-394)."""
    understands_skip_assignment: bool = False
    """The client can be told that it leads but need not assign (KIP-814)."""
    may_describe: MayDescribe | None = None


class Assignment(Struct, frozen=True, gc=False):
    member_id: str
    assignment: bytes


class Sync(Command[Synced], frozen=True):
    """Ask for one's assignment; the leader brings everyone's."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    """None where the client does not say; so is `protocol_name`."""
    protocol_name: str | None = None
    assignments: tuple[Assignment, ...] = ()


class Heartbeat(Command[HeartbeatTaken], frozen=True, gc=False):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None


class LeavingMember(Struct, frozen=True, gc=False):
    """By member id, or, as administrators do, by instance id with an empty member id."""

    member_id: str
    instance_id: str | None = None


class Leave(Command[Left], frozen=True):
    group_id: str
    members: tuple[LeavingMember, ...]


class ConsumerHeartbeat(Command[ConsumerHeartbeatTaken], frozen=True):
    """All that a member of the consumer protocol ever says (KIP-848). None is as it was."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    """A regular expression for topics; empty: none any more."""
    assignor: str | None = None
    owned: Share | None = None
    """What the member has and has not given up yet."""
    client_id: str = ""
    client_host: str = ""
    makes_own_id: bool = True
    """Clients choose their member ids themselves, except for the oldest."""
    may_describe: MayDescribe | None = None


class OffsetToCommit(Struct, frozen=True, gc=False):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Commit(Command[Committed], frozen=True):
    """Store how far the group has read."""

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    generation: int = GENERATION_NONE
    """Or the member's epoch."""
    member_id: str = ""
    instance_id: str | None = None
    speaks_epochs: bool = True
    """Whether the request can name a member's epoch, and so be told that it is over."""


class CommitInTransaction(Command[Committed], frozen=True):
    """Store how far the group has read, if the transaction of the producer is committed.

    Who sends it says which member it is since KIP-447, and nothing at all before: both are taken.
    """

    group_id: str
    producer_id: int
    producer_epoch: int
    offsets: tuple[OffsetToCommit, ...]
    generation: int = GENERATION_NONE
    member_id: str = ""
    instance_id: str | None = None


class FetchOffsets(Command[OffsetsFetched], frozen=True):
    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    """None: all that the group has committed."""
    require_stable: bool = False
    """Refuse where a transaction is open that may change the offset (KIP-447)."""
    member_id: str | None = None
    """Who asks, where it says so; only members of the consumer protocol do."""
    member_epoch: int = GENERATION_NONE


class ListGroups(Command[GroupsListed], frozen=True):
    states: tuple[str, ...] = ()
    """By the names of `GroupState`, in any case; empty: all."""
    types: tuple[str, ...] = ()
    """By the names of `GroupType`, likewise."""


class DescribeGroups(Command[GroupsDescribed], frozen=True):
    group_ids: tuple[str, ...]


class DescribeConsumerGroups(Command[ConsumerGroupsDescribed], frozen=True):
    """Groups whose assignments are made here; others are unknown as far as this goes."""

    group_ids: tuple[str, ...]


class DeleteGroups(Command[GroupsDeleted], frozen=True):
    group_ids: tuple[str, ...]


class DeleteOffsets(Command[OffsetsDeleted], frozen=True):
    group_id: str
    partitions: tuple[TopicPartition, ...]


AnyCommand: TypeAlias = (
    Join
    | Sync
    | Heartbeat
    | Leave
    | ConsumerHeartbeat
    | Commit
    | CommitInTransaction
    | FetchOffsets
    | ListGroups
    | DescribeGroups
    | DescribeConsumerGroups
    | DeleteGroups
    | DeleteOffsets
)
