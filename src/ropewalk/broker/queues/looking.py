"""Messages of a queue for somebody who only looks: what has become of each, and until when.

What a reader could get wrong
    What is seen may not be committed yet, as far as the state goes. The messages are.
"""

from ropewalk.base.ids import Offset
from ropewalk.base.limits import QUEUE_PEEK_BYTES_MAX, QUEUE_READ_BYTES
from ropewalk.base.ports import Pool
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.opened import delay_ms_of
from ropewalk.broker.queues.reading import find, read_records
from ropewalk.queues.messages import Seen
from ropewalk.records.record import Record


async def look_at(hosted: HostedQueue, pool: Pool, offset: Offset) -> Seen | None:
    """None where it is not, or no longer, in the log, or no message."""
    hosted.serving()
    if offset >= hosted.partition.log.end_offset:  # somebody made it up
        return None
    found = await read_records(hosted.partition, {offset}, pool, bytes_max=1)
    return _seen(hosted, found[offset]) if offset in found else None


async def peek(hosted: HostedQueue, pool: Pool, *, count_max: int) -> list[Seen]:
    """The first ones that are not settled, as far as they lie within what one look may read, and show."""
    seen: list[Seen] = []
    read_bytes = shown_bytes = 0
    partition = hosted.partition
    offset = max(hosted.serving().state.floor, partition.log.start_offset)
    while len(seen) < count_max and max(read_bytes, shown_bytes) < QUEUE_PEEK_BYTES_MAX:
        partition.check_readable()
        reading = find(partition, offset, limit_offset=partition.log.end_offset, bytes_max=QUEUE_READ_BYTES)
        if reading is None:
            break
        passage = reading.read_cached()
        if passage is None:
            passage = await pool.run(reading.read)
            reading.on_read()
        state = hosted.serving().state
        for record in passage.records:
            if len(seen) >= count_max or shown_bytes >= QUEUE_PEEK_BYTES_MAX:
                break
            if not state.is_settled(record.offset):
                seen.append(_seen(hosted, record))
                shown_bytes += record_bytes(record)
        read_bytes += QUEUE_READ_BYTES
        offset = max(passage.end_offset, offset + 1)
    return seen


def record_bytes(record: Record) -> int:
    """What a message takes to be shown, about."""
    return len(record.value or b"") + sum(len(name) + len(value or b"") for name, value in record.headers)


def _seen(hosted: HostedQueue, record: Record) -> Seen:
    core, settings, clock = hosted.serving(), hosted.settings, hosted.log_clock
    state, now_ms, index = core.state, hosted.now_ms(), hosted.index
    if state.is_settled(record.offset):
        return Seen(index, record, "settled")
    entry = state.entries.get(record.offset)
    behind = core.held_up_by(record.offset)
    behind_offset = -1 if behind is None else behind
    if entry is None:
        delay_ms = settings.delay_ms if settings.is_fifo else delay_ms_of(record)
        until_ms = record.timestamp + delay_ms
        if delay_ms and until_ms > now_ms:
            return Seen(index, record, "delayed", until_ms=until_ms)
        if state.is_moving(record.offset):
            return Seen(index, record, "moving")
        is_unread = settings.is_fifo and record.offset >= core.read_end
        return Seen(index, record, "unread" if is_unread else "visible", behind_offset=behind_offset)
    is_hidden = entry.until_ms > clock.log_ms(now_ms)
    if state.is_moving(record.offset):
        name = "moving"
    elif is_hidden:
        name = "in flight" if entry.is_acquired else "resting"
    elif settings.dead_letters and entry.receive_count >= settings.dead_letters.receive_count_max:
        name = "dying"
    else:
        name = "visible"
    return Seen(
        index,
        record,
        name,
        entry.receive_count,
        entry.first_received_at_ms,
        entry.attempt,
        clock.now_ms(entry.until_ms) if is_hidden else 0,
        behind_offset if name == "visible" else -1,
    )
