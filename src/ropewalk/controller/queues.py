"""Making, changing, tagging and deleting queues, and moving what lies in dead-letter queues.

Behaviour worth knowing
    A queue is made together with the topic of its name. A topic that exists is never taken over, unless it is named.
    To make a queue that is there changes nothing if the attributes that are named agree, and is refused with the first that does not.
    A queue's topic is never compacted: to compact is to take messages away. A FIFO queue's topic never grows: groups would go elsewhere.
    Deleting a queue deletes its topic, unless that was adopted. Deleting the topic deletes the queue, whoever does it.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from ropewalk.base.errors import (
    InvalidQueue,
    InvalidRequest,
    InvalidTopicName,
    MoveTaskOver,
    MoveTaskRunning,
    NotInForce,
    QueueDeletedRecently,
    QueueExists,
    UnknownMoveTask,
    UnknownQueue,
)
from ropewalk.base.ids import OwnerId
from ropewalk.base.levels import LEVEL_FIRST, QUEUES_LEVEL
from ropewalk.base.limits import (
    QUEUE_MOVES_PER_SECOND_MAX,
    QUEUE_PARTITIONS_AUTO_MAX,
    QUEUE_TAGS_MAX,
    QUEUE_TOPIC_BATCH_BYTES_MAX,
)
from ropewalk.base.ports import Rng
from ropewalk.controller.queue_attributes import (
    BY_GROUP,
    check_attributes,
    check_redrive,
    check_size,
    check_spread,
    first_difference,
)
from ropewalk.controller.topics import CreateTopic, checked_owner, decide_create_topic, decide_delete_topic
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.queues import FIFO_SUFFIX, RUNNING, Queue
from ropewalk.metadata.records import (
    MetadataRecord,
    MoveTaskCancelling,
    MoveTaskEnded,
    MoveTaskStarted,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    TopicCreated,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import AppliedSettings

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
_NAME_LENGTH_MAX: Final = 80
"""The figure of SQS, with `.fifo`."""

MOVE_ENDINGS: Final = ("COMPLETED", "CANCELLED", "FAILED")


class CreateQueue(Struct, frozen=True, kw_only=True):
    name: str
    attributes: Mapping[str, str] = {}
    tags: Mapping[str, str] = {}
    owner: str | None = None
    partition_count: int = 1
    """Of the topic that is made."""
    topic: str | None = None
    """One that exists and is adopted; None: the topic is made."""
    starts: tuple[int, ...] = ()
    """Of a topic that is adopted, by partition: from which offset on records are messages. Empty: all are."""


class ChangeQueue(Struct, frozen=True, kw_only=True):
    """Attributes and tags; None takes one away, and those that are not named stay."""

    name: str
    attributes: Mapping[str, str | None] = {}
    tags: Mapping[str, str | None] = {}


class DeleteQueue(Struct, frozen=True):
    name: str


class StartMoveTask(Struct, frozen=True, kw_only=True):
    """Messages of a dead-letter queue are to go back to where they came from, or to `target`. Asked for again it is the same task."""

    name: str
    task_id: bytes
    target: str | None = None
    messages_per_second_max: int | None = None
    to_move_count: int = 0


class CancelMoveTask(Struct, frozen=True, kw_only=True):
    """Nothing more is to be moved. Asked for again it is the same."""

    name: str
    task_id: bytes


class EndMoveTask(Struct, frozen=True, kw_only=True):
    """COMPLETED, CANCELLED or FAILED. What has ended stays as it ended."""

    name: str
    task_id: bytes
    status: str
    moved_count: int
    reason: str | None = None


QueueCommand: TypeAlias = (
    CreateQueue | ChangeQueue | DeleteQueue | StartMoveTask | CancelMoveTask | EndMoveTask
)


def decide_queue(
    image: Image, command: QueueCommand, settings: AppliedSettings, rng: Rng, *, now_ms: int
) -> list[MetadataRecord]:
    check_queues_level(image)
    match command:
        case CreateQueue():
            return decide_create_queue(image, command, settings, rng, now_ms=now_ms)
        case ChangeQueue():
            return decide_change_queue(image, command, now_ms=now_ms)
        case DeleteQueue():
            return decide_delete_queue(image, command, settings, now_ms=now_ms)
        case StartMoveTask():
            return decide_start_move_task(image, command, now_ms=now_ms)
        case CancelMoveTask():
            return decide_cancel_move_task(image, command)
        case EndMoveTask():
            return decide_end_move_task(image, command, now_ms=now_ms)
        case _:
            assert_never(command)


def check_queues_level(image: Image) -> None:
    """Raise `NotInForce` where there are no queues yet."""
    if image.level < QUEUES_LEVEL:
        raise NotInForce(
            f"queues came with level {QUEUES_LEVEL}, and level {max(image.level, LEVEL_FIRST)} is in force; "
            "`ropewalk cluster upgrade status` says what holds it back"
        )


def decide_create_queue(
    image: Image, command: CreateQueue, settings: AppliedSettings, rng: Rng, *, now_ms: int
) -> list[MetadataRecord]:
    """Nothing where it is there and agrees."""
    name = command.name
    _check_name(name)
    queue = image.queues.get(name)
    if queue is not None:
        _check_agrees(queue, command)
        return []
    deleted_at_ms = image.queues.deleted_at_ms(name)
    wait_ms = settings.of_broker.sqs_delete_wait_ms
    if deleted_at_ms is not None and now_ms - deleted_at_ms < wait_ms:
        raise QueueDeletedRecently(
            f"{name} was deleted {max(0, now_ms - deleted_at_ms)} ms ago; the name rests for {wait_ms} ms (sqs.delete.wait.ms)"
        )
    attributes = dict(command.attributes)
    made: list[MetadataRecord] = []
    if command.topic is None:
        check_spread(name, attributes, command.partition_count)
        made = _made_topic(image, command, settings, rng, now_ms=now_ms)
        first = made[0]
        assert isinstance(first, TopicCreated), "a topic's records begin with its name"
        topic_id = first.topic_id
    else:
        topic = _adopted(image, command, command.topic, settings)
        topic_id = topic.topic_id
        if "cleanup.policy" not in topic.settings:  # whatever becomes of the default
            made = [TopicSettingsChanged(topic_id, {"cleanup.policy": "delete"})]
        if len(topic.partitions) > 1 and name.endswith(FIFO_SUFFIX):
            attributes = {**BY_GROUP, **attributes}
            check_spread(name, attributes, len(topic.partitions))
    check_attributes(name, attributes)
    check_redrive(image.queues, name, attributes)
    _check_tags(name, command.tags)
    created = QueueCreated(
        queue_id=_new_queue_id(image, rng),
        name=name,
        topic_id=topic_id,
        attributes={attribute: attributes[attribute] for attribute in sorted(attributes)},
        tags={tag: command.tags[tag] for tag in sorted(command.tags)},
        owner=_owner(command.owner),
        created_at_ms=now_ms,
        is_adopted=command.topic is not None,
        starts=command.starts,
    )
    return [*made, created]


def decide_change_queue(image: Image, command: ChangeQueue, *, now_ms: int) -> list[MetadataRecord]:
    """Nothing where it is so already."""
    queue = known_queue(image, command.name)
    attributes = {
        name: text for name, text in command.attributes.items() if queue.attributes.get(name) != text
    }
    tags = {name: text for name, text in command.tags.items() if queue.tags.get(name) != text}
    if "FifoQueue" in attributes and attributes["FifoQueue"] != queue.attribute("FifoQueue"):
        raise InvalidQueue(f"FifoQueue of {queue.name} cannot be changed after creation")
    if attributes:
        after = _merged(queue.attributes, attributes)
        check_attributes(queue.name, after)
        check_redrive(image.queues, queue.name, attributes)
        check_spread(queue.name, after, len(image.topic_by_id(queue.topic_id).partitions))
    if tags:
        _check_tags(queue.name, _merged(queue.tags, tags))
    return [QueueChanged(queue.queue_id, attributes, tags, now_ms)] if attributes or tags else []


def decide_delete_queue(
    image: Image, command: DeleteQueue, settings: AppliedSettings, *, now_ms: int
) -> list[MetadataRecord]:
    queue = known_queue(image, command.name)
    deleted = QueueDeleted(queue.queue_id, queue.name, now_ms)
    if queue.is_adopted:
        return [deleted]
    topic = image.topic_by_id(queue.topic_id)
    return [deleted, *decide_delete_topic(image, topic, settings.of_broker)]


def decide_start_move_task(image: Image, command: StartMoveTask, *, now_ms: int) -> list[MetadataRecord]:
    """Nothing where it has been started."""
    queue = known_queue(image, command.name)
    tasks = image.queues.moves_of(queue.queue_id)
    if any(task.task_id == command.task_id for task in tasks):
        return []
    if not image.queues.sources_of(queue.name):
        raise InvalidQueue(f"{queue.name} is no dead-letter queue: no queue's RedrivePolicy names it")
    if any(task.ended_at_ms is None for task in tasks):
        raise MoveTaskRunning(
            f"messages of {queue.name} are being moved already, and one task at a time moves"
        )
    if command.target is not None and known_queue(image, command.target).is_fifo != queue.is_fifo:
        raise InvalidQueue(
            f"{command.target} cannot take messages of {queue.name}: one is a FIFO queue and the other is not"
        )
    if command.target == queue.name:
        raise InvalidQueue(f"messages of {queue.name} cannot be moved to {queue.name} itself")
    rate = command.messages_per_second_max
    if rate is not None and not 1 <= rate <= QUEUE_MOVES_PER_SECOND_MAX:
        raise InvalidQueue(
            f"{rate} messages a second are to be moved, 1 to {QUEUE_MOVES_PER_SECOND_MAX} can be"
        )
    return [
        MoveTaskStarted(
            command.task_id, queue.queue_id, command.target, rate, now_ms, max(0, command.to_move_count)
        )
    ]


def decide_cancel_move_task(image: Image, command: CancelMoveTask) -> list[MetadataRecord]:
    """Nothing where it is being cancelled already. Raises `MoveTaskOver` where it has ended."""
    queue = known_queue(image, command.name)
    for task in image.queues.moves_of(queue.queue_id):
        if task.task_id == command.task_id:
            if task.ended_at_ms is not None:
                raise MoveTaskOver(f"moving messages of {queue.name} has ended already: {task.status}")
            is_running = task.status == RUNNING
            return [MoveTaskCancelling(task.task_id, queue.queue_id)] if is_running else []
    raise UnknownMoveTask(f"{queue.name} has no move task {command.task_id.hex()}")


def decide_end_move_task(image: Image, command: EndMoveTask, *, now_ms: int) -> list[MetadataRecord]:
    """Nothing where it has ended, however it did."""
    queue = known_queue(image, command.name)
    if command.status not in MOVE_ENDINGS:
        raise InvalidQueue(f"a move task ends {', '.join(MOVE_ENDINGS)}, not {command.status!r}")
    for task in image.queues.moves_of(queue.queue_id):
        if task.task_id == command.task_id:
            if task.ended_at_ms is not None:
                return []
            return [
                MoveTaskEnded(
                    task.task_id,
                    queue.queue_id,
                    command.status,
                    max(0, command.moved_count),
                    now_ms,
                    command.reason,
                )
            ]
    raise UnknownMoveTask(f"{queue.name} has no move task {command.task_id.hex()}")


def known_queue(image: Image, name: str) -> Queue:
    queue = image.queues.get(name)
    if queue is None:
        raise UnknownQueue(f"there is no queue {name!r}")
    return queue


def _check_name(name: str) -> None:
    if len(name) > _NAME_LENGTH_MAX or _NAME.fullmatch(name.removesuffix(FIFO_SUFFIX)) is None:
        raise InvalidQueue(
            f"{name!r} is no name for a queue: 1 to {_NAME_LENGTH_MAX} of a-z, A-Z, 0-9, - and _, and .fifo at the end of FIFO queues"
        )


def _check_agrees(queue: Queue, command: CreateQueue) -> None:
    if command.topic is not None and command.topic != queue.topic:
        raise InvalidQueue(f"{queue.name} is there already, a queue of the topic {queue.topic}")
    differing = first_difference(queue, command.attributes)
    if differing is not None:
        raise QueueExists(differing)


def _made_topic(
    image: Image, command: CreateQueue, settings: AppliedSettings, rng: Rng, *, now_ms: int
) -> list[MetadataRecord]:
    if command.name in image.topics:
        raise InvalidQueue(
            f"there is a topic {command.name}, and no queue was made of it; it is adopted where the topic is named, and never else"
        )
    if command.partition_count < 1:
        raise InvalidQueue(f"{command.name} is to have {command.partition_count} partitions, 1 is the least")
    topic_settings: dict[str, str | None] = {
        "cleanup.policy": "delete",
        "max.message.bytes": str(QUEUE_TOPIC_BATCH_BYTES_MAX),
        "message.timestamp.type": "CreateTime",
        "queue.delete": "erase",
        "retention.bytes": "-1",
        "retention.ms": "-1",  # the queue's own retention is that of its messages
    }
    if not command.name.endswith(FIFO_SUFFIX):
        topic_settings["partitions.auto.max"] = str(max(QUEUE_PARTITIONS_AUTO_MAX, command.partition_count))
    topic = CreateTopic(
        name=command.name,
        partition_count=command.partition_count,
        settings=topic_settings,
        owner=_owner(command.owner),
    )
    try:
        return decide_create_topic(image, topic, settings.of_broker, rng, now_ms=now_ms)
    except InvalidTopicName as error:
        raise InvalidQueue(f"{command.name} needs a topic of its name: {error}") from None


def _adopted(image: Image, command: CreateQueue, topic_name: str, settings: AppliedSettings) -> Topic:
    topic = image.topics.get(topic_name)
    if topic is None:
        raise InvalidQueue(f"there is no topic {topic_name!r} that {command.name} could adopt")
    if topic.name.startswith("__"):
        raise InvalidQueue(f"{topic.name} is the cluster's own and cannot be a queue")
    other = image.queues.by_topic(topic.topic_id)
    if other is not None:
        raise InvalidQueue(f"{topic.name} is the topic of {other.name} already")
    if settings.of_topic(topic).compacts:
        raise InvalidQueue(f"{topic.name} is compacted and cannot be a queue: messages would disappear")
    if command.name.endswith(FIFO_SUFFIX) and "partitions.auto.max" in topic.settings:
        raise InvalidQueue(
            f"{topic.name} grows by itself (partitions.auto.max) and cannot be a FIFO queue: groups would go elsewhere"
        )
    if len(command.starts) > len(topic.partitions) or any(start < 0 for start in command.starts):
        raise InvalidQueue(
            f"{topic.name} has {len(topic.partitions)} partitions, {list(command.starts)} is no start for each"
        )
    return topic


def _check_tags(name: str, tags: Mapping[str, str]) -> None:
    if len(tags) > QUEUE_TAGS_MAX:
        raise InvalidQueue(f"{name} would have {len(tags)} tags, at most {QUEUE_TAGS_MAX} are kept")
    check_size("tags", tags)


def _owner(owner: str | None) -> str | None:
    try:
        return None if owner is None else checked_owner(owner)
    except InvalidRequest as error:
        raise InvalidQueue(str(error)) from None


def _merged(texts: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**texts, **changes}
    return {name: text for name, text in merged.items() if text is not None}


def _new_queue_id(image: Image, rng: Rng) -> OwnerId:
    while True:
        queue_id = OwnerId(rng.randbytes(16))
        if image.queues.by_id(queue_id) is None:
            return queue_id
