"""From the state records of a queue's log to its durable state: the last whole snapshot, and the deltas after it.

What a reader could get wrong
    A snapshot whose last piece is missing is nothing: its leader has died in between, and what follows builds on the state of before.
    Deduplication ids are not in deltas: messages that were sent after the snapshot bring theirs (`remember`). Where reading begins at a snapshot,
    so do the messages.
"""

from ropewalk.base.errors import InvalidRecord
from ropewalk.queues.binary import Reader
from ropewalk.queues.deduplication import deduplication_key
from ropewalk.queues.event_codec import KIND_DELTA, KIND_SNAPSHOT, check_version, decode_delta
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.snapshot_codec import decode_piece, decode_state
from ropewalk.queues.state import QueueState


class QueueReplay:
    """Give it the records in the order of the log, beginning with the first piece of a snapshot or at the log's start."""

    def __init__(self, settings: QueueSettings, *, start_offset: int = 0) -> None:
        self._settings = settings
        self._pieces: list[bytes] = []
        self.state = QueueState(start_offset)
        self.snapshot_bytes = 0
        """Of the last whole one."""
        self.delta_bytes = 0
        """Of the deltas after it."""

    def read(self, value: bytes) -> None:
        """A state record. Raises `InvalidRecord` for one that cannot be read."""
        reader = Reader(value)
        check_version(reader)
        match reader.number():
            case kind if kind == KIND_DELTA:
                self._pieces = []
                self.delta_bytes += len(value)
                self.state.apply_delta(decode_delta(value))
            case kind if kind == KIND_SNAPSHOT:
                self._read_piece(value)
            case kind:
                raise InvalidRecord(f"the state of a queue is of kind {kind}, which is not known")

    def remember(self, offset: int, *, sent_at_ms: int, group: str, deduplication_id: str) -> None:
        """A message of a FIFO queue."""
        scope = group if self._settings.deduplicates_by_group else ""
        self.state.deduplication.forget(sent_at_ms)
        self.state.deduplication.remember(deduplication_key(deduplication_id, scope), offset, sent_at_ms)

    def _read_piece(self, value: bytes) -> None:
        piece = decode_piece(value)
        if piece.index == 0:
            self._pieces = []
        elif piece.index != len(self._pieces):
            raise InvalidRecord(
                f"piece {piece.index} of a queue's snapshot follows {len(self._pieces)} others"
            )
        self._pieces.append(piece.data)
        if piece.is_last:
            self.state = decode_state(self._pieces)
            self.snapshot_bytes, self.delta_bytes = sum(map(len, self._pieces)), 0
            self._pieces = []
