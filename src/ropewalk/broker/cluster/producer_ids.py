"""Producer ids for idempotent producers, one by one from blocks that the controller hands out."""

from ropewalk.base.errors import (
    ControllerUnavailable,
    NotController,
    StaleBrokerEpoch,
    TimedOut,
    UnknownBroker,
)
from ropewalk.base.ids import ProducerId
from ropewalk.base.limits import PEER_CALL_MS_MAX
from ropewalk.broker.cluster.membership import Membership
from ropewalk.broker.cluster.to_controller import ToController
from ropewalk.client.errors import ConnectionLost, RemoteError
from ropewalk.controller.producer_ids import ProducerIdBlock
from ropewalk.runtime.errands import Errands


class ProducerIds:
    def __init__(self, controller: ToController, membership: Membership, errands: Errands) -> None:
        self._controller = controller
        self._membership = membership
        self._errands = errands
        self._next = ProducerId(0)
        self._end = ProducerId(0)

    async def next(self) -> ProducerId:
        """An id that nobody else was or will be given. May be called where there is no task, as by a handler."""
        if self._next >= self._end:
            block = await self._errands.begin(self._allocate())
            # Two callers may each have got a block meanwhile; the rest of the earlier one is never used.
            self._next, self._end = block.start, block.end
        producer_id = self._next
        self._next = ProducerId(producer_id + 1)
        return producer_id

    async def _allocate(self) -> ProducerIdBlock:
        try:
            return await self._controller.allocate_producer_ids(
                self._membership.node_id, self._membership.broker_epoch, timeout_ms=PEER_CALL_MS_MAX
            )
        except ConnectionLost as error:  # a block that nobody heard of is never used
            raise TimedOut(f"no producer id could be had: {error}") from None
        except (NotController, RemoteError, StaleBrokerEpoch, UnknownBroker) as error:
            raise ControllerUnavailable(f"no producer id could be had: {error}") from None
