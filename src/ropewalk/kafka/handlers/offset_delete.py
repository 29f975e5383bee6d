"""OffsetDelete: a group forgets how far it has read some partitions. Members that read a topic keep its offsets safe."""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.commands import DeleteOffsets
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(
    request: OffsetDeleteRequest, caller: Caller, *, groups: Groups, image: Image
) -> OffsetDeleteResponse:
    del caller
    partitions = [
        TopicPartition(topic.name, partition.index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    known = tuple(each for each in partitions if _exists(each, image))
    try:
        deleted = await groups.ask(request.group_id, DeleteOffsets(request.group_id, known)).answer
    except RopewalkError as error:
        return OffsetDeleteResponse(code_for(error), 0, ())
    codes = {
        each: ErrorCode.NONE if refusal is None else code_for(refusal)
        for each, refusal in zip(known, deleted.partitions, strict=True)
    }
    return OffsetDeleteResponse(
        ErrorCode.NONE,
        0,
        tuple(
            OffsetDeleteResponseTopic(
                topic.name,
                tuple(
                    OffsetDeleteResponsePartition(
                        partition.index,
                        codes.get(
                            TopicPartition(topic.name, partition.index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _exists(partition: TopicPartition, image: Image) -> bool:
    topic = image.topics.get(partition.topic)
    return topic is not None and 0 <= partition.partition < len(topic.partitions)
