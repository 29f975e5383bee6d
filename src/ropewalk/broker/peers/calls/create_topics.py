"""CreateTopics: a topic that a node needs at once, made by the node that decides."""

from typing import Final

from ropewalk.base import errors
from ropewalk.base.errors import ControllerUnavailable, RopewalkError
from ropewalk.broker.peers.calls.controller_call import ControllerCall
from ropewalk.broker.peers.calls.forward import Forwarded, Sender, forward
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import PeerLink
from ropewalk.client.errors import RemoteError
from ropewalk.controller.topics import CreateTopic
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics as wire

_VERSION: Final = wire.API.version_max

CREATE_TOPICS: Final = wire.API.name
"""As it is called where somebody asks who wanted a topic."""

_REFUSALS: Final = Refusals(
    errors.TopicExists,
    errors.InvalidTopicName,
    errors.InvalidPartitionCount,
    errors.InvalidReplicationFactor,
    errors.InvalidSetting,
    errors.PolicyViolation,
    errors.TopicNotAuthorized,
    errors.Throttled,
    errors.StorageFailed,
    errors.TimedOut,
)
"""What the controller may refuse a topic with. Anything else is a matter between the nodes, and may pass."""


def create_topic(command: CreateTopic, sender: Sender) -> ControllerCall[Forwarded[RopewalkError | None]]:
    """None where the topic is made."""
    assert not command.assignments, "nodes leave it to the controller where replicas go"
    settings = tuple(wire.CreatableTopicConfig(name, value) for name, value in command.settings.items())
    topic = wire.CreatableTopic(
        command.name, command.partition_count, command.replication_factor, (), settings
    )
    forwarded = forward(wire.API, _VERSION, wire.CreateTopicsRequest((topic,)), sender)

    async def send(link: PeerLink, deadline_ms: float) -> Forwarded[RopewalkError | None] | RopewalkError:
        answer = await forwarded.send(link, deadline_ms)
        if isinstance(answer, RopewalkError):
            return answer
        return Forwarded(_refusal(answer.response), answer.mutation_count, answer.metadata_offset)

    return ControllerCall(forwarded.lane, send)


def _refusal(response: wire.CreateTopicsResponse) -> RopewalkError | None:
    (result,) = response.topics
    if result.error_code == ErrorCode.NONE:
        return None
    remote = RemoteError(result.error_code, result.error_message)
    error = _REFUSALS.error(remote)
    return ControllerUnavailable(remote.message) if error is remote else error
