"""Prepared transactions whose markers are not all written.

Each has a serial number, in the order in which they were prepared, so that whoever writes markers can ask for what came
since. Neither the numbers nor the progress is durable: another core numbers anew, and has every marker written again.
"""

from collections.abc import Iterator

from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.answers import Finish, Unfinished
from ropewalk.transactions.commands import MarkersWritten
from ropewalk.transactions.events import TransactionRecorded, TransactionState


class Finishing:
    def __init__(self) -> None:
        self._transactions: dict[str, _Unfinished] = {}
        """In the order of their serial numbers."""
        self._serial = 0

    def __len__(self) -> int:
        return len(self._transactions)

    def note(self, record: TransactionRecorded) -> None:
        """This is how the transactional id is from here on."""
        self._transactions.pop(record.transactional_id, None)
        if record.state.is_prepared:
            self._serial += 1
            self._transactions[record.transactional_id] = _Unfinished(record, self._serial)

    def forget(self, transactional_id: str) -> None:
        self._transactions.pop(transactional_id, None)

    def on_markers_written(self, command: MarkersWritten) -> bool:
        """Whether none is left to be written after these."""
        unfinished = self._transactions.get(command.transactional_id)
        if unfinished is None or not _is_about(command, unfinished.record):
            return False
        unfinished.remaining.difference_update(command.partitions)
        return not unfinished.remaining

    def prepared_after(self, serial: int) -> Unfinished:
        """Everything, if the number is from another core."""
        if serial > self._serial:
            serial = 0
        return Unfinished(tuple(self._finishes(serial)), self._serial)

    def prepared_by(self, events: list[TransactionRecorded]) -> Unfinished:
        """As `prepared_after` will answer for these, which are about to be noted, asked with the serial before them."""
        latest = {event.transactional_id: event for event in events}
        prepared_count = sum(event.state.is_prepared for event in events)
        finishes = tuple(
            _finish(event, set(event.partitions)) for event in latest.values() if event.state.is_prepared
        )
        return Unfinished(finishes, self._serial + prepared_count)

    def _finishes(self, serial: int) -> Iterator[Finish]:
        for unfinished in self._transactions.values():
            if unfinished.serial > serial:
                yield _finish(unfinished.record, unfinished.remaining)


class _Unfinished:
    __slots__ = ("record", "remaining", "serial")

    def __init__(self, record: TransactionRecorded, serial: int) -> None:
        self.record = record
        self.serial = serial
        self.remaining: set[TopicPartition] = set(record.partitions)


def _is_about(command: MarkersWritten, record: TransactionRecorded) -> bool:
    """Not about an earlier transaction: its markers end nothing of this one."""
    return (command.producer_id, command.producer_epoch, command.started_at_ms) == (
        record.producer_id,
        record.producer_epoch,
        record.started_at_ms,
    )


def _finish(record: TransactionRecorded, remaining: set[TopicPartition]) -> Finish:
    return Finish(
        transactional_id=record.transactional_id,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        committed=record.state is TransactionState.PREPARE_COMMIT,
        partitions=tuple(sorted(remaining)),
        version=record.version,
        started_at_ms=record.started_at_ms,
    )
