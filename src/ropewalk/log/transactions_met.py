"""The transactions that a pass of compaction meets on its way through a log, from its beginning."""

from bisect import bisect_right
from collections.abc import Iterable

from ropewalk.log.aborted import AbortedTransaction
from ropewalk.records.batch import BatchHeader


class TransactionsMet:
    __slots__ = ("_aborted", "_with_records")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Those that were aborted, in the order of their markers."""
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for each in aborted:
            self._aborted.setdefault(each.producer_id, []).append(each)
        self._with_records: set[int] = set()
        """Producers of whose present transaction something stays."""

    def has_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of the batch count for nothing."""
        if not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            return False
        at = bisect_right(aborted, int(header.base_offset), key=_last_offset_of)
        return at < len(aborted) and aborted[at].first_offset <= header.base_offset

    def keep(self, header: BatchHeader) -> None:
        """Some records of the batch stay."""
        if header.is_transactional:
            self._with_records.add(header.producer_id)

    def end(self, header: BatchHeader) -> bool:
        """A marker is met; whether anything of its transaction stays."""
        has_records = header.producer_id in self._with_records
        self._with_records.discard(header.producer_id)
        return has_records


def _last_offset_of(transaction: AbortedTransaction) -> int:
    return transaction.last_offset
