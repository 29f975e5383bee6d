"""Guards of what tells of topics, makes, grows and deletes them."""

from typing import Final

from msgspec import structs

from ropewalk.base.limits import REQUEST_PARTITIONS_PER_TURN
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.operations import OPERATIONS_NOT_ASKED
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.runtime.steps import Pace
from ropewalk.security.access import Operation, ResourceType
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ropewalk.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ropewalk.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ropewalk.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ropewalk.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ropewalk.wire.types import UUID_ZERO, Message

_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_WHY: Final = "not authorized on the topic"
_METADATA_BY_ID_SINCE: Final = 12


async def metadata(
    request: MetadataRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    asked = request.topics
    refused: list[MetadataResponseTopic] = []
    is_about_all = asked is None or (caller.version == 0 and not asked)
    if asked is not None and not is_about_all:
        allowed: list[MetadataRequestTopic] = []
        for topic in dict.fromkeys(asked):
            refusal = _metadata_refused(topic, request, caller, rights)
            if refusal is None:
                allowed.append(topic)
            else:
                refused.append(refusal)
        request = structs.replace(request, topics=tuple(allowed))
    answer = await handle(request, caller)
    assert isinstance(answer, MetadataResponse), "encoding comes after all of this"
    topics = answer.topics if is_about_all or request.topics else ()  # v0 takes an empty list for all
    told: list[MetadataResponseTopic] = []
    pace = Pace(REQUEST_PARTITIONS_PER_TURN)
    for each in topics:
        await pace.next()
        if is_about_all and not (each.name and rights.topic(caller, Operation.DESCRIBE, each.name)):
            continue
        if each.name and each.topic_authorized_operations != OPERATIONS_NOT_ASKED:
            bits = rights.bits(caller, ResourceType.TOPIC, each.name)
            if bits != each.topic_authorized_operations:
                each = structs.replace(each, topic_authorized_operations=bits)
        told.append(each)
    operations = answer.cluster_authorized_operations
    if operations != OPERATIONS_NOT_ASKED:
        operations = rights.cluster_bits(caller)
    together = (*told, *refused)
    if together == answer.topics and operations == answer.cluster_authorized_operations:
        return answer  # the same object, whose bytes may be there already
    return structs.replace(answer, topics=together, cluster_authorized_operations=operations)


def _metadata_refused(
    topic: MetadataRequestTopic, request: MetadataRequest, caller: Caller, rights: Rights
) -> MetadataResponseTopic | None:
    is_by_id = topic.name is None or (topic.topic_id != UUID_ZERO and caller.version >= _METADATA_BY_ID_SINCE)
    if is_by_id:
        name = rights.name_of(topic)
        if caller.version < _METADATA_BY_ID_SINCE or name is None:
            return None  # refused by the handler, whoever asks
        if rights.topic(caller, Operation.DESCRIBE, name):
            return None
        return MetadataResponseTopic(_CODE, None, topic.topic_id)
    assert topic.name is not None
    if not rights.topic(caller, Operation.DESCRIBE, topic.name):
        return MetadataResponseTopic(_CODE, topic.name, UUID_ZERO)
    would_be_made = (
        request.allow_auto_topic_creation
        and rights.creates_automatically()
        and topic.name not in rights.image.topics
    )
    if would_be_made and not may_create(caller, rights, topic.name):
        return MetadataResponseTopic(_CODE, topic.name, UUID_ZERO)
    return None


async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    refused: list[DescribeTopicPartitionsResponseTopic] = []
    cursor = request.cursor
    if request.topics:
        allowed, others = rights.split(caller, Operation.DESCRIBE, dict.fromkeys(request.topics))
        refused = [DescribeTopicPartitionsResponseTopic(_CODE, each.name, UUID_ZERO) for each in others]
    else:
        allowed = [
            TopicRequest(name)
            for name in rights.image.topics
            if (cursor is None or name >= cursor.topic_name)
            and rights.topic(caller, Operation.DESCRIBE, name)
        ]
        if cursor is not None and allowed and TopicRequest(cursor.topic_name) not in allowed:
            cursor = Cursor(min(each.name for each in allowed), 0)  # its topic is gone, or out of reach
    if not allowed:
        return DescribeTopicPartitionsResponse(throttle_ms=0, topics=tuple(refused))
    answer = await handle(structs.replace(request, topics=tuple(allowed), cursor=cursor), caller)
    assert isinstance(answer, DescribeTopicPartitionsResponse)
    described = [
        structs.replace(each, topic_authorized_operations=rights.bits(caller, ResourceType.TOPIC, each.name))
        if each.name
        else each
        for each in answer.topics
    ]
    return structs.replace(answer, topics=(*refused, *described))


def may_create(caller: Caller, rights: Rights, name: str) -> bool:
    return rights.cluster(caller, Operation.CREATE) or rights.topic(caller, Operation.CREATE, name)


async def create_topics(
    request: CreateTopicsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    may = {name: may_create(caller, rights, name) for name in {each.name: None for each in request.topics}}
    allowed = [topic for topic in request.topics if may[topic.name]]
    refused = [name for name, is_allowed in may.items() if not is_allowed]
    answer: Message | None = CreateTopicsResponse(0, ())
    if allowed or not refused:
        answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    assert isinstance(answer, CreateTopicsResponse)
    told = [
        each
        if each.error_code or rights.topic(caller, Operation.DESCRIBE_CONFIGS, each.name)
        else _without_settings(each)
        for each in answer.topics
    ]
    refusals = [CreatableTopicResult(name, error_code=_CODE, error_message=_WHY) for name in refused]
    return structs.replace(answer, topics=(*told, *refusals))


def _without_settings(result: CreatableTopicResult) -> CreatableTopicResult:
    return structs.replace(
        result, topic_config_error_code=_CODE, num_partitions=-1, replication_factor=-1, configs=()
    )


async def create_partitions(
    request: CreatePartitionsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    allowed, refused = rights.split(caller, Operation.ALTER, request.topics)
    answer: Message | None = CreatePartitionsResponse(0, ())
    if allowed or not refused:
        answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    assert isinstance(answer, CreatePartitionsResponse)
    refusals = [
        CreatePartitionsTopicResult(name, _CODE, _WHY)
        for name in dict.fromkeys(topic.name for topic in refused)
    ]
    return structs.replace(answer, results=(*answer.results, *refusals))


async def delete_topics(
    request: DeleteTopicsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    allowed: list[DeleteTopicState] = []
    refused: dict[DeletableTopicResult, None] = {}
    for topic in request.topics or [DeleteTopicState(name) for name in request.topic_names]:
        name = rights.name_of(topic)
        if name is None or _may_delete(caller, rights, name):
            allowed.append(topic)
        else:  # whoever asks by id learns the name only with the right to
            told = topic.name
            if told is None and rights.topic(caller, Operation.DESCRIBE, name):
                told = name
            refusal = DeletableTopicResult(told, topic.topic_id, _CODE, _WHY)
            refused[refusal] = None
    if not refused:
        return await handle(request, caller)
    answer: Message | None = DeleteTopicsResponse(0, ())
    if allowed:
        names = tuple(topic.name or "" for topic in allowed) if request.topic_names else ()
        topics = tuple(allowed) if request.topics else ()
        answer = await handle(structs.replace(request, topics=topics, topic_names=names), caller)
    assert isinstance(answer, DeleteTopicsResponse)
    return structs.replace(answer, topics=(*answer.topics, *refused))


def _may_delete(caller: Caller, rights: Rights, name: str) -> bool:
    is_allowed = rights.cluster(caller, Operation.DELETE) or rights.topic(caller, Operation.DELETE, name)
    return is_allowed and rights.deletion(caller)
