"""What a consumer reads, and from where. A core: no sockets, no waiting.

What a reader could get wrong
    A partition without a position is not read until one is found: the group's, or the start that the settings name.
    What is fetched and what is consumed are two positions: `fetch_offset` runs ahead of `position`. When the position is
    set from outside, whatever was fetched for the former one is dropped (`version` tells which that is).
    A position belongs to a history: to one topic id, and to the log of the leader in whose epoch it was found there
    (`validated_epoch`). Under another leader it is looked for again before anything is fetched (KIP-320).
"""

from collections.abc import Iterable

from ropewalk.base.ids import NodeId, TopicId, TopicPartition
from ropewalk.base.limits import CLIENT_EPOCHS_KEPT
from ropewalk.client.calls.group_offsets import OffsetToCommit
from ropewalk.client.errors import Misuse


class Held:
    """One partition that is read."""

    __slots__ = (
        "epochs", "fetch_offset", "is_doubted", "is_paused", "leader_epoch", "leader_only_until_ms", "partition", "position", "refused_offset",
        "replica", "replica_until_ms", "reset_to", "topic_id", "validated_epoch", "version",
    )  # fmt: skip

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position: int | None = None
        self.leader_epoch = -1
        """The epoch of the record before the position; -1 where that is not known."""
        self.fetch_offset = 0
        self.epochs: list[tuple[int, int]] = []
        """The latest leader epochs of what was read, each with the first offset that is known to be of it, in order."""
        self.validated_epoch = -1
        """The leader epoch in which what was read up to `fetch_offset` was found in the leader's log."""
        self.topic_id: TopicId | None = None
        """The topic that the position is of: there may be another of its name later. None until it is first fetched from."""
        self.refused_offset: int | None = None
        """The `fetch_offset` that the leader said is out of range: not asked for again before everything up to it is consumed."""
        self.is_doubted = False
        """Whether a leader has said that the position is out of range. A deposed one says so too: it is asked for once more."""
        self.replica: NodeId | None = None
        """Where the leader sent this reader, for the sake of its rack (KIP-392)."""
        self.replica_until_ms = 0.0
        self.leader_only_until_ms = 0.0
        """Until then the rack is not mentioned to the leader, since the replica that it named has failed."""
        self.is_paused = False
        self.version = 0
        self.reset_to: int | None = None
        """The instant, as ListOffsets wants it, at which the position is to be looked up; None: ask the group first."""

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        self.position = self.fetch_offset = offset
        self.leader_epoch = leader_epoch
        self.epochs = [(leader_epoch, offset - 1)] if leader_epoch >= 0 and offset > 0 else []
        self.reset_to = None
        self._begin_anew()

    def go_back(self, offset: int, leader_epoch: int = -1) -> None:
        """Within what was read: of what lies before `offset` the epochs stay known. `leader_epoch` is that of the record before it, for
        who was told."""
        epochs = [(epoch, first_offset) for epoch, first_offset in self.epochs if first_offset < offset]
        if offset > 0 and leader_epoch > (epochs[-1][0] if epochs else -1):
            epochs.append((leader_epoch, offset - 1))
        self.seek(offset, epochs[-1][0] if epochs else -1)
        self.epochs = epochs

    def lose_position(self, reset_to: int | None) -> None:
        self.position = None
        self.reset_to = reset_to
        self._begin_anew()

    @property
    def fetch_epoch(self) -> int:
        """The epoch of the record before `fetch_offset`; -1 where that is not known."""
        return self.epochs[-1][0] if self.epochs else -1

    def on_fetched(self, end_offset: int, epochs: Iterable[tuple[int, int]]) -> None:
        self.fetch_offset = end_offset
        for epoch, first_offset in epochs:
            if epoch > self.fetch_epoch:
                self.epochs = [*self.epochs[1 - CLIENT_EPOCHS_KEPT :], (epoch, first_offset)]

    def on_validated(self, leader_epoch: int) -> None:
        """Under the leader of this epoch what was read is still what is there."""
        self.validated_epoch = leader_epoch
        self.replica = None  # another leader may send its readers elsewhere

    def follow(self, replica: NodeId, until_ms: float) -> None:
        self.replica = replica
        self.replica_until_ms = until_ms

    def leave_replica(self, leader_only_until_ms: float) -> None:
        self.replica = None
        self.leader_only_until_ms = leader_only_until_ms

    def _begin_anew(self) -> None:
        self.version += 1
        self.validated_epoch = -1
        self.topic_id = None
        self.refused_offset = None
        self.is_doubted = False


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
