"""When a group's epoch rises, and what everybody is to have then."""

from collections import Counter

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.catalogue import ASSIGNORS
from ropewalk.groups.assignors.model import Candidate
from ropewalk.groups.commands import MayDescribe
from ropewalk.groups.consumer.events import (
    EpochRecorded,
    Part,
    PartRemoved,
    TargetEpochRecorded,
    TargetRecorded,
)
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.revision import Revision
from ropewalk.groups.consumer.subscriptions import Topics, hash_topics, resolve_patterns, topics_of


class Targets:
    def __init__(self, topics: Topics, default_assignor: str) -> None:
        self._topics = topics
        self._default_assignor = default_assignor
        self._seen: dict[str, int] = {}
        """By group, the version of the topics that it was last compared with."""

    def forget(self, group_id: str) -> None:
        self._seen.pop(group_id, None)

    def follow(
        self,
        revision: Revision,
        now_ms: int,
        *,
        is_changed: bool,
        may_describe: MayDescribe | None = None,
    ) -> None:
        """Bring the group's epoch and its targets up to date; `is_changed`: so are the subscriptions.

        With `may_describe`, patterns match what the member that is heard of may describe, whoever brought them, as in Kafka.
        """
        group = revision.group
        if is_changed or self._seen.get(group.group_id) != self._topics.version:
            self._seen[group.group_id] = self._topics.version
            resolve_patterns(revision, self._topics, now_ms, may_describe)
            topics_hash = hash_topics(revision.group, self._topics)
            if is_changed or topics_hash != group.topics_hash:
                self.raise_epoch(revision, topics_hash)
        if revision.group.epoch > revision.group.target_epoch:
            self._assign(revision, now_ms)

    def raise_epoch(self, revision: Revision, topics_hash: int | None = None) -> None:
        """Somebody has gone, or the topics are others. The next heartbeat of anybody makes the assignments."""
        group = revision.group
        if topics_hash is None:
            topics_hash = hash_topics(group, self._topics)
        revision.record(EpochRecorded(group.group_id, group.epoch + 1, topics_hash))

    def assignor_of(self, group: ConsumerGroup) -> str:
        """What most members ask for; where nobody asks, the default."""
        votes = Counter(
            details.assignor for details in group.members.values() if details.assignor is not None
        )
        return min(votes, key=lambda name: (-votes[name], name), default=self._default_assignor)

    def _assign(self, revision: Revision, now_ms: int) -> None:
        group = revision.group
        partition_counts: dict[TopicId, int] = {}
        candidates: dict[str, Candidate] = {}
        for member_id, details in group.members.items():
            counts = topics_of(group, details, self._topics)
            partition_counts |= counts
            candidates[member_id] = Candidate(frozenset(counts), group.target(member_id), details.instance_id)
        assign = ASSIGNORS[self.assignor_of(group)]
        shares = assign(candidates, partition_counts)
        for member_id, share in shares.items():
            if group.targets.get(member_id) != share:
                revision.record(TargetRecorded(group.group_id, member_id, share))
        for member_id in sorted(group.targets.keys() - group.members.keys()):
            revision.record(PartRemoved(group.group_id, Part.TARGET, member_id))
        revision.record(TargetEpochRecorded(group.group_id, group.epoch, now_ms))
