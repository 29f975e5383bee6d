"""A queue as a fact of the cluster: a topic, with attributes that say how its messages are given out.

What a reader could get wrong
    Attributes have the names and the texts that SQS gives them, in one spelling (`sqs/attributes.py` sees to that), and only those that
    somebody set are here.
    A queue that was made anew under its name is another one: its id tells them apart, and is the owner of the state in the topic's logs.
    Queues are replaced, never changed in place, so that a caller may keep one across an `await` and compare it afterwards.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, assert_never

import msgspec
from msgspec import Struct, structs

from ropewalk.base.ids import OwnerId, TopicId
from ropewalk.base.limits import MOVE_TASKS_REMEMBERED_MAX, QUEUES_DELETED_REMEMBERED_MAX
from ropewalk.metadata.records import (
    MoveTaskCancelling,
    MoveTaskEnded,
    MoveTaskStarted,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
)

FIFO_SUFFIX: Final = ".fifo"
REDRIVE_POLICY: Final = "RedrivePolicy"
REDRIVE_ALLOW_POLICY: Final = "RedriveAllowPolicy"
RUNNING: Final = "RUNNING"
CANCELLING: Final = "CANCELLING"

_DEFAULTS: Final = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "KmsDataKeyReusePeriodSeconds": "300",
    "SqsManagedSseEnabled": "true",
}
_FIFO_DEFAULTS: Final = {
    **_DEFAULTS,
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}


class Redrive(Struct, frozen=True):
    """Where messages go that were received often enough in vain."""

    target: str
    """The name of the dead-letter queue."""
    receive_count_max: int


class Queue(Struct, frozen=True, kw_only=True):
    queue_id: OwnerId
    name: str
    topic: str
    topic_id: TopicId
    attributes: Mapping[str, str] = {}
    tags: Mapping[str, str] = {}
    owner: str | None = None
    created_at_ms: int = 0
    modified_at_ms: int = 0
    is_adopted: bool = False
    """Its topic was there before: deleting the queue leaves it alone, and deleted messages stay readable to Kafka."""
    starts: tuple[int, ...] = ()
    """Adopted topics: for each partition the offset from which on records are messages; empty: all are."""

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(FIFO_SUFFIX)

    @property
    def redrive(self) -> Redrive | None:
        return redrive_of(self.attributes)

    def attribute(self, name: str) -> str | None:
        """As it was set, else what SQS has for it where nobody has said; None where that is nothing."""
        set_to = self.attributes.get(name)
        return (_FIFO_DEFAULTS if self.is_fifo else _DEFAULTS).get(name) if set_to is None else set_to


class MoveTask(Struct, frozen=True, kw_only=True):
    """Messages of a dead-letter queue on their way back, or elsewhere."""

    task_id: bytes
    queue_id: OwnerId
    target: str | None
    """None: each to the queue it came from."""
    messages_per_second_max: int | None
    started_at_ms: int
    to_move_count: int
    status: str = RUNNING
    """RUNNING, CANCELLING, COMPLETED, CANCELLED or FAILED, as SQS says it."""
    moved_count: int = 0
    """Known when it has ended."""
    ended_at_ms: int | None = None
    reason: str | None = None


class _RedrivePolicy(Struct, rename="camel"):
    dead_letter_target_arn: str
    max_receive_count: int


def redrive_of(attributes: Mapping[str, str]) -> Redrive | None:
    """What `RedrivePolicy` says, in its one spelling; None: nothing. Raises `ValueError` for a text that it cannot be."""
    text = attributes.get(REDRIVE_POLICY)
    if not text:
        return None
    policy = msgspec.json.decode(text, type=_RedrivePolicy)
    return Redrive(policy.dead_letter_target_arn.rpartition(":")[2], policy.max_receive_count)


QueueFact: TypeAlias = QueueChanged | QueueDeleted | MoveTaskStarted | MoveTaskCancelling | MoveTaskEnded


class QueueIndex:
    """The queues of an image. It lives as long as the image does, whatever that becomes."""

    __slots__ = ("_by_id", "_by_name", "_by_topic", "_deleted", "_moves", "_names", "_sources", "version")

    def __init__(self) -> None:
        self.version: int = 0
        """Another one after every change, so that whoever keeps what follows from queues can tell."""
        self.clear()

    def clear(self) -> None:
        self.version += 1
        self._by_name: dict[str, Queue] = {}
        self._by_id: dict[OwnerId, Queue] = {}
        self._by_topic: dict[TopicId, Queue] = {}
        self._names: list[str] = []
        """In their order."""
        self._sources: dict[str, list[str]] = {}
        """By the name of a dead-letter queue: whose messages go there, in their order."""
        self._deleted: dict[str, QueueDeleted] = {}
        """By name, the latest last."""
        self._moves: dict[OwnerId, tuple[MoveTask, ...]] = {}
        """By queue, the latest last."""

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Queue]:
        """In the order of their names."""
        return (self._by_name[name] for name in self._names)

    def get(self, name: str) -> Queue | None:
        return self._by_name.get(name)

    def by_id(self, queue_id: OwnerId) -> Queue | None:
        return self._by_id.get(queue_id)

    def by_topic(self, topic_id: TopicId) -> Queue | None:
        return self._by_topic.get(topic_id)

    def names(self, prefix: str = "") -> Sequence[str]:
        """In their order."""
        first = last = bisect_left(self._names, prefix)
        while last < len(self._names) and self._names[last].startswith(prefix):
            last += 1
        return self._names[first:last]

    def sources_of(self, name: str) -> Sequence[str]:
        """The names of the queues whose dead letters go there, in their order."""
        return tuple(self._sources.get(name, ()))

    def deleted_at_ms(self, name: str) -> int | None:
        """When a queue of that name was deleted last; None where there is one, or it was long ago, or never, or with its topic."""
        deleted = self._deleted.get(name)
        return None if deleted is None else deleted.deleted_at_ms

    def moves_of(self, queue_id: OwnerId) -> Sequence[MoveTask]:
        """Of a dead-letter queue, the latest last."""
        return self._moves.get(queue_id, ())

    def open_move_of(self, queue_id: OwnerId) -> MoveTask | None:
        """The one that has not ended; None: there is none."""
        tasks = self.moves_of(queue_id)
        return tasks[-1] if tasks and tasks[-1].ended_at_ms is None else None

    def create(self, record: QueueCreated, topic_name: str) -> None:
        assert record.name not in self._by_name, f"{record.name} was created before"
        assert record.topic_id not in self._by_topic, f"{topic_name} is a queue's topic already"
        self.version += 1
        self._deleted.pop(record.name, None)
        insort(self._names, record.name)
        self._put(
            Queue(
                queue_id=record.queue_id,
                name=record.name,
                topic=topic_name,
                topic_id=record.topic_id,
                attributes=record.attributes,
                tags=record.tags,
                owner=record.owner,
                created_at_ms=record.created_at_ms,
                modified_at_ms=record.created_at_ms,
                is_adopted=record.is_adopted,
                starts=record.starts,
            )
        )

    def apply(self, record: QueueFact) -> None:
        self.version += 1
        match record:
            case QueueChanged(queue_id=queue_id):
                queue = self._by_id[queue_id]
                self._forget_source(queue)
                self._put(
                    structs.replace(
                        queue,
                        attributes=_changed(queue.attributes, record.attributes),
                        tags=_changed(queue.tags, record.tags),
                        modified_at_ms=record.modified_at_ms,
                    )
                )
            case QueueDeleted(queue_id=queue_id, name=name):
                if queue_id in self._by_id:  # A snapshot remembers the deletion without the queue.
                    self._remove(self._by_id[queue_id])
                self._deleted.pop(name, None)
                self._deleted[name] = record
                if len(self._deleted) > QUEUES_DELETED_REMEMBERED_MAX:
                    del self._deleted[next(iter(self._deleted))]
            case MoveTaskStarted(queue_id=queue_id):
                task = MoveTask(**structs.asdict(record))
                self._moves[queue_id] = (*self.moves_of(queue_id), task)[-MOVE_TASKS_REMEMBERED_MAX:]
            case MoveTaskCancelling():
                self._change_move(record.queue_id, record.task_id, {"status": CANCELLING})
            case MoveTaskEnded():
                self._change_move(record.queue_id, record.task_id, structs.asdict(record))
            case _:
                assert_never(record)

    def on_topic_deleted(self, topic_id: TopicId) -> None:
        queue = self._by_topic.get(topic_id)
        if queue is not None:
            self.version += 1
            self._remove(queue)

    def facts(self) -> Iterator[QueueCreated | QueueFact]:
        """The fewest records that rebuild this index, where the topics are there."""
        for queue in self:
            yield QueueCreated(
                queue.queue_id,
                queue.name,
                queue.topic_id,
                dict(queue.attributes),
                dict(queue.tags),
                queue.owner,
                queue.created_at_ms,
                queue.is_adopted,
                queue.starts,
            )
            if queue.modified_at_ms != queue.created_at_ms:
                yield QueueChanged(queue.queue_id, modified_at_ms=queue.modified_at_ms)
            for task in self.moves_of(queue.queue_id):
                yield MoveTaskStarted(
                    task.task_id,
                    task.queue_id,
                    task.target,
                    task.messages_per_second_max,
                    task.started_at_ms,
                    task.to_move_count,
                )
                if task.status == CANCELLING:
                    yield MoveTaskCancelling(task.task_id, task.queue_id)
                if task.ended_at_ms is not None:
                    yield MoveTaskEnded(
                        task.task_id,
                        task.queue_id,
                        task.status,
                        task.moved_count,
                        task.ended_at_ms,
                        task.reason,
                    )
        yield from self._deleted.values()

    def _change_move(self, queue_id: OwnerId, task_id: bytes, changes: Mapping[str, Any]) -> None:
        self._moves[queue_id] = tuple(
            structs.replace(task, **changes) if task.task_id == task_id else task
            for task in self.moves_of(queue_id)
        )

    def _put(self, queue: Queue) -> None:
        self._by_name[queue.name] = self._by_id[queue.queue_id] = self._by_topic[queue.topic_id] = queue
        if queue.redrive is not None:
            insort(self._sources.setdefault(queue.redrive.target, []), queue.name)

    def _remove(self, queue: Queue) -> None:
        self._forget_source(queue)
        del self._by_name[queue.name], self._by_id[queue.queue_id], self._by_topic[queue.topic_id]
        del self._names[bisect_left(self._names, queue.name)]
        self._moves.pop(queue.queue_id, None)

    def _forget_source(self, queue: Queue) -> None:
        if queue.redrive is not None:
            sources = self._sources[queue.redrive.target]
            sources.remove(queue.name)
            if not sources:
                del self._sources[queue.redrive.target]


def _changed(texts: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """`texts` after `changes`, in the order of their names, so that any history of the same facts looks the same."""
    merged = {**texts, **changes}
    return {name: text for name in sorted(merged) if (text := merged[name]) is not None}
