"""The state of a queue's partition as its log tells it: from the last whole snapshot on, in the disk pool.

What a reader could get wrong
    Only state batches are opened, and on a FIFO queue the messages since the snapshot, for their deduplication ids. Messages are read when
    receivers need them.
    Nobody but a leader that has loaded the state writes any, so what others append meanwhile has nothing of it.
    Before an owner's first snapshot is whole there is nothing to be read: every leader begins with one.
"""

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch, InvalidRecord, StorageFailed, UnsupportedCompression
from ropewalk.base.ids import Offset, OwnerId
from ropewalk.base.limits import QUEUE_LOAD_BYTES
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues.opened import deduplication_id_of, group_of
from ropewalk.log.span import Span
from ropewalk.queues import QueueReplay
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import QueueState
from ropewalk.records.batch import iterate
from ropewalk.records.control import read_state_key
from ropewalk.records.record import decode_records


class Loaded(Struct, frozen=True):
    state: QueueState
    end_offset: Offset
    """Of the log when loading began: everything below was written by earlier leaders, or is no state."""
    read_bytes: int
    """From the snapshot to the end."""
    snapshot_bytes: int
    delta_bytes: int
    """Of the deltas after it."""
    is_new: bool
    """There was no snapshot: nobody has led the queue here before."""
    written_offsets: tuple[int, ...]
    """Offsets from the cursor on that are no messages, as far as they were met."""


async def load(
    partition: Partition, owner: OwnerId, settings: QueueSettings, *, start_offset: int, pool: Pool
) -> Loaded:
    """`start_offset`: from where on records are messages, if the queue has no state yet.

    Raises `StorageFailed` where the log cannot be read and `InvalidRecord` where a state record cannot: what was answered would be forgotten
    if either were skipped.
    """
    log = partition.log
    end_offset = log.end_offset
    place = log.places.last_of(owner)
    if place is None:
        state = QueueState(max(start_offset, log.start_offset))
        return Loaded(state, end_offset, 0, 0, 0, True, ())
    replay = _Replay(owner, settings)
    offset = Offset(place.start_offset)
    while offset < end_offset:
        partition.check_readable()
        span = log.locate(offset, limit_offset=end_offset, bytes_max=QUEUE_LOAD_BYTES)
        if span is None:
            break
        offset = await pool.run(replay.read, span, offset)
        log.on_read(span)
    state = replay.state
    written = tuple([offset for offset in replay.written_offsets if offset >= state.cursor])
    return Loaded(
        state, end_offset, replay.read_bytes, replay.snapshot_bytes, replay.delta_bytes, False, written
    )


class _Replay:
    """Runs in the disk pool, a stretch at a time. Nobody else has it."""

    def __init__(self, owner: OwnerId, settings: QueueSettings) -> None:
        self._owner = owner
        self._is_fifo = settings.is_fifo
        self._replay = QueueReplay(settings)
        self.read_bytes = 0
        self.written_offsets: list[int] = []

    @property
    def state(self) -> QueueState:
        return self._replay.state

    @property
    def snapshot_bytes(self) -> int:
        return self._replay.snapshot_bytes

    @property
    def delta_bytes(self) -> int:
        return self._replay.delta_bytes

    def read(self, span: Span, start_offset: Offset) -> Offset:
        """Answers where the next stretch begins."""
        try:
            data = bytes(span.read())
        except OSError as error:
            raise StorageFailed(f"the state of a queue cannot be read: {error}") from error
        end_offset = start_offset
        view = memoryview(data)
        for position, header in iterate(data):
            end_offset = header.end_offset
            if header.base_offset < start_offset:
                continue
            if header.is_control:
                self.written_offsets.append(header.base_offset)
                key = read_state_key(header, view[position : position + header.size_bytes])
                if key is not None and key.owner == self._owner:
                    self._read_state(view[position : position + header.size_bytes])
            elif self._is_fifo and not header.is_transactional:  # what the queue itself appends never is
                self._read_messages(view[position : position + header.size_bytes])
        self.read_bytes += len(data)
        if end_offset == start_offset:
            raise InvalidRecord(f"nothing of the log can be read from offset {start_offset} on")
        return Offset(end_offset)

    def _read_state(self, batch: memoryview) -> None:
        for record in decode_records(batch):
            if record.value:
                self._replay.read(record.value)

    def _read_messages(self, batch: memoryview) -> None:
        try:
            records = decode_records(batch)
        except (CorruptBatch, UnsupportedCompression):  # as its sender made it: there is no message in it
            return
        for record in records:
            deduplication_id = deduplication_id_of(record)
            if deduplication_id is not None:
                self._replay.remember(
                    record.offset,
                    sent_at_ms=record.timestamp,
                    group=group_of(record),
                    deduplication_id=deduplication_id,
                )
