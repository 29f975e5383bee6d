"""QueueShip: take dead letters that another node brings, once each."""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicId
from ropewalk.broker.peers.calls.queue_records import of_record
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.arrivals import Arrivals
from ropewalk.kafka.caller import Caller
from ropewalk.queues.messages import Shipment
from ropewalk.records.packing import Entry
from ropewalk.wire.peer.queue_parts import QueueRecord
from ropewalk.wire.peer.queue_ship import QueueShipRequest, QueueShipResponse


async def handle(request: QueueShipRequest, caller: Caller, *, arrivals: Arrivals) -> QueueShipResponse:
    del caller  # any node of the cluster
    shipment = Shipment(
        topic_id=TopicId(bytes(request.topic_id)),
        partition=request.partition,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        sequence=request.sequence,
        message_count=request.message_count,
        first_index=request.first_index,
        entries=[_entry(each) for each in request.records],
    )
    try:
        arrived = await arrivals.take(shipment)
    except RopewalkError as error:
        return QueueShipResponse(refusal_of(error))
    return QueueShipResponse(NOTHING, arrived.arrival, arrived.message_count)


def _entry(record: QueueRecord) -> Entry:
    read = of_record(record)
    return read.key, read.value, read.timestamp, read.headers
