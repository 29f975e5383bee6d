"""Events of groups whose assignments are made here, as records of Kafka's `__consumer_offsets`.

The number that a key begins with says which part of a group the record is about; a record without a value removes it.
Partitions stand by topic in the order of their ids. Kafka's key 4 (topics of a group, before 4.1) is not ours: a hash
in the record of the epoch has taken its place.
"""

from typing import Annotated, Final, TypeAlias

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import Protocol
from ropewalk.groups.consumer.events import (
    ClassicDetails,
    ConsumerEvent,
    Current,
    CurrentRecorded,
    Details,
    EpochRecorded,
    MemberRecorded,
    MemberState,
    Part,
    PartRemoved,
    PatternRecorded,
    TargetEpochRecorded,
    TargetRecorded,
)
from ropewalk.groups.versioned import Versioned
from ropewalk.wire.types import Buffer, Int8, Int32, Int64, Message, Uuid, tagged

_NEVER: Final = 999


class GroupKey(Message, frozen=True):
    group_id: str


class NamedKey(Message, frozen=True):
    """Of a member, or of a regular expression."""

    group_id: str
    name: str


class EpochValue(Message, frozen=True):
    epoch: Int32
    metadata_hash: Annotated[Int64, tagged(0)] = 0


class ClassicProtocol(Message, frozen=True):
    name: str
    metadata: bytes


class ClassicMember(Message, frozen=True):
    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


class MemberValue(Message, frozen=True):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: Int32
    server_assignor: str | None
    classic_member_metadata: Annotated[ClassicMember | None, tagged(0)] = None


class TargetEpochValue(Message, frozen=True):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tagged(0)] = 0


