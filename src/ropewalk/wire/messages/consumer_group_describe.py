"""ConsumerGroupDescribe (key 69): groups with server-side assignment, as administrators see them (KIP-848).

v1  which protocol each member speaks
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, Uuid, since


class ConsumerGroupDescribeRequest(Message, frozen=True):
    group_ids: tuple[str, ...]
    include_authorized_operations: bool


class TopicPartitions(Message, frozen=True):
    topic_id: Uuid
    topic_name: str
    partitions: tuple[Int32, ...]


class Assignment(Message, frozen=True):
    topic_partitions: tuple[TopicPartitions, ...]


class Member(Message, frozen=True):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: Assignment
    target_assignment: Assignment
    member_type: Annotated[Int8, since(1)] = -1
    """0 classic, 1 consumer, -1 unknown."""


class DescribedGroup(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: str
    members: tuple[Member, ...]
    authorized_operations: Int32 = -(2**31)


class ConsumerGroupDescribeResponse(Message, frozen=True):
    throttle_ms: Int32
    groups: tuple[DescribedGroup, ...]


API: Final = Api(
    key=69,
    name="ConsumerGroupDescribe",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=ConsumerGroupDescribeRequest,
    response=ConsumerGroupDescribeResponse,
)
