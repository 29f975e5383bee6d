"""DeleteTopics (key 20).

v4  flexible encoding
v5  error_message in the response; a quota on controller work may refuse
v6  topics by name or by id, in `topics` instead of `topic_names`
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Message, Uuid, nullable, since, until


class DeleteTopicState(Message, frozen=True):
    name: str | None = None
    topic_id: Uuid = UUID_ZERO


class DeleteTopicsRequest(Message, frozen=True):
    topics: Annotated[tuple[DeleteTopicState, ...], since(6)] = ()
    topic_names: Annotated[tuple[str, ...], until(5)] = ()
    timeout_ms: Int32 = 0


class DeletableTopicResult(Message, frozen=True):
    name: Annotated[str | None, nullable(since=6)]
    topic_id: Annotated[Uuid, since(6)] = UUID_ZERO
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(5)] = None


class DeleteTopicsResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[DeletableTopicResult, ...]


API: Final = Api(
    key=20,
    name="DeleteTopics",
    versions=range(1, 6 + 1),
    flexible_since=4,
    request=DeleteTopicsRequest,
    response=DeleteTopicsResponse,
)
