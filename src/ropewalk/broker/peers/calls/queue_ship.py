"""QueueShip: dead letters for a partition that another node leads."""

from ropewalk.base.errors import ShardUnavailable
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_records import to_headers
from ropewalk.broker.peers.calls.queue_refusals import check
from ropewalk.broker.peers.peers import Lane
from ropewalk.queues.messages import Arrival, Arrived, Shipment
from ropewalk.wire.peer import queue_ship as wire
from ropewalk.wire.peer.queue_parts import QueueRecord


def queue_ship(shipment: Shipment) -> Call[Arrived]:
    request = wire.QueueShipRequest(
        shipment.topic_id,
        shipment.partition,
        shipment.producer_id,
        shipment.producer_epoch,
        shipment.sequence,
        shipment.message_count,
        shipment.first_index,
        tuple(
            [
                QueueRecord(0, timestamp, key, value, to_headers(headers))
                for key, value, timestamp, headers in shipment.entries
            ]
        ),
    )

    def understand(response: wire.QueueShipResponse) -> Arrived:
        check(response.refusal)
        try:
            return Arrived(Arrival(response.arrival), response.message_count)
        except ValueError:
            raise ShardUnavailable(f"nobody knows what {response.arrival!r} means") from None

    return call(wire.API, request, understand, lane=Lane.QUEUES)
