"""DescribeTopicPartitions: topics in the order of their names, page by page.

Behaviour worth knowing
    No topics asked for means all. What is asked for twice is answered once.
    Topics that do not exist come first and do not count towards the limit.
    A cursor names the first partition to be answered. With topics named it must be one of them; with all of them
    asked for it may have been deleted meanwhile, and the answer goes on behind it.
    Owner, times, the queue that a topic is of, observers, moves and the least number in sync are told, in fields of our own, to those who ask for them.
    The last known eligible leader is the last leader of a partition that nobody may lead for the moment.
"""

from typing import Final

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, NodeId
from ropewalk.controller.topic_names import check_topic_name
from ropewalk.kafka.brokers import offline_replicas, serving_nodes
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.operations import TOPIC_OPERATIONS
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_START: Final = Cursor("", 0)


async def handle(
    request: DescribeTopicPartitionsRequest,
    caller: Caller,
    *,
    image: Image,
    settings: AppliedSettings,
    partitions_max: int,
) -> DescribeTopicPartitionsResponse:
    del caller
    asked = sorted({topic.name for topic in request.topics})
    cursor = request.cursor or _START
    try:
        _check_cursor(request, asked)
    except InvalidRequest as error:
        refused = tuple(
            DescribeTopicPartitionsResponseTopic(code_for(error), name, TOPIC_ID_NONE) for name in asked
        )
        return DescribeTopicPartitionsResponse(throttle_ms=0, topics=refused)
    names = [name for name in asked or sorted(image.topics) if name >= cursor.topic_name]
    missing = [_missing(name) for name in names if name not in image.topics]
    found = [image.topics[name] for name in names if name in image.topics]
    room = max(1, min(request.response_partition_limit, partitions_max))
    serving = serving_nodes(image)
    described: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
    for topic in found:
        first = cursor.index if topic.name == cursor.topic_name else 0
        if room == 0:
            next_cursor = Cursor(topic.name, first)
            break
        page = topic.partitions[first : first + room]
        described.append(
            _describe(topic, page, image, serving, settings if request.include_details else None)
        )
        room -= len(page)
        if first + len(page) < len(topic.partitions):
            next_cursor = Cursor(topic.name, first + len(page))
            break
    return DescribeTopicPartitionsResponse(
        throttle_ms=0, topics=(*missing, *described), next_cursor=next_cursor
    )


def _check_cursor(request: DescribeTopicPartitionsRequest, asked: list[str]) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if cursor.index < 0:
        raise InvalidRequest(f"the cursor is at partition {cursor.index}")
    if asked and cursor.topic_name not in asked:
        raise InvalidRequest(f"the cursor is at {cursor.topic_name!r}, which is not asked for")


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except RopewalkError as error:
        code = code_for(error)
    return DescribeTopicPartitionsResponseTopic(
        code, name, TOPIC_ID_NONE, topic_authorized_operations=TOPIC_OPERATIONS
    )


def _describe(
    topic: Topic,
    page: tuple[Partition, ...],
    image: Image,
    serving: frozenset[NodeId],
    settings: AppliedSettings | None,
) -> DescribeTopicPartitionsResponseTopic:
    """With settings where details are wanted."""
    with_details = settings is not None
    queue = image.queues.by_topic(topic.topic_id) if with_details else None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if partition.leader is not None else ErrorCode.LEADER_NOT_AVAILABLE,
                index=partition.index,
                leader_id=-1 if partition.leader is None else partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                eligible_leader_replicas=partition.eligible,
                last_known_elr=() if partition.last_leader is None else (partition.last_leader,),
                offline_replicas=offline_replicas(partition.replicas, serving),
                observers=partition.observers if with_details else (),
                adding_replicas=partition.adding if with_details else (),
                removing_replicas=partition.removing if with_details else (),
                minimum_in_sync=0 if settings is None else settings.minimum_in_sync(topic, partition),
            )
            for partition in page
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
        owner=topic.owner if with_details else None,
        created_at_ms=topic.created_at_ms if with_details else 0,
        modified_at_ms=topic.modified_at_ms if with_details else 0,
        queue=None if queue is None else queue.name,
    )
