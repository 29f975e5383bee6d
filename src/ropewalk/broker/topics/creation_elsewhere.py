"""A topic that a node needs at once, made by the node that decides."""

from typing import Final

from ropewalk.base import errors
from ropewalk.base.errors import ControllerUnavailable, RopewalkError
from ropewalk.broker.cluster.forwarding import Forwarding, Sender
from ropewalk.controller.topics import CreateTopic
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics

_VERSION: Final = create_topics.API.version_max

_ERRORS: Final[dict[ErrorCode, type[RopewalkError]]] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: errors.TopicExists,
    ErrorCode.INVALID_TOPIC_EXCEPTION: errors.InvalidTopicName,
    ErrorCode.INVALID_PARTITIONS: errors.InvalidPartitionCount,
    ErrorCode.INVALID_REPLICATION_FACTOR: errors.InvalidReplicationFactor,
    ErrorCode.INVALID_CONFIG: errors.InvalidSetting,
    ErrorCode.POLICY_VIOLATION: errors.PolicyViolation,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: errors.Throttled,
    ErrorCode.KAFKA_STORAGE_ERROR: errors.StorageFailed,
    ErrorCode.REQUEST_TIMED_OUT: errors.TimedOut,
}
"""What the controller may refuse a topic with. Anything else is a matter between the nodes, and may pass."""


async def create_elsewhere(command: CreateTopic, forwarding: Forwarding, sender: Sender) -> None:
    """Returns when this node has followed; raises what the controller refused with."""
    assert not command.assignments, "nodes leave it to the controller where replicas go"
    settings = tuple(
        create_topics.CreatableTopicConfig(name, value) for name, value in command.settings.items()
    )
    topic = create_topics.CreatableTopic(
        command.name, command.partition_count, command.replication_factor, (), settings
    )
    outcome = await forwarding.forward(
        create_topics.API, _VERSION, create_topics.CreateTopicsRequest((topic,)), sender
    )
    (result,) = outcome.response.topics
    if result.error_code != ErrorCode.NONE:
        kind = _ERRORS.get(ErrorCode(result.error_code), ControllerUnavailable)
        raise kind(result.error_message or ErrorCode(result.error_code).name)
