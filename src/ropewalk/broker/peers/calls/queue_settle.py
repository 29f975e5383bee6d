"""QueueSettle: what becomes of messages that were given out by another node."""

from collections.abc import Sequence
from typing import NamedTuple

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_refusals import check, error_of
from ropewalk.broker.peers.peers import Lane
from ropewalk.queues.messages import Receipt
from ropewalk.wire.peer import queue_settle as wire
from ropewalk.wire.peer.queue_parts import QueueHandle


class Settled(NamedTuple):
    """For each of them nothing, or why it was refused."""

    deleted: list[RopewalkError | None]
    changed: list[RopewalkError | None]


def queue_settle(
    queue_id: OwnerId,
    partition: int,
    *,
    deletes: Sequence[Receipt] = (),
    changes: Sequence[tuple[Receipt, int]] = (),
    releases: Sequence[Receipt] = (),
) -> Call[Settled]:
    """Raises what all of them are refused with."""
    request = wire.QueueSettleRequest(
        queue_id,
        partition,
        tuple(map(_handle, deletes)),
        tuple([wire.QueueVisibility(_handle(receipt), visibility_ms) for receipt, visibility_ms in changes]),
        tuple(map(_handle, releases)),
    )

    def understand(response: wire.QueueSettleResponse) -> Settled:
        check(response.refusal)
        return Settled(list(map(error_of, response.deleted)), list(map(error_of, response.changed)))

    return call(wire.API, request, understand, lane=Lane.QUEUES)


def _handle(receipt: Receipt) -> QueueHandle:
    return QueueHandle(receipt.offset, receipt.attempt)
