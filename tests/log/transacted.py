"""Transactions in the tests of the log room: batches that are part of one, and markers."""

from ropewalk.base.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from ropewalk.log.log import Appended, Log
from ropewalk.records.batch import decode_header
from ropewalk.records.marker import TransactionMarker
from ropewalk.records.record import Record, build


def transacted(
    *,
    producer: int = 7,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    key: bytes | None = None,
    timestamp: int = 1000,
) -> memoryview:
    """A batch of some records of a transaction; a sequence of -1 is none."""
    return memoryview(
        build(
            [Record(timestamp=timestamp, key=key, value=b"%d" % at) for at in range(count)],
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(epoch),
            base_sequence=sequence,
            is_transactional=True,
        )
    )


def write(
    log: Log,
    *,
    producer: int = 7,
    epoch: int = 0,
    sequence: int = -1,
    count: int = 1,
    key: bytes | None = None,
    now_ms: int = 1000,
) -> int:
    """Where a batch of a transaction went."""
    made = transacted(producer=producer, epoch=epoch, sequence=sequence, count=count, key=key)
    return log.append(made, decode_header(made), leader_epoch=LeaderEpoch(0), now_ms=now_ms).base_offset


def end(
    log: Log,
    *,
    producer: int = 7,
    epoch: int = 0,
    committed: bool = True,
    coordinator: int = 0,
    version: int = 0,
    now_ms: int = 1000,
) -> Appended | None:
    marker = TransactionMarker(ProducerId(producer), ProducerEpoch(epoch), committed, coordinator, version)
    return log.append_marker(marker, leader_epoch=LeaderEpoch(0), now_ms=now_ms)


def stable(log: Log, high_watermark: int | None = None) -> int:
    return log.stable_offset(log.end_offset if high_watermark is None else Offset(high_watermark))


def aborted(log: Log, start: int = 0, stop: int | None = None) -> list[tuple[int, int, int]]:
    found = log.aborted_in(Offset(start), log.end_offset if stop is None else Offset(stop)).run()
    return [(each.producer_id, each.first_offset, each.last_offset) for each in found]
