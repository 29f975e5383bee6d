"""What a consumer reads, and from where. A core: no sockets, no waiting.

What a reader could get wrong
    A partition without a position is not read until one is found: the group's, or the start that the settings name.
    What is fetched and what is consumed are two positions: `fetch_offset` runs ahead of `position`. When the position is
    set from outside, whatever was fetched for the former one is dropped (`version` tells which that is).
"""

from collections.abc import Iterable

from ropewalk.base.ids import TopicPartition
from ropewalk.client.errors import Misuse
from ropewalk.client.group_offsets import OffsetToCommit


class Held:
    """One partition that is read."""

    __slots__ = ("fetch_offset", "is_paused", "leader_epoch", "partition", "position", "reset_to", "version")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position: int | None = None
        self.fetch_offset = 0
        self.leader_epoch = -1
        self.is_paused = False
        self.version = 0
        self.reset_to: int | None = None
        """The instant, as ListOffsets wants it, at which the position is to be looked up; None: ask the group first."""

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        self.position = self.fetch_offset = offset
        self.leader_epoch = leader_epoch
        self.version += 1
        self.reset_to = None

    def lose_position(self, reset_to: int | None) -> None:
        self.position = None
        self.version += 1
        self.reset_to = reset_to


class Assignment:
    def __init__(self) -> None:
        self._held: dict[TopicPartition, Held] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._held

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._held)

    def get(self, partition: TopicPartition) -> Held | None:
        return self._held.get(partition)

    def held(self, partition: TopicPartition) -> Held:
        """Raises `Misuse` for one that is not assigned."""
        found = self._held.get(partition)
        if found is None:
            raise Misuse(f"{partition} is not assigned to this consumer")
        return found

    def all(self) -> list[Held]:
        return list(self._held.values())

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            if partition not in self._held:
                self._held[partition] = Held(partition)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._held.pop(partition, None)

    def without_position(self) -> list[Held]:
        return [held for held in self._held.values() if held.position is None]

    def rotate(self, partition: TopicPartition) -> None:
        """It was served: the others come first next time."""
        held = self._held.pop(partition, None)
        if held is not None:
            self._held[partition] = held

    def positions(self) -> dict[TopicPartition, OffsetToCommit]:
        """The next offset to be read of each partition that has one."""
        return {
            partition: OffsetToCommit(held.position, held.leader_epoch)
            for partition, held in self._held.items()
            if held.position is not None
        }
