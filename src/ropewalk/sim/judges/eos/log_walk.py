"""What the batches of a healed partition tell, taken one after the other.

hanging           a transaction without an end, or a partition that is not stable to its end (T5)
older-marker      a marker of an epoch below that of the transaction it ends (T2)
older-epoch       a producer's batch after one of a newer epoch
sequence          a producer's sequences have a gap, or one stands there twice (P9)

A producer without transactions may have given up what came first: of one that it does not know, a partition takes any sequence for the first.
"""

from ropewalk.sim.judges.eos.history import Batch, FinalLog
from ropewalk.sim.judges.eos.records import Report

_SEQUENCE_COUNT = 1 << 31


class _Producer:
    __slots__ = ("epoch", "is_open", "next_sequence")

    def __init__(self) -> None:
        self.epoch = -1
        self.next_sequence = 0
        self.is_open = False


def walk(log: FinalLog, report: Report) -> None:
    producers: dict[int, _Producer] = {}
    for batch in log.batches:
        if batch.producer_id >= 0:
            _step(log, producers.setdefault(batch.producer_id, _Producer()), batch, report)
    for producer_id, producer in producers.items():
        if producer.is_open:
            report("hanging", f"{log.partition}: nothing ends the last transaction of producer {producer_id}")
    if log.stable_offset < log.end_offset:
        report("hanging", f"{log.partition} ends at {log.end_offset} and is stable to {log.stable_offset}")


def _step(log: FinalLog, producer: _Producer, batch: Batch, report: Report) -> None:
    where = f"{log.partition} at {batch.offset}: producer {batch.producer_id}"
    if batch.is_commit is not None:
        if batch.producer_epoch < producer.epoch and producer.is_open:
            report("older-marker", f"{where} has epoch {producer.epoch}, the marker {batch.producer_epoch}")
        if batch.producer_epoch > producer.epoch:
            producer.epoch, producer.next_sequence = batch.producer_epoch, 0
        producer.is_open = False
        return
    if batch.producer_epoch < producer.epoch:
        report("older-epoch", f"{where} wrote in epoch {batch.producer_epoch} after {producer.epoch}")
    elif batch.producer_epoch > producer.epoch:
        is_known = batch.is_transactional or producer.epoch >= 0
        producer.epoch = batch.producer_epoch
        producer.next_sequence = 0 if is_known else max(0, batch.base_sequence)
    producer.is_open = batch.is_transactional
    if batch.base_sequence >= 0:
        if batch.base_sequence != producer.next_sequence:
            report("sequence", f"{where} has {batch.base_sequence}, and {producer.next_sequence} was next")
        count = batch.end_offset - batch.offset
        producer.next_sequence = (batch.base_sequence + count) % _SEQUENCE_COUNT
