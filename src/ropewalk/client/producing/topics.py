"""The topics a producer writes to: their queues, and records that wait until a topic is known.

What a reader could get wrong
    A record gets its partition when the topic's partitions are known, not before; records of one topic keep their order
    while they wait for that.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.connections.cluster import Cluster, TopicView
from ropewalk.client.errors import RemoteError
from ropewalk.client.producing.batch import Delivery
from ropewalk.client.producing.outbox import Outbox, PartitionQueue
from ropewalk.client.producing.partitioners import Partitioner
from ropewalk.records.packing import Entry
from ropewalk.wire.error_code import ErrorCode

Addressed = tuple[Delivery, str, int | None, Entry, int]
"""Delivery, topic, partition if the sender chose it, the record and its size."""


class TopicQueues:
    """One topic as `partitioners.TopicLoad` wants to see it."""

    __slots__ = ("_cluster", "name", "partition_count", "queues", "sent_bytes", "view")

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self.name: str = name
        self.view: TopicView | None = None
        self.queues: list[PartitionQueue] = []
        self.partition_count: int = 0
        self.sent_bytes: int = 0

    def queued_bytes(self, partition: int) -> int:
        return self.queues[partition].queued_bytes

    def latency_ms(self, partition: int) -> float:
        return self.queues[partition].latency_ms

    def has_leader(self, partition: int) -> bool:
        return self.view is not None and self._cluster.knows(self.view.partitions[partition].leader)


class Topics:
    def __init__(
        self,
        cluster: Cluster,
        outbox: Outbox,
        partitioner: Partitioner,
        look_up: Callable[[str], None],
        on_refused: Callable[[RopewalkError], None],
    ) -> None:
        self._cluster = cluster
        self._outbox = outbox
        self._partitioner: Final = partitioner
        self._look_up = look_up
        self._on_refused = on_refused
        self._topics: dict[str, TopicQueues] = {}
        self._unplaced: dict[str, deque[Addressed]] = {}
        self.unplaced_bytes = 0

    @property
    def unplaced(self) -> list[Delivery]:
        return [addressed[0] for waiting in self._unplaced.values() for addressed in waiting]

    def take(self, addressed: Addressed, now_ms: float) -> bool:
        """Put a record where it belongs; whether the sender should have a look."""
        name = addressed[1]
        view = self._cluster.known_topic(name)
        if view is None or name in self._unplaced:
            self._wait(addressed)
            return False
        return self._place(self._queues(name, view), addressed, now_ms)

    def on_known(self, name: str, now_ms: float) -> bool:
        """The topic has been looked up: what waited for it goes on. False if it was forgotten again."""
        view = self._cluster.known_topic(name)
        if view is None:
            return False
        queues = self._queues(name, view)
        for addressed in self._unplaced.pop(name, ()):
            self.unplaced_bytes -= addressed[4]
            self._place(queues, addressed, now_ms)
        return True

    def refuse(self, name: str, error: RopewalkError) -> None:
        """The topic cannot be written to."""
        for addressed in self._unplaced.pop(name, ()):
            self.unplaced_bytes -= addressed[4]
            addressed[0].refuse(error)
            self._on_refused(error)

    def refuse_all(self, error: RopewalkError) -> None:
        for name in list(self._unplaced):
            self.refuse(name, error)

    def _wait(self, addressed: Addressed) -> None:
        name = addressed[1]
        waiting = self._unplaced.get(name)
        if waiting is None:
            waiting = self._unplaced[name] = deque()
            self._look_up(name)
        waiting.append(addressed)
        self.unplaced_bytes += addressed[4]

    def _queues(self, name: str, view: TopicView) -> TopicQueues:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = TopicQueues(self._cluster, name)
        if topic.view is not view:
            topic.view = view
            topic.partition_count = len(view.partitions)
            topic.queues = [
                self._outbox.queue(TopicPartition(name, index)) for index in range(len(view.partitions))
            ]
        return topic

    def _place(self, topic: TopicQueues, addressed: Addressed, now_ms: float) -> bool:
        delivery, name, partition, entry, size_bytes = addressed
        if partition is None:
            partition = self._partitioner.choose(entry[0], topic)
        elif not 0 <= partition < topic.partition_count:
            text = f"the topic has {topic.partition_count} partitions, counted from 0"
            error = RemoteError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text, about=f"{name}-{partition}")
            delivery.refuse(error)
            self._on_refused(error)
            return False
        topic.sent_bytes += size_bytes
        batch, index, is_news = self._outbox.add(topic.queues[partition], entry, size_bytes, now_ms)
        delivery.place(batch, index)
        return is_news
