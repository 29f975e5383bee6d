"""What is asked of a group. The doors build these; nothing in them depends on a version of a protocol."""

from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

GENERATION_NONE: Final = -1
"""The generation of a commit that comes from no member: an administrator, or a consumer that assigns itself."""


class Protocol(Struct, frozen=True, gc=False):
    """One way in which a member could be assigned its share, and what it tells the leader about itself then."""

    name: str
    metadata: bytes


class Join(Struct, frozen=True):
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


class Assignment(Struct, frozen=True, gc=False):
    member_id: str
    assignment: bytes


class Sync(Struct, frozen=True):
    """Ask for one's assignment; the leader brings everyone's."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    """None where the client does not say; so is `protocol_name`."""
    protocol_name: str | None = None
    assignments: tuple[Assignment, ...] = ()


class Heartbeat(Struct, frozen=True, gc=False):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None


class LeavingMember(Struct, frozen=True, gc=False):
    """By member id, or, as administrators do, by instance id with an empty member id."""

    member_id: str
    instance_id: str | None = None


class Leave(Struct, frozen=True):
    group_id: str
    members: tuple[LeavingMember, ...]


class OffsetToCommit(Struct, frozen=True, gc=False):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Commit(Struct, frozen=True):
    """Store how far the group has read."""

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    generation: int = GENERATION_NONE
    member_id: str = ""
    instance_id: str | None = None


class CommitInTransaction(Struct, frozen=True):
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


class FetchOffsets(Struct, frozen=True):
    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    """None: all that the group has committed."""
    require_stable: bool = False
    """Refuse where a transaction is open that may change the offset (KIP-447)."""


class ListGroups(Struct, frozen=True):
    states: tuple[str, ...] = ()
    """By the names of `GroupState`, in any case; empty: all."""


class DescribeGroups(Struct, frozen=True):
    group_ids: tuple[str, ...]


class DeleteGroups(Struct, frozen=True):
    group_ids: tuple[str, ...]


class DeleteOffsets(Struct, frozen=True):
    group_id: str
    partitions: tuple[TopicPartition, ...]


Command: TypeAlias = (
    Join
    | Sync
    | Heartbeat
    | Leave
    | Commit
    | CommitInTransaction
    | FetchOffsets
    | ListGroups
    | DescribeGroups
    | DeleteGroups
    | DeleteOffsets
)
