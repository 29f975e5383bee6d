"""Metadata: the brokers, and for each topic its partitions and their leaders.

Behaviour worth knowing
    A topic that is not there is made if the client allows it and `auto.create.topics.enable` is on; the answer
    comes when it is ready, so clients need no second round.
    No topics asked for (null) means all; an empty list means none, except in v0, where it means all.
    A topic that is asked for twice is answered once, as in Kafka.
    A topic looked up by an id that nobody has gets UNKNOWN_TOPIC_ID and no name. Versions 10 and 11 can ask by id but
    have no way to answer without a name; like Kafka, they get INVALID_REQUEST.
"""

from contextlib import suppress
from typing import Final, Protocol

from msgspec import structs

from ropewalk.base.errors import RopewalkError, TopicExists, UnknownTopicId
from ropewalk.base.ids import TopicId
from ropewalk.broker.peers.calls.forward import Sender
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.described_topics import DescribedTopics
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.operations import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, TOPIC_OPERATIONS
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ropewalk.wire.types import UUID_ZERO

_BY_ID_SINCE: Final = 12


class AutoCreation(Protocol):
    @property
    def creates_automatically(self) -> bool: ...

    async def create_automatically(self, name: str, sender: Sender) -> None:
        """Make the topic with the node's defaults; raises InvalidTopicName, TopicExists and so on."""


async def handle(
    request: MetadataRequest,
    caller: Caller,
    *,
    image: Image,
    creation: AutoCreation,
    described: DescribedTopics | None = None,
) -> MetadataResponse:
    """`described` keeps what was answered, for as long as it is true."""
    if described is None:
        described = DescribedTopics(image)
    asked = request.topics
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else OPERATIONS_NOT_ASKED
    cluster_operations = (
        CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else OPERATIONS_NOT_ASKED
    )
    if asked is None or (caller.version == 0 and not asked):
        return await described.all(operations, cluster_operations, caller.listener)
    may_create = request.allow_auto_topic_creation and creation.creates_automatically
    found: list[MetadataResponseTopic] = []
    for topic in dict.fromkeys(asked):
        await caller.next_item()
        found.append(
            await _find(topic, image, caller, creation if may_create else None, operations, described)
        )
    return structs.replace(described.cluster(cluster_operations, caller.listener), topics=tuple(found))


async def _find(
    asked: MetadataRequestTopic,
    image: Image,
    caller: Caller,
    creation: AutoCreation | None,
    operations: int,
    described: DescribedTopics,
) -> MetadataResponseTopic:
    try:
        # Java's client names nothing, in the empty string, when it means an id.
        if asked.name is None or (asked.topic_id != UUID_ZERO and caller.version >= _BY_ID_SINCE):
            if caller.version < _BY_ID_SINCE:
                return MetadataResponseTopic(ErrorCode.INVALID_REQUEST, "", asked.topic_id)
            return await described.one(image.topic_by_id(TopicId(asked.topic_id)), operations)
        if asked.name not in image.topics and creation is not None:
            with caller.hold():
                await _create(asked.name, caller, creation)
                caller.charge_mutations(len(image.topic(asked.name).partitions))
        return await described.one(image.topic(asked.name), operations)
    except UnknownTopicId:
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
    except RopewalkError as error:
        return MetadataResponseTopic(code_for(error), asked.name, UUID_ZERO)


async def _create(name: str, caller: Caller, creation: AutoCreation) -> None:
    with suppress(TopicExists):  # another client was quicker, which is as good
        await creation.create_automatically(name, caller.sender())
