"""DeleteTopics: by name, or from v6 on by name or id.

Behaviour worth knowing
    The records are gone from sight when the answer comes; their files are removed in the background.
    A topic given twice in one request is refused once, with INVALID_REQUEST.
    A topic made again under the same name has another id, so a late request by id cannot hit it.
"""

from collections import Counter
from typing import Final

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, TopicId
from ropewalk.broker.topics.topics import Topics
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Topic
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.delete_topics import (
    API,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

STRICT_SINCE: Final = 5
"""Older clients would not understand that they come too often, so they are only made to wait (KIP-599)."""


async def handle(request: DeleteTopicsRequest, caller: Caller, *, topics: Topics) -> DeleteTopicsResponse:
    asked = Counter(request.topics or [DeleteTopicState(name) for name in request.topic_names])
    results: list[DeletableTopicResult] = []
    mandate = caller.mandate(API.name)
    with caller.hold():
        for each, count in asked.items():
            try:
                if count > 1:
                    raise InvalidRequest(f"{each.name!r} is given {count} times")
                if caller.version >= STRICT_SINCE:
                    caller.check_mutations()
                topic = _find(each, topics)
                await topics.delete(topic.topic_id, mandate)
                caller.charge_mutations(len(topic.partitions))
            except RopewalkError as error:
                results.append(DeletableTopicResult(each.name, each.topic_id, code_for(error), str(error)))
            else:
                results.append(DeletableTopicResult(topic.name, topic.topic_id, ErrorCode.NONE))
    return DeleteTopicsResponse(throttle_ms=0, topics=tuple(results))


def _find(asked: DeleteTopicState, topics: Topics) -> Topic:
    if asked.name is None and asked.topic_id == TOPIC_ID_NONE:
        raise InvalidRequest("neither a name nor an id was given")
    if asked.name is None:
        return topics.image.topic_by_id(TopicId(asked.topic_id))
    if asked.topic_id != TOPIC_ID_NONE:
        raise InvalidRequest(f"{asked.name!r} is given by name and by id; give one of them")
    return topics.image.topic(asked.name)
