"""What a receive is given: the next visible messages, or the same as before if it is repeated under its id."""

from msgspec import Struct

from ropewalk.base.limits import QUEUE_DEDUPLICATION_MS, QUEUE_RECEIVE_MESSAGES_MAX
from ropewalk.queues.answers import Given, Received
from ropewalk.queues.commands import Receive
from ropewalk.queues.errors import TooManyInFlight
from ropewalk.queues.events import Acquired
from ropewalk.queues.outlook import Outlook
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import QueueState


class Batch(Struct, frozen=True):
    """Messages that are given out together."""

    offsets: tuple[int, ...]
    sent_at_ms: tuple[int, ...]
    attempt: int

    def acquired(self, command: Receive, *, at_ms: int, received_at_ms: int) -> Acquired:
        return Acquired(
            self.offsets,
            self.sent_at_ms,
            self.attempt,
            at_ms,
            at_ms + command.visibility_ms,
            received_at_ms,
            command.request_id,
        )

    def answer(self, state: QueueState) -> Received:
        """After it was applied."""
        given = []
        for offset in self.offsets:
            entry = state.entries[offset]
            given.append(Given(offset, entry.receive_count, entry.first_received_at_ms))
        return Received(self.attempt, tuple(given))


class Chosen(Struct, frozen=True):
    batch: Batch | None
    """None: there is nothing to give."""
    expired: tuple[int, ...]
    """Older than the queue keeps messages: to be settled, whether or not something is given."""


def repeated(state: QueueState, command: Receive, log_ms: int) -> Batch | None:
    """The messages of the receive with the same id within five minutes, if it still has all of them and nobody has changed their visibility."""
    kept = state.receives.get(command.request_id) if command.request_id else None
    if kept is None or min(kept.until_ms, kept.at_ms + QUEUE_DEDUPLICATION_MS) <= log_ms:
        return None
    sent_at_ms = []
    for offset in kept.offsets:
        entry = state.entries.get(offset)
        if entry is None or entry.attempt != kept.attempt or entry.until_ms != kept.until_ms:
            return None
        sent_at_ms.append(entry.sent_at_ms)
    return Batch(kept.offsets, tuple(sent_at_ms), kept.attempt)


def choose(
    outlook: Outlook, settings: QueueSettings, command: Receive, *, room: int, attempt: int, now_ms: int
) -> Chosen:
    """No more than there is room for in flight, in this attempt. Raises `TooManyInFlight` on a standard queue; a FIFO queue gives nothing then, as SQS does."""
    if room <= 0 and not settings.is_fifo:
        raise TooManyInFlight(f"{settings.in_flight_max} messages are in flight already")
    count_max = min(command.count_max, QUEUE_RECEIVE_MESSAGES_MAX, room)
    offsets: list[int] = []
    sent: list[int] = []
    expired: list[int] = []
    if count_max > 0:
        for offset in outlook.line.take():
            sent_at_ms = outlook.sent_at_ms(offset)
            assert sent_at_ms is not None, "what is visible is not delayed"
            if sent_at_ms + settings.retention_ms <= now_ms:
                expired.append(offset)
                continue
            offsets.append(offset)
            sent.append(sent_at_ms)
            if len(offsets) == count_max:
                break
    batch = Batch(tuple(offsets), tuple(sent), attempt) if offsets else None
    return Chosen(batch, tuple(expired))
