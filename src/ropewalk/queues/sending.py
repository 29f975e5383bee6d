"""FIFO: what is sent is new, or a duplicate of what was sent in the last five minutes."""

from ropewalk.queues.answers import Admitted
from ropewalk.queues.commands import Send
from ropewalk.queues.deduplication import Deduplication, deduplication_key
from ropewalk.queues.errors import DeduplicationFull
from ropewalk.queues.settings import QueueSettings


def admit(deduplication: Deduplication, settings: QueueSettings, command: Send, now_ms: int) -> Admitted:
    """Remembers the new ones under the offsets that they will have. All are taken, or none."""
    deduplication.forget(now_ms)
    if deduplication.is_full:
        raise DeduplicationFull(
            f"{len(deduplication)} deduplication ids in five minutes are all that is kept"
        )
    offsets: list[int] = []
    are_duplicates: list[bool] = []
    next_offset = command.next_offset
    for message in command.messages:
        scope = message.group if settings.deduplicates_by_group else ""
        key = deduplication_key(message.deduplication_id, scope)
        first = deduplication.first_with(key, now_ms)
        are_duplicates.append(first is not None)
        if first is None:
            first = next_offset
            next_offset += 1
            deduplication.remember(key, first, now_ms)
        offsets.append(first)
    return Admitted(tuple(offsets), tuple(are_duplicates))
