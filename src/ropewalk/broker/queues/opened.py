"""What a record says of its place in a queue: its group, its delay, its deduplication id.

What a reader could get wrong
    Anybody may write records into a topic. A header that cannot be read counts as not there, and a key that is no text is still a group.
"""

from collections.abc import Iterable

from ropewalk.base.limits import QUEUE_DELAY_MS_MAX
from ropewalk.broker.queues.headers import DEDUPLICATION_ID, DELAY_MS, MOVED_FROM, SOURCE_QUEUE
from ropewalk.queues.commands import Message
from ropewalk.records.packing import Headers
from ropewalk.records.record import Record


def messages_of(records: Iterable[Record]) -> tuple[Message, ...]:
    messages: list[Message] = []
    headers: Headers = ()
    delay_ms = 0
    for record in records:
        if record.headers is not headers:  # those of one sender are often the very same
            headers, delay_ms = record.headers, delay_ms_of(record)
        group = group_of(record) if record.key else ""
        messages.append(Message(record.offset, record.timestamp, group, delay_ms))
    return tuple(messages)


def group_of(record: Record) -> str:
    return record.key.decode(errors="backslashreplace") if record.key else ""


def delay_ms_of(record: Record) -> int:
    text = header_of(record, DELAY_MS)
    if text is None or not text.isdigit():
        return 0
    return min(int(text[:18]), QUEUE_DELAY_MS_MAX)


def deduplication_id_of(record: Record) -> str | None:
    """None for one that has none, and for a message that was moved here: moved ones are never taken for duplicates."""
    text = header_of(record, DEDUPLICATION_ID)
    if text is None or any(header_of(record, name) is not None for name in (SOURCE_QUEUE, MOVED_FROM)):
        return None
    return text.decode(errors="backslashreplace")


def header_of(record: Record, name: str) -> bytes | None:
    """The last of that name, as Kafka's clients take it."""
    found: bytes | None = None
    for each, value in record.headers:
        if each == name:
            found = value
    return found
