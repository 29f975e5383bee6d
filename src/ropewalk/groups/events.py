"""The durable facts about groups. Each replaces what was known about the same thing before, so a log of them can be
compacted: about one partition's offset in one group, about one group's generation, or about one part of a group whose
assignments are made here.
"""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.consumer.events import ConsumerEvent


class OffsetCommitted(Struct, frozen=True, gc=False):
    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset


class OffsetRemoved(Struct, frozen=True, gc=False):
    group_id: str
    topic: str
    partition: int


class RecordedMember(Struct, frozen=True, gc=False):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """Its metadata for the protocol of the generation."""
    assignment: bytes


class GenerationRecorded(Struct, frozen=True):
    """A generation with its assignments, or, without members, that the group is empty.

    Recorded again with the same number when a static member comes back under another member id.
    """

    group_id: str
    protocol_type: str
    generation: int
    protocol: str | None
    """None for an empty group, as is `leader_id`."""
    leader_id: str | None
    state_at_ms: int
    """When the group became stable or empty; -1 where an old record does not say."""
    members: tuple[RecordedMember, ...]


class GroupRemoved(Struct, frozen=True, gc=False):
    """The group has no generation any more. Its offsets are removed by events of their own."""

    group_id: str


Event: TypeAlias = OffsetCommitted | OffsetRemoved | GenerationRecorded | GroupRemoved | ConsumerEvent