class Partitions(Message, frozen=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class TargetValue(Message, frozen=True):
    topic_partitions: tuple[Partitions, ...]


class CurrentValue(Message, frozen=True):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[Partitions, ...]
    partitions_pending_revocation: tuple[Partitions, ...]


class PatternValue(Message, frozen=True):
    topics: tuple[str, ...]
    version: Int64
    timestamp: Int64


Value: TypeAlias = EpochValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue | PatternValue

_GROUP_KEYS: Final = {
    part: Versioned(GroupKey, versions=range(part, part + 1), flexible_since=_NEVER, written=part)
    for part in (Part.EPOCH, Part.TARGET_EPOCH)
}
_NAMED_KEYS: Final = {
    part: Versioned(NamedKey, versions=range(part, part + 1), flexible_since=_NEVER, written=part)
    for part in (Part.MEMBER, Part.TARGET, Part.CURRENT, Part.PATTERN)
}
_EPOCH: Final = Versioned(EpochValue, versions=range(1), flexible_since=0, written=0)
_MEMBER: Final = Versioned(MemberValue, versions=range(1), flexible_since=0, written=0)
_TARGET_EPOCH: Final = Versioned(TargetEpochValue, versions=range(1), flexible_since=0, written=0)
_TARGET: Final = Versioned(TargetValue, versions=range(1), flexible_since=0, written=0)
_CURRENT: Final = Versioned(CurrentValue, versions=range(1), flexible_since=0, written=0)
_PATTERN: Final = Versioned(PatternValue, versions=range(1), flexible_since=0, written=0)

PARTS: Final = frozenset(map(int, Part))
"""The numbers that keys of these records begin with."""


def encode_consumer_event(event: ConsumerEvent) -> tuple[bytes, bytes | None]:
    match event:
        case EpochRecorded(group_id, epoch, topics_hash):
            return _key(Part.EPOCH, group_id), _EPOCH.encode(EpochValue(epoch, topics_hash))
        case MemberRecorded(group_id, member_id, details):
            return _key(Part.MEMBER, group_id, member_id), _MEMBER.encode(_member_value(details))
        case TargetEpochRecorded(group_id, epoch, assigned_at_ms):
            value = TargetEpochValue(epoch, assigned_at_ms)
            return _key(Part.TARGET_EPOCH, group_id), _TARGET_EPOCH.encode(value)
        case TargetRecorded(group_id, member_id, share):
            return _key(Part.TARGET, group_id, member_id), _TARGET.encode(TargetValue(_partitions(share)))
        case CurrentRecorded(group_id, member_id, current):
            return _key(Part.CURRENT, group_id, member_id), _CURRENT.encode(_current_value(current))
        case PatternRecorded(group_id, pattern, topics, version, resolved_at_ms):
            value_of_pattern = PatternValue(topics, version, resolved_at_ms)
            return _key(Part.PATTERN, group_id, pattern), _PATTERN.encode(value_of_pattern)
        case PartRemoved(group_id, part, name):
            return _key(part, group_id, name), None


def decode_consumer_event(key: Buffer, value: Buffer | None) -> ConsumerEvent:
    """Of a record whose key begins with one of `PARTS`; raises `InvalidRecord` for one that cannot be read."""
    part = Part(int.from_bytes(memoryview(key)[:2], "big"))
    group_id, name = _read_key(part, key)
    if value is None:
        return PartRemoved(group_id, part, name)
    match part:
        case Part.EPOCH:
            epoch = _EPOCH.decode(value)
            return EpochRecorded(group_id, epoch.epoch, epoch.metadata_hash)
        case Part.MEMBER:
            return MemberRecorded(group_id, name, _details(_MEMBER.decode(value)))
        case Part.TARGET_EPOCH:
            assigned = _TARGET_EPOCH.decode(value)
            return TargetEpochRecorded(group_id, assigned.assignment_epoch, assigned.assignment_timestamp)
        case Part.TARGET:
            return TargetRecorded(group_id, name, _share(_TARGET.decode(value).topic_partitions))
        case Part.CURRENT:
            return CurrentRecorded(group_id, name, _current(_CURRENT.decode(value)))
        case Part.PATTERN:
            resolved = _PATTERN.decode(value)
            return PatternRecorded(group_id, name, resolved.topics, resolved.version, resolved.timestamp)


def _key(part: Part, group_id: str, name: str = "") -> bytes:
    if part in _GROUP_KEYS:
        return _GROUP_KEYS[part].encode(GroupKey(group_id))
    return _NAMED_KEYS[part].encode(NamedKey(group_id, name))


def _read_key(part: Part, key: Buffer) -> tuple[str, str]:
    if part in _GROUP_KEYS:
        return _GROUP_KEYS[part].decode(key).group_id, ""
    named = _NAMED_KEYS[part].decode(key)
    return named.group_id, named.name


def _partitions(share: Share) -> tuple[Partitions, ...]:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(share):
        by_topic.setdefault(topic_id, []).append(partition)
    return tuple(Partitions(topic_id, tuple(partitions)) for topic_id, partitions in by_topic.items())


def _share(partitions: tuple[Partitions, ...]) -> Share:
    return frozenset((TopicId(each.topic_id), index) for each in partitions for index in each.partitions)


def _member_value(details: Details) -> MemberValue:
    classic = details.classic
    return MemberValue(
        instance_id=details.instance_id,
        rack_id=details.rack_id,
        client_id=details.client_id,
        client_host=details.client_host,
        subscribed_topic_names=details.topics,
        subscribed_topic_regex=details.pattern,
        rebalance_timeout_ms=details.rebalance_timeout_ms,
        server_assignor=details.assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMember(
            classic.session_timeout_ms,
            tuple(ClassicProtocol(protocol.name, protocol.metadata) for protocol in classic.protocols),
        ),
    )


def _details(value: MemberValue) -> Details:
    classic = value.classic_member_metadata
    return Details(
        client_id=value.client_id,
        client_host=value.client_host,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        topics=tuple(value.subscribed_topic_names),
        # Kafka writes an empty expression for none.
        pattern=value.subscribed_topic_regex or None,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicDetails(
            classic.session_timeout_ms,
            tuple(
                Protocol(protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols
            ),
        ),
    )


def _current_value(current: Current) -> CurrentValue:
    return CurrentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_partitions(current.assigned),
        partitions_pending_revocation=_partitions(current.revoking),
    )


def _current(value: CurrentValue) -> Current:
    try:
        state = MemberState(value.state)
    except ValueError as problem:
        raise InvalidRecord(f"{value.state} is not the state of a member") from problem
    return Current(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=state,
        assigned=_share(value.assigned_partitions),
        revoking=_share(value.partitions_pending_revocation),
    )
