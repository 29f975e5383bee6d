"""Events as records of Kafka's `__consumer_offsets`, so that Kafka's own tools can read the topic.

A key begins with a number that says what it is a key of: 0 and 1 an offset, 2 a classic group; those of groups whose
assignments are made here are in `consumer/event_codec.py`. A value begins with its own version. We write what Kafka
writes (key 1 with value 3, key 2 with value 3; a record without a value removes) and read every version of these;
records of other kinds, which other protocols put into the same topic, are skipped.
"""

from typing import Annotated, Final

from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.consumer.event_codec import PARTS, decode_consumer_event, encode_consumer_event
from ropewalk.groups.events import (
    Event,
    GenerationRecorded,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    RecordedMember,
)
from ropewalk.groups.offset_records import decode_commit, decode_key, decode_value, encode_key, encode_value
from ropewalk.groups.versioned import Versioned
from ropewalk.wire.types import Int32, Int64, Message, since


class OffsetCommitKey(Message, frozen=True):
    group: str
    topic: str
    partition: Int32


class OffsetCommitValue(Message, frozen=True):
    """v1 alone has expire_timestamp; v3 leader_epoch; v4 flexible encoding."""

    offset: Int64
    leader_epoch: Annotated[Int32, since(3)] = -1
    metadata: str = ""
    commit_timestamp: Int64 = -1
    expire_timestamp: Annotated[Int64, since(1, until=1)] = -1


class GroupMetadataKey(Message, frozen=True):
    group: str


class MemberMetadata(Message, frozen=True):
    member_id: str
    group_instance_id: Annotated[str | None, since(3)] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[Int32, since(1)] = -1
    session_timeout: Int32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Message, frozen=True):
    """v1 rebalance_timeout; v2 current_state_timestamp; v3 group_instance_id; v4 flexible encoding."""

    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Annotated[Int64, since(2)] = -1
    members: tuple[MemberMetadata, ...] = ()


_NEVER: Final = 999
_OFFSET_KEY: Final = Versioned(OffsetCommitKey, versions=range(2), flexible_since=_NEVER, written=1)
_OFFSET_VALUE: Final = Versioned(OffsetCommitValue, versions=range(5), flexible_since=4, written=3)
_GROUP_KEY: Final = Versioned(GroupMetadataKey, versions=range(2, 3), flexible_since=_NEVER, written=2)
_GROUP_VALUE: Final = Versioned(GroupMetadataValue, versions=range(5), flexible_since=4, written=3)


def encode_event(event: Event) -> tuple[bytes, bytes | None]:
    """The key and the value of the record that stands for `event`."""
    match event:
        case OffsetCommitted(group_id, topic, partition, committed):
            return encode_key(group_id, topic, partition), encode_value(committed)
        case OffsetRemoved(group_id, topic, partition):
            return encode_key(group_id, topic, partition), None
        case GenerationRecorded(group_id):
            return _GROUP_KEY.encode(GroupMetadataKey(group_id)), _GROUP_VALUE.encode(_group_value(event))
        case GroupRemoved(group_id):
            return _GROUP_KEY.encode(GroupMetadataKey(group_id)), None
        case _:
            return encode_consumer_event(event)


def decode_event(key: bytes, value: bytes | None) -> Event | None:
    """The inverse of `encode_event`; None for a record of another kind.

    Raises `InvalidRecord` for one of ours that cannot be read: to skip it would be to forget something.
    """
    if value is not None and (commit := decode_commit(key, value)) is not None:
        return commit
    kind = int.from_bytes(key[:2], "big", signed=True)
    if len(key) < 2:
        return None
    if kind in (0, 1):  # most are
        return _offset(key, value)
    if kind in PARTS:
        return decode_consumer_event(key, value)
    if kind != 2:
        return None
    group_id = _GROUP_KEY.decode(key).group
    if value is None:
        return GroupRemoved(group_id)
    return _generation(group_id, _GROUP_VALUE.decode(value))


def _offset(key: bytes, value: bytes | None) -> Event:
    names = decode_key(key)
    if names is None:
        partition = _OFFSET_KEY.decode(key)
        names = partition.group, partition.topic, partition.partition
    if value is None:
        return OffsetRemoved(*names)
    committed = decode_value(value)
    if committed is None:
        stored = _OFFSET_VALUE.decode(value)
        committed = CommittedOffset(
            stored.offset, stored.leader_epoch, stored.metadata, stored.commit_timestamp
        )
    return OffsetCommitted(*names, committed)


def _group_value(event: GenerationRecorded) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=event.protocol_type,
        generation=event.generation,
        protocol=event.protocol,
        leader=event.leader_id,
        current_state_timestamp=event.state_at_ms,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in event.members
        ),
    )


def _generation(group_id: str, value: GroupMetadataValue) -> GenerationRecorded:
    return GenerationRecorded(
        group_id=group_id,
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=value.protocol,
        leader_id=value.leader,
        state_at_ms=value.current_state_timestamp,
        members=tuple(
            RecordedMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout,
                session_timeout_ms=member.session_timeout,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ),
    )
