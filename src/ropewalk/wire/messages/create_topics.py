"""CreateTopics (key 19).

v4  num_partitions and replication_factor may be -1, the broker's default
v5  flexible encoding; the response tells the settings the topic got
v6  a quota on controller work may refuse
v7  topic_id in the response
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int8, Int16, Int32, Message, Uuid, since, tagged


class CreatableReplicaAssignment(Message, frozen=True):
    index: Int32
    broker_ids: tuple[Int32, ...]


class CreatableTopicConfig(Message, frozen=True):
    name: str
    value: str | None


class CreatableTopic(Message, frozen=True):
    name: str
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


class CreateTopicsRequest(Message, frozen=True):
    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60_000
    validate_only: bool = False


class CreatableTopicConfigs(Message, frozen=True):
    name: str
    value: str | None
    read_only: bool
    config_source: Int8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(Message, frozen=True):
    name: str
    topic_id: Annotated[Uuid, since(7)] = UUID_ZERO
    error_code: Int16 = 0
    error_message: str | None = None
    topic_config_error_code: Annotated[Int16, since(5), tagged(0)] = 0
    num_partitions: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, since(5)] = ()


class CreateTopicsResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[CreatableTopicResult, ...]


API: Final = Api(
    key=19,
    name="CreateTopics",
    versions=range(2, 7 + 1),
    flexible_since=5,
    request=CreateTopicsRequest,
    response=CreateTopicsResponse,
)
