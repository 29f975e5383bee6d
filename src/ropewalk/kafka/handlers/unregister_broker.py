"""UnregisterBroker: forget a broker that is gone for good.

Behaviour worth knowing
    A broker that holds partitions, or that is in service, is not forgotten: it would come back, or records would be lost.
    Whoever asks, with a field of our own, has it drained first. That goes on by itself, and the answer says how far it is:
    draining, drained (stop its process; asking again then forgets it), removed. With another field it stays after all,
    and with a third it is kept from leading, or no longer.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.unregister_broker import API, UnregisterBrokerRequest, UnregisterBrokerResponse

_MAINTENANCE = "maintenance"
"""What is answered where it was asked for, so that whoever asks can tell from a broker that does not know of it."""


async def handle(
    request: UnregisterBrokerRequest, caller: Caller, *, balancing: Balancing
) -> UnregisterBrokerResponse:
    node_id = NodeId(request.broker_id)
    mandate = caller.mandate(API.name)
    try:
        with caller.hold():
            if request.maintenance >= 0:
                await balancing.set_maintenance(node_id, mandate, is_on=bool(request.maintenance))
                return UnregisterBrokerResponse(throttle_ms=0, stage=_MAINTENANCE)
            if request.keep:
                await balancing.keep(node_id, mandate)
                return UnregisterBrokerResponse(throttle_ms=0, stage="kept")
            if request.drain:
                removal = await balancing.remove(node_id, mandate)
                return UnregisterBrokerResponse(
                    throttle_ms=0, stage=removal.stage.value, held_count=removal.held_count
                )
            await balancing.forget(node_id, mandate)
    except RopewalkError as error:
        return UnregisterBrokerResponse(throttle_ms=0, error_code=code_for(error), error_message=str(error))
    return UnregisterBrokerResponse(throttle_ms=0, error_code=ErrorCode.NONE)
