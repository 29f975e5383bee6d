"""What one turn of the loop appends to a queue's log: its messages as one batch, and what has changed as one delta or a snapshot.

What a reader could get wrong
    The messages of a turn are several batches only where one would be too large. Nobody else appends between them.
    A segment may be as small as a message may be large (`segment.bytes`), so that is asked, too: what fits none would fail the whole turn.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ropewalk.base.ids import OwnerId
from ropewalk.base.limits import QUEUE_BATCH_BYTES, QUEUE_BATCH_RECORDS_MAX, QUEUE_SNAPSHOT_PIECE_BYTES
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.queues.messages import Outgoing
from ropewalk.records.batch import HEADER_BYTES, decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.conform import conform
from ropewalk.records.control import BEGINS_HERE, NOT_WHOLE, OWNER_GONE, build_state
from ropewalk.records.packing import Entry, Headers, entry_bytes, pack

_STATE_OVERHEAD_BYTES: Final = 256
"""More than a state batch takes besides its value: its header, its key, and the record's lengths."""


def entries_of(messages: Sequence[Outgoing]) -> list[tuple[Entry, int]]:
    """Each with no less than it takes in a batch."""
    entries: list[tuple[Entry, int]] = []
    headers: Headers = ()
    without_body_bytes = entry_bytes(None, None, ())
    for message in messages:
        if message.headers is not headers:  # those of one sender are often the very same
            headers = message.headers
            without_body_bytes = entry_bytes(None, None, headers)
        key, body = message.group.encode() if message.group else None, message.body
        size_bytes = without_body_bytes + len(body) + (len(key) if key else 0)
        entries.append(((key, body, message.sent_at_ms, headers), size_bytes))
    return entries


def size_of(entry: Entry) -> int:
    """No less than it takes in a batch."""
    return entry_bytes(entry[0], entry[1], entry[3])


def size_max(partition: Partition) -> int:
    """Of a message that the topic takes."""
    return min(partition.rules.bytes_max, partition.log.settings.segment_bytes) - HEADER_BYTES


def state_size_max(partition: Partition) -> int:
    """Of a delta, or of a piece of a snapshot."""
    return min(QUEUE_SNAPSHOT_PIECE_BYTES, partition.log.settings.segment_bytes - _STATE_OVERHEAD_BYTES)


def append_messages(partition: Partition, entries: Sequence[Entry], size_bytes: int, now_ms: int) -> None:
    """From the log's end on, one after the other; `size_bytes` is no less than they take together.

    Raises what the partition refuses with; some may be in the log then.
    """
    bytes_max = min(QUEUE_BATCH_BYTES, size_max(partition))
    fits_one = size_bytes <= bytes_max and len(entries) <= QUEUE_BATCH_RECORDS_MAX
    for batch in (entries,) if fits_one else _batches(entries, bytes_max):
        view = memoryview(pack(batch, codec=Codec.NONE))
        header = decode_header(view)
        if partition.rules.rewrites:
            view, header = conform(view, header, partition.rules, now_ms)
        partition.append(Prepared(view, header), Acks.NOBODY, 0)


def append_delta(partition: Partition, owner: OwnerId, value: bytes, now_ms: int) -> None:
    _append_state(partition, owner, value, now_ms, NOT_WHOLE)


def append_snapshot(partition: Partition, owner: OwnerId, pieces: Sequence[bytes], now_ms: int) -> int:
    """Answers how large it is."""
    first_offset = partition.log.end_offset
    for piece in pieces[:-1]:
        _append_state(partition, owner, piece, now_ms, NOT_WHOLE)
    start = BEGINS_HERE if len(pieces) == 1 else first_offset
    _append_state(partition, owner, pieces[-1], now_ms, start)
    return sum(map(len, pieces))


def append_farewell(partition: Partition, owner: OwnerId, now_ms: int) -> None:
    """The owner has gone, and its state holds nothing up any more."""
    _append_state(partition, owner, b"", now_ms, OWNER_GONE)


def _append_state(
    partition: Partition, owner: OwnerId, value: bytes, now_ms: int, snapshot_start: int
) -> None:
    batch = memoryview(build_state(owner, value, timestamp_ms=now_ms, snapshot_start=snapshot_start))
    partition.append(Prepared(batch, decode_header(batch)), Acks.NOBODY, 0)


def _batches(entries: Sequence[Entry], bytes_max: int) -> Iterator[Sequence[Entry]]:
    if len(entries) == 1:
        yield entries
        return
    batch: list[Entry] = []
    batch_bytes = 0
    for entry in entries:
        size_bytes = size_of(entry)
        if batch and (batch_bytes + size_bytes > bytes_max or len(batch) >= QUEUE_BATCH_RECORDS_MAX):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(entry)
        batch_bytes += size_bytes
    yield batch
