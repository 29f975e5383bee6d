"""What the core of a queue's partition is told of its log: from what is at hand, or read for it, here or in the disk pool.

What a reader could get wrong
    Nothing is told here. Whoever reads in the disk pool says so when it is there (`on_news`), and it is asked for again.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from ropewalk.base.errors import OffsetOutOfRange, RopewalkError
from ropewalk.base.limits import QUEUE_READ_BYTES, QUEUE_REREAD_BYTES, QUEUE_REST_MS, QUEUE_TOLD_TOGETHER
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues.read_ahead import ReadAhead, ReadAheadRoom
from ropewalk.broker.queues.reading import Reading, find, read_records
from ropewalk.records.record import Record

_log = structlog.get_logger()


class Supply:
    def __init__(
        self, partition: Partition, pool: Pool, room: ReadAheadRoom, *, on_news: Callable[[], None]
    ) -> None:
        self._partition = partition
        self._pool = pool
        self._on_news = on_news
        self.ahead = ReadAhead(room)
        self._reading: Reading | None = None
        """Under way in the disk pool."""

    def gather(self, offset: int, limit_offset: int) -> tuple[int, list[Record]]:
        """What is at hand from there on: together, so that a receiver is given as many as it asks for. Answers where it ends."""
        records: list[Record] = []
        while len(records) < QUEUE_TOLD_TOGETHER:
            passage = self.ahead.next_passage(offset, limit_offset=limit_offset)
            if passage is not None:
                records += passage.records
                offset = passage.end_offset
                continue
            # More than there is room for would push those out that are given out next.
            is_enough = offset >= limit_offset or (bool(records) and not self.ahead.has_room)
            if is_enough or self._reading is not None or not self._read(offset):
                break
        return offset, records

    async def records_at(self, offsets: list[int]) -> dict[int, Record]:
        """Those that are still in the log. May be awaited where there is no task. Raises `StorageFailed` where it cannot be read."""
        records: dict[int, Record] = {record.offset: record for record in self.ahead.take(offsets)}
        missing = set(offsets) - records.keys()
        if missing:
            read = await read_records(self._partition, missing, self._pool, bytes_max=QUEUE_REREAD_BYTES)
            records.update(read)
        return records

    def clear(self) -> None:
        self.ahead.clear()
        self._reading = None

    def _read(self, offset: int) -> bool:
        """Whether something is at hand now. Otherwise it is being read, or there is nothing."""
        gap_end = self.ahead.gap_end(offset)
        limit_offset = self._partition.log.end_offset if gap_end is None else gap_end
        reading = find(self._partition, offset, limit_offset=limit_offset, bytes_max=QUEUE_READ_BYTES)
        if reading is None:
            return False
        passage = reading.read_cached()
        if passage is None:
            self._reading = reading
            self._pool.run(reading.read).add_done_callback(lambda read: self._on_read(reading, read))
            return False
        if passage.end_offset == passage.start_offset:
            return False
        self.ahead.note_read(passage)
        return True

    def _on_read(self, reading: Reading, read: "asyncio.Future[Any]") -> None:
        if self._reading is not reading:  # nobody wants it any more
            if not read.cancelled():
                read.exception()
            return
        self._reading = None
        if read.cancelled():
            return
        failure = read.exception()
        if failure is None:
            reading.on_read()
            self.ahead.note_read(read.result())
            self._on_news()
        elif isinstance(failure, OffsetOutOfRange):  # deleted meanwhile
            self._on_news()
        elif isinstance(failure, RopewalkError):
            _log.error(
                "messages of a queue cannot be read; it is tried again",
                partition=str(self._partition.name),
                reason=str(failure),
            )
            asyncio.get_running_loop().call_later(QUEUE_REST_MS / 1000, self._on_news)
        else:
            raise failure
