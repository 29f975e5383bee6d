"""Offsets that were sent with a transaction which is still open: nobody sees them before it is committed.

Invariants
    What a transaction brings counts by its place in the log, not by the place of its marker. A commit that was written
    after it, and counts, stays: compaction keeps the last record of a key, and must not change what a group has read.
    So whatever comes to count for a partition drops all that is pending there from before.

What a reader could get wrong
    Positions are counted here, one up for each offset. They say which came first, and are not offsets of the log.
"""

from collections.abc import Iterator
from typing import TypeAlias

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.events import OffsetCommitted

_Key: TypeAlias = tuple[str, str, int]
_Sent: TypeAlias = tuple[int, CommittedOffset]
"""The position, and what counts once the transaction is committed."""


class PendingOffsets:
    __slots__ = ("_by_group", "_by_producer", "_position")

    def __init__(self) -> None:
        self._position = 0
        self._by_producer: dict[int, dict[_Key, _Sent]] = {}
        self._by_group: dict[str, dict[tuple[str, int], dict[int, None]]] = {}
        """The producers with something pending, by group and partition. Nothing empty is kept, in neither."""

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def __eq__(self, other: object) -> bool:
        """Whatever happens next comes out the same."""
        return isinstance(other, PendingOffsets) and self._ordered() == other._ordered()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add(self, producer_id: int, event: OffsetCommitted) -> None:
        key = (event.group_id, event.topic, event.partition)
        self._position += 1
        self._by_producer.setdefault(producer_id, {})[key] = (self._position, event.committed)
        partitions = self._by_group.setdefault(event.group_id, {})
        partitions.setdefault((event.topic, event.partition), {})[producer_id] = None

    def take(self, producer_id: int) -> list[tuple[int, OffsetCommitted]]:
        """The producer's transaction has ended: what it had pending, with its positions."""
        sent = self._by_producer.get(producer_id)
        if sent is None:
            return []
        taken = [(position, OffsetCommitted(*key, committed)) for key, (position, committed) in sent.items()]
        for _, event in taken:
            self._remove(producer_id, (event.group_id, event.topic, event.partition))
        return taken

    def drop(self, group_id: str, topic: str, partition: int, *, before: int | None = None) -> None:
        """Something has come to count there: all that is pending from before `before`, None for all, never will."""
        producers = self._by_group.get(group_id, {}).get((topic, partition), {})
        key = (group_id, topic, partition)
        for producer_id in list(producers):
            if before is None or self._by_producer[producer_id][key][0] < before:
                self._remove(producer_id, key)

    def has_any(self, group_id: str) -> bool:
        return group_id in self._by_group

    def has(self, group_id: str, partition: TopicPartition) -> bool:
        return (partition.topic, partition.partition) in self._by_group.get(group_id, {})

    def partitions(self, group_id: str) -> Iterator[TopicPartition]:
        for topic, partition in self._by_group.get(group_id, {}):
            yield TopicPartition(topic, partition)

    def group_ids(self) -> set[str]:
        return set(self._by_group)

    def _remove(self, producer_id: int, key: _Key) -> None:
        group_id, topic, partition = key
        sent = self._by_producer[producer_id]
        del sent[key]
        if not sent:
            del self._by_producer[producer_id]
        partitions = self._by_group[group_id]
        producers = partitions[topic, partition]
        del producers[producer_id]
        if not producers:
            del partitions[topic, partition]
        if not partitions:
            del self._by_group[group_id]

    def _ordered(self) -> list[tuple[int, _Key, CommittedOffset]]:
        entries = [
            (position, producer_id, key, committed)
            for producer_id, sent in self._by_producer.items()
            for key, (position, committed) in sent.items()
        ]
        return [
            (producer_id, key, committed)
            for _, producer_id, key, committed in sorted(entries, key=lambda each: each[0])
        ]
