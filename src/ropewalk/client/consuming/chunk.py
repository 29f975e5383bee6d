"""What one partition sent in answer to a fetch, opened batch by batch as it is asked for.

What a reader could get wrong
    Who reads what is committed skips the batches of aborted transactions, which the broker names.
    Markers, aborted and compacted batches move the position and yield nothing.
    A batch that cannot be opened ends the chunk (`failure`): what lies before it is handed out, the position stays at it, and
    nothing behind it is looked at. Whoever wants to go on seeks past it.
"""

from collections import deque
from collections.abc import Sequence

from ropewalk.base.errors import CorruptBatch, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.aborted import AbortedTransactions
from ropewalk.client.consuming.message import Message
from ropewalk.client.errors import UnreadableBatch
from ropewalk.records.batch import HEADER_BYTES, BatchHeader, decode_header, verify_crc
from ropewalk.records.unpacking import unpack
from ropewalk.wire.types import Buffer


class Chunk:
    """`position` is the next offset to be read from it; `end_offset` where it ends."""

    def __init__(
        self,
        partition: TopicPartition,
        records: Buffer,
        *,
        fetch_offset: int,
        aborted: Sequence[tuple[int, int]] = (),
        checks_crcs: bool = True,
    ) -> None:
        """`aborted` are producer ids with the first offset of their transaction."""
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.position = fetch_offset
        self.end_offset = fetch_offset
        self.leader_epoch = -1
        """Of the batch that was opened last."""
        self.epochs: list[tuple[int, int]] = []
        """The leader epochs of its batches, each with the first offset of it."""
        self.failure: UnreadableBatch | None = None
        """Why nothing more can be taken from it."""
        view = memoryview(records)
        self._batches: deque[tuple[memoryview, BatchHeader]] = deque()
        self.size_bytes = len(view)
        self._aborted = AbortedTransactions(aborted)
        self._opened: deque[Message] = deque()
        self._checks_crcs = checks_crcs
        self._unframed: UnreadableBatch | None = None
        """What follows the batches and is none: without a header nobody knows where the next would begin."""
        position = 0
        while len(view) - position >= HEADER_BYTES:
            try:
                header = decode_header(view, position)
            except RopewalkError as error:
                self._unframed = UnreadableBatch(partition, self.end_offset, None, error)
                break
            if header.size_bytes > len(view) - position:
                break
            if header.end_offset > fetch_offset:
                self._batches.append((view[position : position + header.size_bytes], header))
                self.end_offset = header.end_offset
                if not self.epochs or self.epochs[-1][0] != header.leader_epoch:
                    self.epochs.append((header.leader_epoch, header.base_offset))
            position += header.size_bytes

    @property
    def is_empty(self) -> bool:
        return not self._batches and not self._opened and self._unframed is None

    def take(self, count_max: int) -> list[Message]:
        """Up to so many messages, in order; fewer where the next batch cannot be opened, of which `failure` tells."""
        taken: list[Message] = []
        while len(taken) < count_max and self.failure is None:
            if not self._opened:
                if not self._batches:
                    self.failure = self._unframed
                    break
                messages = self._open_next()
                if len(messages) <= count_max - len(taken):
                    taken += messages
                    continue
                self._opened.extend(messages)
            opened = self._opened
            taken += [opened.popleft() for _ in range(min(count_max - len(taken), len(opened)))]
        if self._opened:
            self.position = self._opened[0].offset
        elif not self._batches:
            self.position = self.end_offset
        elif taken:
            self.position = max(self.position, taken[-1].offset + 1)
        return taken

    def _open_next(self) -> list[Message]:
        """The messages of the next batch; it is passed only if it could be opened."""
        batch, header = self._batches[0]
        messages: list[Message] = []
        try:
            if self._checks_crcs and not verify_crc(batch):
                raise CorruptBatch("the batch fails its CRC")
            if not self._aborted.holds(header, batch) and not header.is_control:
                messages = unpack(
                    batch,
                    header,
                    topic=self.partition.topic,
                    partition=self.partition.partition,
                    from_offset=self.fetch_offset,
                    make=Message,
                )
        except RopewalkError as error:
            self.failure = UnreadableBatch(self.partition, header.base_offset, header.end_offset, error)
            return []
        self._batches.popleft()
        self.leader_epoch = header.leader_epoch
        self.position = header.end_offset
        return messages
