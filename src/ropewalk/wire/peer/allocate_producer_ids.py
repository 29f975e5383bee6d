"""AllocateProducerIds (key 10007): a block of producer ids for one broker to hand out."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int32, Int64, Message


class AllocateProducerIdsRequest(Message, frozen=True):
    node_id: Int32
    broker_epoch: Int64


class AllocateProducerIdsResponse(ControllerAnswer, frozen=True):
    first_producer_id: Int64 = -1
    count: Int32 = 0


API: Final = Api(
    key=10007,
    name="AllocateProducerIds",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=AllocateProducerIdsRequest,
    response=AllocateProducerIdsResponse,
)
