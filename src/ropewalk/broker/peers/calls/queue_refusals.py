"""Refusals of queues between nodes: named as the engine names them, and understood again by that name."""

from typing import Final

from ropewalk.base import errors
from ropewalk.base.errors import RopewalkError, ShardUnavailable
from ropewalk.queues import errors as queues
from ropewalk.wire.peer.queue_parts import QueueRefusal

NOTHING: Final = QueueRefusal()

_KINDS: Final[tuple[type[RopewalkError], ...]] = (
    errors.BatchTooLarge,
    errors.DiskFull,
    errors.NodeStopping,
    errors.NotEnoughReplicas,
    errors.NotLeader,
    errors.PurgeInProgress,
    errors.QueueNotReady,
    errors.ShardUnavailable,
    errors.StorageFailed,
    errors.Throttled,
    errors.UnknownQueue,
    queues.DeduplicationFull,
    queues.MessageNotInFlight,
    queues.MoveUnderWay,
    queues.ReceiptExpired,
    queues.TooManyInFlight,
    queues.TooManyWaiting,
    queues.VisibilityTooLong,
)
_BY_NAME: Final = {kind.__name__: kind for kind in _KINDS}


def refusal_of(error: RopewalkError | None) -> QueueRefusal:
    return NOTHING if error is None else QueueRefusal(type(error).__name__, str(error))


def error_of(refusal: QueueRefusal) -> RopewalkError | None:
    """None where nothing was refused. What has no name here may have been done: its outcome is unknown."""
    if not refusal.name:
        return None
    kind = _BY_NAME.get(refusal.name)
    return ShardUnavailable(f"{refusal.name}: {refusal.reason}") if kind is None else kind(refusal.reason)


def check(refusal: QueueRefusal) -> None:
    error = error_of(refusal)
    if error is not None:
        raise error
