"""What compaction would leave of a log, gathered in memory: of every key the last record that counts.

Invariants
    A record of a transaction counts if the transaction was committed, by its own place in the log: a record that was
    written after it, and counts, stays. So whatever comes to count for a key drops what is pending of it from before.
"""

from collections.abc import Iterator
from typing import TypeAlias

from ropewalk.records.batch import CONTROL, TRANSACTIONAL, BatchHeader
from ropewalk.records.keyed import gather_last
from ropewalk.records.marker import read_marker

RawEvent: TypeAlias = tuple[bytes, bytes | None]
"""Key and value of a record."""


class LatestRecords:
    __slots__ = ("_counting", "_open", "_position")

    def __init__(self) -> None:
        self._counting: dict[bytes, bytes | None] = {}
        """In the order in which they came to count."""
        self._open: dict[int, dict[bytes, tuple[int, bytes | None]]] = {}
        """By producer and key: which came first, and the value. Nothing empty is kept."""
        self._position = 0

    def __len__(self) -> int:
        return len(self._counting)

    def add(self, data: bytes, position: int, header: BatchHeader) -> None:
        """The next batch of the log, at `position` in `data`."""
        if not (self._open or header.attributes & (TRANSACTIONAL | CONTROL)):  # as nearly always
            gather_last(data, position, header, self._counting)
        elif header.is_control:
            batch = memoryview(data)[position : position + header.size_bytes]
            marker = read_marker(batch) if header.producer_id >= 0 else None
            if marker is not None:
                self._end(header.producer_id, marker.committed)
        elif header.is_transactional:
            sent: dict[bytes, bytes | None] = {}
            gather_last(data, position, header, sent)
            self._send(header.producer_id, sent)
        else:
            records: dict[bytes, bytes | None] = {}
            gather_last(data, position, header, records)
            for key, value in records.items():
                self._count(key, value, None)

    def take(self) -> Iterator[RawEvent]:
        """What counts of all that was added since the last time, pair by pair: a million pairs at once keep the collector busy."""
        taken, self._counting = self._counting, {}
        return iter(taken.items())

    def pending(self) -> Iterator[tuple[int, RawEvent]]:
        """What transactions have left open, with their producers, in the order of the log."""
        entries = [
            (position, producer_id, key, value)
            for producer_id, sent in self._open.items()
            for key, (position, value) in sent.items()
        ]
        for _, producer_id, key, value in sorted(entries, key=lambda entry: entry[0]):
            yield producer_id, (key, value)

    def _send(self, producer_id: int, records: dict[bytes, bytes | None]) -> None:
        sent = self._open.setdefault(producer_id, {})
        for key, value in records.items():
            self._position += 1
            sent[key] = (self._position, value)
        if not sent:
            del self._open[producer_id]

    def _end(self, producer_id: int, committed: bool) -> None:
        sent = self._open.pop(producer_id, {})
        if committed:
            for key, (position, value) in sent.items():
                self._count(key, value, position)

    def _count(self, key: bytes, value: bytes | None, before: int | None) -> None:
        """It counts from now on, and nothing does that was sent with a transaction before `before`, None for all."""
        for producer_id, sent in list(self._open.items()):
            if key in sent and (before is None or sent[key][0] < before):
                del sent[key]
                if not sent:
                    del self._open[producer_id]
        self._counting.pop(key, None)
        self._counting[key] = value
