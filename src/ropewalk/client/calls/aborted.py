"""Which batches of an answer are not for those who read what is committed: the records of aborted transactions.

The broker names producers, each with the first offset of a transaction that was aborted. A producer's abort marker ends that one, so that
its next transaction is seen: also where the marker is all of it that is left to read.
"""

from collections import deque
from collections.abc import Sequence

from ropewalk.records.batch import BatchHeader
from ropewalk.records.control import ControlType
from ropewalk.records.record import decode_records


class AbortedTransactions:
    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        """Producer ids with the first offset of their transaction."""
        self._to_come = deque(sorted(aborted, key=lambda each: each[1]))
        self._open: set[int] = set()

    def holds(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the batch belongs to one of them. Ask about every batch, in order, markers among them."""
        if not header.is_transactional:
            return False
        while self._to_come and self._to_come[0][1] < header.end_offset:
            self._open.add(self._to_come.popleft()[0])
        if header.is_control:
            if header.producer_id in self._open and header.record_count and _is_abort(batch):
                self._open.discard(header.producer_id)
            return False
        return header.producer_id in self._open


def _is_abort(batch: memoryview) -> bool:
    key = decode_records(batch)[0].key or b""
    return int.from_bytes(key[2:4], "big") == ControlType.ABORT
