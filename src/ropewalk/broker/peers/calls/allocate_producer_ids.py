"""AllocateProducerIds: a node asks the controller for a block of producer ids that nobody else gets."""

from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.controller.producer_ids import ProducerIdBlock
from ropewalk.wire.peer import allocate_producer_ids as wire


def allocate_producer_ids(node_id: NodeId, broker_epoch: int) -> ControllerCall[ProducerIdBlock]:
    return controller_call(wire.API, wire.AllocateProducerIdsRequest(node_id, broker_epoch), _block)


def _block(answer: wire.AllocateProducerIdsResponse) -> ProducerIdBlock:
    start = answer.first_producer_id
    return ProducerIdBlock(ProducerId(start), ProducerId(start + answer.count))
