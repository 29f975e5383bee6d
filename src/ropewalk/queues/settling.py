"""Deletes, changes of visibility and releases: which handles count, and what is refused.

On a standard queue the handle of any attempt deletes, and changes what is in flight. On a FIFO queue only the current attempt's does, while its time lasts:
otherwise a slow receiver could delete what is being worked on elsewhere.

What a reader could get wrong
    A receive that is repeated under its id has the attempt of the first. Whoever releases that attempt speaks for one of its answers, and somebody may
    have another one: so it is hidden until its time is over.
"""

from ropewalk.base.limits import QUEUE_VISIBILITY_MS_MAX
from ropewalk.queues.answers import Done
from ropewalk.queues.commands import Handle, VisibilityChange
from ropewalk.queues.errors import MessageNotInFlight, QueueError, ReceiptExpired, VisibilityTooLong
from ropewalk.queues.events import Hidden, Released
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import Entry, QueueState


def decide_deletes(
    state: QueueState, settings: QueueSettings, handles: tuple[Handle, ...], log_ms: int
) -> tuple[tuple[int, ...], Done]:
    """What is gone already is deleted, as SQS says; so is a dead letter under way, which is its target's by now."""
    offsets: dict[int, None] = {}
    refusals: list[QueueError | None] = []
    floor, settled, move, is_fifo = state.floor, state.settled, state.move, settings.is_fifo
    for handle in handles:
        offset = handle.offset
        is_gone = offset < floor or offset in settled or (move is not None and offset in move.offsets)
        if is_fifo and not is_gone and not _is_current(state.entries.get(offset), handle, log_ms):
            refusals.append(ReceiptExpired("the receipt handle has expired"))
            continue
        refusals.append(None)
        if not is_gone:
            offsets[offset] = None
    return tuple(offsets), Done(tuple(refusals))


def decide_changes(
    state: QueueState, settings: QueueSettings, changes: tuple[VisibilityChange, ...], log_ms: int
) -> tuple[list[Hidden], Done]:
    events: list[Hidden] = []
    refusals: list[QueueError | None] = []
    for change in changes:
        handle = change.handle
        try:
            entry = _in_flight(state, handle, log_ms)
            if settings.is_fifo and entry.attempt != handle.attempt:
                raise ReceiptExpired("the receipt handle has expired")
            until_ms = log_ms + change.visibility_ms
            if until_ms - entry.acquired_at_ms > QUEUE_VISIBILITY_MS_MAX:
                raise VisibilityTooLong("the message would be hidden for more than twelve hours in all")
        except QueueError as refusal:
            refusals.append(refusal)
            continue
        events.append(Hidden((handle.offset,), until_ms, is_acquired=True))
        refusals.append(None)
    return events, Done(tuple(refusals))


def decide_release(state: QueueState, handles: tuple[Handle, ...], log_ms: int) -> Released:
    offsets: dict[int, None] = {}
    for handle in handles:
        entry = state.entries.get(handle.offset)
        if entry is not None and _is_current(entry, handle, log_ms) and not entry.was_repeated:
            offsets[handle.offset] = None
    return Released(tuple(offsets))


def _in_flight(state: QueueState, handle: Handle, log_ms: int) -> Entry:
    entry = state.entries.get(handle.offset)
    if entry is None or not entry.is_acquired or entry.until_ms <= log_ms:
        raise MessageNotInFlight("the message does not exist or is visible")
    return entry


def _is_current(entry: Entry | None, handle: Handle, log_ms: int) -> bool:
    return (
        entry is not None
        and entry.attempt == handle.attempt
        and entry.is_acquired
        and entry.until_ms > log_ms
    )
