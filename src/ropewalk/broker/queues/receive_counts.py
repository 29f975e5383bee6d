"""How often messages were given out through this node, how many of them again, and how often there was nothing to give."""

from collections.abc import Container, Sequence

from msgspec import Struct

from ropewalk.base.ids import OwnerId
from ropewalk.queues.messages import Delivered


class Counted(Struct):
    received_count: int = 0
    redelivered_count: int = 0
    """Of those, messages that somebody had received before."""
    empty_count: int = 0
    """Receives that were answered without a message."""


class ReceiveCounts:
    """By queue. Whoever reads them says which queues there are, so that others are forgotten."""

    def __init__(self) -> None:
        self._counted: dict[OwnerId, Counted] = {}

    def note(self, queue_id: OwnerId, delivered: Sequence[Delivered]) -> None:
        counted = self._counted.get(queue_id)
        if counted is None:
            counted = self._counted[queue_id] = Counted()
        if not delivered:
            counted.empty_count += 1
            return
        counted.received_count += len(delivered)
        for each in delivered:
            if each.receive_count > 1:
                counted.redelivered_count += 1

    def of(self, queue_id: OwnerId) -> Counted | None:
        return self._counted.get(queue_id)

    def keep_only(self, queue_ids: Container[OwnerId]) -> None:
        self._counted = {key: counted for key, counted in self._counted.items() if key in queue_ids}
