"""The state that a shard's events add up to: committed offsets, and the last recorded generation of each group.

`apply` never fails and looks at nothing but the event, so a replay of the events, whole or compacted, gives the
same state. Everything else about a group is not durable and lives in `group.py`.
"""

from collections.abc import Iterator

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.events import Event, GenerationRecorded, GroupRemoved, OffsetCommitted, OffsetRemoved


class DurableState:
    __slots__ = ("_offsets", "generations")

    def __init__(self) -> None:
        self.generations: dict[str, GenerationRecorded] = {}
        self._offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        """By group, topic and partition. Nothing empty is kept, so what is here exists."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DurableState)
            and self.generations == other.generations
            and self._offsets == other._offsets
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def apply(self, event: Event) -> None:
        match event:
            case OffsetCommitted(group_id, topic, partition, committed):
                self._offsets.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed
            case OffsetRemoved(group_id, topic, partition):
                self._remove(group_id, topic, partition)
            case GenerationRecorded(group_id):
                self.generations[group_id] = event
            case GroupRemoved(group_id):
                self.generations.pop(group_id, None)

    def group_ids(self) -> set[str]:
        """All that anything is known about."""
        return self.generations.keys() | self._offsets.keys()

    def has_offsets(self, group_id: str) -> bool:
        return group_id in self._offsets

    def offset(self, group_id: str, place: TopicPartition) -> CommittedOffset | None:
        return self._offsets.get(group_id, {}).get(place.topic, {}).get(place.partition)

    def offsets(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for topic, partitions in self._offsets.get(group_id, {}).items():
            for partition, committed in partitions.items():
                yield TopicPartition(topic, partition), committed

    def topics(self) -> set[str]:
        """All that any group has committed an offset of."""
        return {topic for topics in self._offsets.values() for topic in topics}

    def offsets_of_topic(self, topic: str) -> Iterator[OffsetRemoved]:
        """What would remove every group's offsets of a topic."""
        for group_id, topics in self._offsets.items():
            for partition in topics.get(topic, ()):
                yield OffsetRemoved(group_id, topic, partition)

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._offsets.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._offsets.pop(group_id, None)
