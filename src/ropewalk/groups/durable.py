"""The state that a shard's events add up to: committed offsets, those of open transactions, the last recorded
generation of each classic group, and all of the groups whose assignments are made here.

`apply` never fails and looks at nothing but the event, so a replay of the events, whole or compacted, gives the
same state. Everything else about a classic group is not durable and lives in `group.py`.
"""

from collections.abc import Iterator

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.consumer.events import ConsumerEvent, PartRemoved
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.events import Event, GenerationRecorded, GroupRemoved, OffsetCommitted, OffsetRemoved
from ropewalk.groups.pending import PendingOffsets


class DurableState:
    __slots__ = ("_offsets", "consumers", "generations", "pending")

    def __init__(self) -> None:
        self.generations: dict[str, GenerationRecorded] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        """Groups whose assignments are made here. No group is among these and `generations` both."""
        self.pending = PendingOffsets()
        self._offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        """By group, topic and partition. Nothing empty is kept, so what is here exists."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DurableState)
            and self.generations == other.generations
            and self.consumers == other.consumers
            and self._offsets == other._offsets
            and self.pending == other.pending
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def apply(self, event: Event) -> None:
        if isinstance(event, OffsetCommitted):  # by the million when a log is read
            self._set(event)
            if self.pending:
                self.pending.drop(event.group_id, event.topic, event.partition)
            return
        match event:
            case OffsetRemoved(group_id, topic, partition):
                self._remove(group_id, topic, partition)
                self.pending.drop(group_id, topic, partition)
            case GenerationRecorded(group_id):
                self.generations[group_id] = event
            case GroupRemoved(group_id):
                self.generations.pop(group_id, None)
            case _:
                self._apply_to_consumers(event)

    def apply_pending(self, producer_id: int, event: Event) -> None:
        """As `apply`, once the producer's transaction is committed. Nothing but offsets is ever part of one."""
        if isinstance(event, OffsetCommitted):
            self.pending.add(producer_id, event)
        else:
            self.apply(event)

    def apply_end(self, producer_id: int, committed: bool) -> list[OffsetCommitted]:
        """The producer's transaction has ended. Answers what was pending, whether it counts now or never will."""
        ended = self.pending.take(producer_id)
        if committed:
            for position, event in ended:
                self._set(event)
                self.pending.drop(event.group_id, event.topic, event.partition, before=position)
        return [event for _, event in ended]

    def group_ids(self) -> set[str]:
        """All that anything is known about."""
        named = self.generations.keys() | self.consumers.keys()
        return named | self._offsets.keys() | self.pending.group_ids()

    def has_offsets(self, group_id: str) -> bool:
        """Whether it has any, or would have if a transaction were committed."""
        return group_id in self._offsets or self.pending.has_any(group_id)

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """Where the group has an offset, or would have one if a transaction were committed."""
        known = {partition: None for partition, _ in self.offsets(group_id)}
        known.update(dict.fromkeys(self.pending.partitions(group_id)))
        return list(known)

    def offset(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        return self._offsets.get(group_id, {}).get(partition.topic, {}).get(partition.partition)

    def offsets(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for topic, partitions in self._offsets.get(group_id, {}).items():
            for partition, committed in partitions.items():
                yield TopicPartition(topic, partition), committed

    def topics(self) -> set[str]:
        """All that any group has committed an offset of, or may have."""
        committed = {topic for topics in self._offsets.values() for topic in topics}
        pending = (self.pending.partitions(group_id) for group_id in self.pending.group_ids())
        return committed | {partition.topic for partitions in pending for partition in partitions}

    def offsets_of_topic(self, topic: str) -> Iterator[OffsetRemoved]:
        """What would remove every group's offsets of a topic."""
        for group_id, topics in self._offsets.items():
            for partition in topics.get(topic, ()):
                yield OffsetRemoved(group_id, topic, partition)
        for group_id in sorted(self.pending.group_ids()):
            for pending in self.pending.partitions(group_id):
                if pending.topic == topic and self.offset(group_id, pending) is None:
                    yield OffsetRemoved(group_id, topic, pending.partition)

    def _set(self, event: OffsetCommitted) -> None:
        topics = self._offsets.get(event.group_id)
        if topics is None:
            topics = self._offsets[event.group_id] = {}
        partitions = topics.get(event.topic)
        if partitions is None:
            partitions = topics[event.topic] = {}
        partitions[event.partition] = event.committed

    def _apply_to_consumers(self, event: ConsumerEvent) -> None:
        group = self.consumers.get(event.group_id)
        if group is None:
            if isinstance(event, PartRemoved):
                return
            group = self.consumers[event.group_id] = ConsumerGroup(event.group_id)
        group.apply(event)
        if group.is_forgotten:
            del self.consumers[event.group_id]

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._offsets.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._offsets.pop(group_id, None)
