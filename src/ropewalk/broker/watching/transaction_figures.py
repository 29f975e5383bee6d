"""Figures of transactions: how many there are in which state, and whether their ends are carried out."""

from collections import Counter
from collections.abc import Iterator

from ropewalk.base import metrics
from ropewalk.base.limits import SCRAPE_SLICE_COUNT
from ropewalk.base.metrics import Sheet
from ropewalk.broker.coordinators.markers import Finisher
from ropewalk.broker.coordinators.transactions import Transactions
from ropewalk.transactions.events import TransactionState


class TransactionFigures:
    def __init__(self, transactions: Transactions, finisher: Finisher) -> None:
        self._transactions = transactions
        self._finisher = finisher

    def collect(self, sheet: Sheet) -> Iterator[None]:
        counts: Counter[TransactionState] = Counter()
        for position, state in enumerate(self._transactions.states(), 1):
            counts[state] += 1
            if position % SCRAPE_SLICE_COUNT == 0:
                yield
        for state in sorted(counts, key=lambda state: state.value):
            sheet.add(metrics.TRANSACTIONAL_IDS, counts[state], state.value)
        open_count = sum(count for state, count in counts.items() if state.is_open)
        sheet.add(metrics.TRANSACTIONS_OPEN, open_count)
        sheet.add(metrics.TRANSACTIONS_ENDING, self._finisher.unfinished_count)
        sheet.add(metrics.MARKERS_WRITTEN, self._finisher.written_count)
        sheet.add(metrics.MARKERS_RETRIED, self._finisher.retry_count)
        yield
