"""How far groups have read: who may commit, and what is known.

Behaviour worth knowing
    A commit that names a generation must come from a member of the current one. While a rebalance is prepared it is
    still taken, since members commit what they give up; between join and sync it is not.
    A commit that names none is taken if the group has no members: administrators and consumers that assign
    themselves their partitions use a group as nothing but a place for offsets.
    A commit in a transaction that names no member is taken whoever is in the group: old clients do not say more. One
    that names a generation must come from a member of the current one, and is taken at any point of a rebalance.
    A refused offset does not keep the others of its commit from being stored.
"""

from collections.abc import Set

from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import GROUP_NAME_CHARACTERS_MAX
from ropewalk.groups.answers import (
    Committed,
    CommittedOffset,
    FetchedOffset,
    GroupState,
    OffsetsDeleted,
    OffsetsFetched,
)
from ropewalk.groups.commands import Commit, CommitInTransaction, DeleteOffsets, FetchOffsets
from ropewalk.groups.durable import DurableState
from ropewalk.groups.errors import (
    GroupError,
    GroupNotEmpty,
    InvalidGroupId,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    StaleGeneration,
    SubscribedToTopic,
    UnknownGroup,
    UnknownMember,
    UnstableOffset,
)
from ropewalk.groups.events import Event, OffsetCommitted, OffsetRemoved
from ropewalk.groups.group import Group, Member
from ropewalk.groups.subscription import CONSUMER_PROTOCOL_TYPE

_RECORD_STRING_BYTES_MAX = 32767
"""What a record about an offset can hold, whatever the settings allow."""


def check_committer(group: Group | None, command: Commit, *, has_offsets: bool) -> Member | None:
    """The member that commits, None where it is nobody's; refuses whoever must not."""
    # The empty name is allowed here, as Kafka does for the sake of its oldest clients.
    if len(command.group_id) > GROUP_NAME_CHARACTERS_MAX:
        raise InvalidGroupId(f"a group id has at most {GROUP_NAME_CHARACTERS_MAX} characters")
    if command.generation < 0 and (group is None or group.state is GroupState.EMPTY):
        return None
    if group is None:
        if command.speaks_epochs and not has_offsets:
            raise UnknownGroup(f"there is no group {command.group_id}")
        raise StaleGeneration(f"{command.group_id} has no generation {command.generation}: it has no members")
    if command.generation < 0 and not command.member_id and command.instance_id is None:
        raise UnknownMember(f"{command.group_id} has members; only they commit")
    member = group.check_member(command.member_id, command.instance_id)
    group.check_generation(member, command.generation)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise RebalanceInProgress(f"{command.group_id} is being assigned; sync first")
    return member


def check_transactional_committer(group: Group | None, command: CommitInTransaction) -> None:
    """Refuse whoever is not, or is no longer, the member that it says it is (KIP-447)."""
    if not command.group_id or len(command.group_id) > GROUP_NAME_CHARACTERS_MAX:
        raise InvalidGroupId(f"a group id has 1 to {GROUP_NAME_CHARACTERS_MAX} characters")
    if command.generation < 0 and (group is None or group.state is GroupState.EMPTY):
        return
    if group is None:
        raise StaleGeneration(f"{command.group_id} has no generation {command.generation}: it has no members")
    if command.generation < 0 and not command.member_id and command.instance_id is None:
        return
    member = group.check_member(command.member_id, command.instance_id)
    group.check_generation(member, command.generation)


def decide_commit(
    command: Commit | CommitInTransaction, *, metadata_bytes_max: int, now_ms: int
) -> tuple[list[Event], Committed]:
    events: list[Event] = []
    results: list[GroupError | None] = []
    bytes_max = min(metadata_bytes_max, _RECORD_STRING_BYTES_MAX)
    for wanted in command.offsets:
        size = len(wanted.metadata.encode()) if wanted.metadata else 0
        if size > bytes_max:
            results.append(
                OffsetMetadataTooLarge(
                    f"{size} bytes of metadata with the offset of {wanted.topic}-{wanted.partition}, {bytes_max} allowed"
                )
            )
            continue
        committed = CommittedOffset(wanted.offset, wanted.leader_epoch, wanted.metadata, now_ms)
        events.append(OffsetCommitted(command.group_id, wanted.topic, wanted.partition, committed))
        results.append(None)
    return events, Committed(tuple(results))


def fetch(durable: DurableState, command: FetchOffsets) -> OffsetsFetched:
    group_id = command.group_id
    if command.partitions is None:
        found = [FetchedOffset(partition, committed) for partition, committed in durable.offsets(group_id)]
    else:
        found = [
            FetchedOffset(partition, durable.offset(group_id, partition)) for partition in command.partitions
        ]
    if command.require_stable and durable.pending.has_any(group_id):
        found = [
            FetchedOffset(each.topic_partition, _unstable(group_id, each.topic_partition))
            if durable.pending.has(group_id, each.topic_partition)
            else each
            for each in found
        ]
    return OffsetsFetched(tuple(found))


def _unstable(group_id: str, partition: TopicPartition) -> UnstableOffset:
    return UnstableOffset(f"a transaction with an offset of {group_id} in {partition} is open")


def decide_delete(
    durable: DurableState, group: Group | None, command: DeleteOffsets
) -> tuple[list[Event], OffsetsDeleted]:
    """What is not there is deleted already."""
    consumers = durable.consumers.get(command.group_id)
    if group is None and consumers is None and not durable.has_offsets(command.group_id):
        raise UnknownGroup(f"there is no group {command.group_id}")
    events: dict[TopicPartition, Event] = {}
    results: list[GroupError | None] = []
    subscribed = _subscribed_topics(group) if consumers is None else consumers.subscribed_names()
    for partition in command.partitions:
        if subscribed is None or partition.topic in subscribed:
            results.append(SubscribedToTopic(f"members of {command.group_id} read {partition.topic}"))
            continue
        if durable.offset(command.group_id, partition) is not None or durable.pending.has(
            command.group_id, partition
        ):
            events[partition] = OffsetRemoved(command.group_id, partition.topic, partition.partition)
        results.append(None)
    return list(events.values()), OffsetsDeleted(tuple(results))


def _subscribed_topics(group: Group | None) -> Set[str] | None:
    """None where it could be any; only of consumers can it be known."""
    if group is None or group.state is GroupState.EMPTY:
        return frozenset()
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise GroupNotEmpty(f"{group.group_id} has members")
    return group.subscribed_topics()
