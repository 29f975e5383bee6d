"""CreatePartitions (key 37): a topic grows to a number of partitions; it never shrinks.

v2  flexible encoding
v3  a quota on controller work may refuse
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message


class CreatePartitionsAssignment(Message, frozen=True):
    broker_ids: tuple[Int32, ...]


class CreatePartitionsTopic(Message, frozen=True):
    name: str
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None
    """For the partitions to be added; null leaves the choice to the controller."""


class CreatePartitionsRequest(Message, frozen=True):
    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: bool


class CreatePartitionsTopicResult(Message, frozen=True):
    name: str
    error_code: Int16
    error_message: str | None = None


class CreatePartitionsResponse(Message, frozen=True):
    throttle_ms: Int32
    results: tuple[CreatePartitionsTopicResult, ...]


API: Final = Api(
    key=37,
    name="CreatePartitions",
    versions=range(0, 3 + 1),
    flexible_since=2,
    request=CreatePartitionsRequest,
    response=CreatePartitionsResponse,
)
