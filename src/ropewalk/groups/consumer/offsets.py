"""Who may commit and fetch the offsets of a group whose assignments are made here.

Behaviour worth knowing
    A member commits in the epoch it is in. One that has not heard of its epoch yet may name the one before, for partitions
    that it still has: they were its own all the time, since what changes hands takes two epochs.
    A commit that names no epoch is taken if the group has no members.
"""

from ropewalk.groups.commands import Commit, CommitInTransaction, FetchOffsets
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.subscriptions import Topics
from ropewalk.groups.errors import EpochsNotSpoken, StaleGeneration, StaleMemberEpoch


def check_committer(group: ConsumerGroup, command: Commit, topics: Topics) -> None:
    """Refuse whoever must not commit: not a member, or in an epoch that is over."""
    if command.generation < 0 and not group.members:
        return
    details = group.check_member(command.member_id, command.instance_id)
    if details.classic is None and not command.speaks_epochs:
        raise EpochsNotSpoken(f"{group.group_id} wants commits that name the member's epoch")
    if not _commits_what_it_has_still(group, command, topics):
        is_classic = details.classic is not None
        _check_epoch(group, command.member_id, command.generation, is_classic=is_classic)


def check_transaction(group: ConsumerGroup, command: CommitInTransaction, topics: Topics) -> None:
    """As for any commit, except that a producer need not say for which member it commits (KIP-447).

    Producers know generations and not epochs, so that is what they are told is over.
    """
    if command.generation < 0 and not command.member_id and command.instance_id is None:
        return
    group.check_member(command.member_id, command.instance_id)
    if not _commits_what_it_has_still(group, command, topics):
        _check_epoch(group, command.member_id, command.generation, is_classic=True)


def check_fetcher(group: ConsumerGroup, command: FetchOffsets) -> None:
    """Offsets are told to anybody, but a member that says who it is must be right."""
    if command.member_id is None and command.member_epoch < 0:
        return
    member_id = command.member_id or ""
    details = group.check_member(member_id, None)
    if not _has_missed_its_epoch(group, member_id, command.member_epoch):
        is_classic = details.classic is not None
        _check_epoch(group, member_id, command.member_epoch, is_classic=is_classic)


def _commits_what_it_has_still(
    group: ConsumerGroup, command: Commit | CommitInTransaction, topics: Topics
) -> bool:
    if not _has_missed_its_epoch(group, command.member_id, command.generation):
        return False
    assigned = group.current(command.member_id).assigned
    found = ((topics.find(wanted.topic), wanted.partition) for wanted in command.offsets)
    return all(facts is not None and (facts.topic_id, partition) in assigned for facts, partition in found)


def _has_missed_its_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> bool:
    current = group.current(member_id)
    return 0 < epoch == current.previous_epoch < current.epoch


def _check_epoch(group: ConsumerGroup, member_id: str, epoch: int, *, is_classic: bool) -> None:
    current = group.current(member_id).epoch
    if epoch != current:
        refusal = StaleGeneration if is_classic else StaleMemberEpoch
        raise refusal(f"{member_id} of {group.group_id} is in epoch {current}, not {epoch}")
