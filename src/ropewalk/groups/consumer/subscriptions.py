"""Which topics a group reads: those its members name, and those that match their patterns, as far as they exist.

A group remembers the topics it was last assigned by a hash over their ids and partition counts. When another
coordinator takes over, or topics change, the hash tells whether the assignments are still good.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from ropewalk.base.ids import TopicId
from ropewalk.groups.commands import MayDescribe
from ropewalk.groups.consumer.events import Details, PatternRecorded
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.patterns import matching
from ropewalk.groups.consumer.revision import Revision


class TopicFacts(Struct, frozen=True, gc=False):
    topic_id: TopicId
    partition_count: int


class Topics(Protocol):
    """The topics there are."""

    @property
    def version(self) -> int:
        """Changes whenever a topic or a partition comes or goes."""

    def find(self, name: str) -> TopicFacts | None: ...

    def name_of(self, topic_id: TopicId) -> str | None: ...

    def names(self) -> Iterable[str]: ...


def resolve_patterns(
    revision: Revision, topics: Topics, now_ms: int, may_describe: MayDescribe | None = None
) -> None:
    """Look again which topics match, of those that may be described, and record what is not known yet."""
    group = revision.group
    patterns = {details.pattern: None for details in group.members.values() if details.pattern is not None}
    for pattern in patterns:
        matched = matching(pattern, filter(may_describe, topics.names()) if may_describe else topics.names())
        known = group.patterns.get(pattern)
        if known is None or known.topics != matched:
            revision.record(PatternRecorded(group.group_id, pattern, matched, topics.version, now_ms))


def topics_of(group: ConsumerGroup, details: Details, topics: Topics) -> dict[TopicId, int]:
    """What a member reads, as far as it exists, with the numbers of partitions."""
    names = set(details.topics)
    if details.pattern in group.patterns:
        names.update(group.patterns[details.pattern].topics)
    found = (topics.find(name) for name in names)
    return {facts.topic_id: facts.partition_count for facts in found if facts is not None}


def hash_topics(group: ConsumerGroup, topics: Topics) -> int:
    """Stands for the topics that the group reads, as they are; 0 if there are none."""
    digest = blake2b(digest_size=8)
    is_empty = True
    for name in sorted(group.subscribed_names()):
        facts = topics.find(name)
        if facts is not None:
            is_empty = False
            digest.update(facts.topic_id)
            digest.update(facts.partition_count.to_bytes(4, "big"))
    return 0 if is_empty else int.from_bytes(digest.digest(), "big", signed=True)
