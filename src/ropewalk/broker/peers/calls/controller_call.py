"""A question to the node that decides: what it answers is a value, be it a refusal, and silence is raised.

What a reader could get wrong
    A refusal is not raised here: whoever looks for the controller must tell one that refuses from one that does not answer.
    `NotController` is such a refusal, and means that nothing was done.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ropewalk.base import errors
from ropewalk.base.errors import NotController, RopewalkError
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import Lane, PeerLink
from ropewalk.client.errors import RemoteError
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Message

T = TypeVar("T")
Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=ControllerAnswer)

REFUSALS: Final = Refusals(
    errors.StaleBrokerEpoch,
    errors.UnknownBroker,
    errors.DuplicateBroker,
    errors.DirectoryPutBack,
    errors.OtherCluster,
    errors.IneligibleReplica,
    errors.StalePartitionEpoch,
    errors.NotController,
    errors.NotLeader,
    errors.FencedEpoch,
    errors.UnknownEpoch,
    errors.UnknownTopicId,
    errors.UnknownPartition,
    errors.HistoryParted,
    errors.StorageFailed,
    errors.TimedOut,
    errors.VersionRefused,
    errors.InvalidRequest,
    errors.Throttled,
)
"""What a controller may say to a node that asks on its own account."""


class ControllerCall(Struct, Generic[T], frozen=True):
    lane: Lane
    send: Callable[[PeerLink, float], Awaitable[T | RopewalkError]]
    """Over that link, with an answer until that deadline."""


def controller_call(
    api: Api[Q, A],
    request: Q,
    understand: Callable[[A], T],
    *,
    lane: Lane = Lane.CALLS,
    refusals: Refusals = REFUSALS,
) -> ControllerCall[T]:
    async def send(link: PeerLink, deadline_ms: float) -> T | RopewalkError:
        answer = await link.call(api, request, deadline_ms=deadline_ms)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            return NotController(answer.error_message or f"{link.name} does not decide")
        if answer.error_code != ErrorCode.NONE:
            return refusals.error(RemoteError(answer.error_code, answer.error_message, about=api.name))
        return understand(answer)

    return ControllerCall(lane, send)
