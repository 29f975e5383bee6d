"""The durable facts about groups whose assignments are made here. Each replaces what was known of the same part before."""

from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import Protocol


class MemberState(IntEnum):
    """How far a member has come with its target, by the numbers that Kafka writes."""

    STABLE = 0
    """It has what it is to have in its epoch."""
    UNREVOKED = 1
    """It has been told to give partitions up, and has not shown yet that it did."""
    UNRELEASED = 2
    """It waits for partitions that others have not released yet."""


class ClassicDetails(Struct, frozen=True):
    """What a member says of itself that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


class Details(Struct, frozen=True):
    """What a member says of itself."""

    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    topics: tuple[str, ...] = ()
    """By name, in order, whether they exist or not."""
    pattern: str | None = None
    """A regular expression; topics that match are subscribed to besides."""
    rebalance_timeout_ms: int = -1
    """How long it may take to give up partitions."""
    assignor: str | None = None
    classic: ClassicDetails | None = None
    """None for a member that speaks the consumer protocol."""


class Current(Struct, frozen=True):
    """What a member has, and what it is to give up."""

    epoch: int = 0
    """-2: a static member that is away and will come back."""
    previous_epoch: int = 0
    """The member may not have heard of its epoch yet, and name this one."""
    state: MemberState = MemberState.STABLE
    assigned: Share = frozenset()
    revoking: Share = frozenset()
    """Still its own until it shows that it released them."""


class Part(IntEnum):
    """The parts that a group's state is recorded in, by the numbers of their keys in Kafka's log."""

    EPOCH = 3
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    PATTERN = 16


class EpochRecorded(Struct, frozen=True, gc=False):
    group_id: str
    epoch: int
    topics_hash: int
    """Stands for the topics that the group reads as they were then; see `subscriptions.py`."""


class MemberRecorded(Struct, frozen=True):
    group_id: str
    member_id: str
    details: Details


class TargetEpochRecorded(Struct, frozen=True, gc=False):
    """Assignments have been made for this epoch of the group."""

    group_id: str
    epoch: int
    assigned_at_ms: int


class TargetRecorded(Struct, frozen=True):
    group_id: str
    member_id: str
    share: Share


class CurrentRecorded(Struct, frozen=True):
    group_id: str
    member_id: str
    current: Current


class PatternRecorded(Struct, frozen=True):
    """Which topics matched a regular expression."""

    group_id: str
    pattern: str
    topics: tuple[str, ...]
    version: int
    """Of the topics that were looked at; it tells nothing after a restart."""
    resolved_at_ms: int


class PartRemoved(Struct, frozen=True, gc=False):
    group_id: str
    part: Part
    name: str = ""
    """The member, or the pattern; empty for what a group has one of."""


ConsumerEvent: TypeAlias = (
    EpochRecorded
    | MemberRecorded
    | TargetEpochRecorded
    | TargetRecorded
    | CurrentRecorded
    | PatternRecorded
    | PartRemoved
)
