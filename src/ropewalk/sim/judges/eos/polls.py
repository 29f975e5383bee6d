"""The order in which one process sends and reads.

    poll-skip, int-poll-skip                  records left out between two polls, or within one
    nonmonotonic-poll, int-nonmonotonic-poll  a poll, or a record within one, that goes back
    nonmonotonic-send, int-nonmonotonic-send  an acknowledged send that stands before an earlier one of its process

Kafka's model allows more than these rules seem to: a consumer that was assigned its partitions anew starts where it was told
to (`Positioned`), and what a transaction sends may be mingled with what others send.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.eos.history import Event, FinalRead, Placed, Polled, Positioned
from ropewalk.sim.judges.eos.records import Ledger, Report


def check_order(history: Sequence[Event], ledger: Ledger, report: Report) -> None:
    visible = _Visible(history, ledger)
    next_offsets: dict[tuple[str, TopicPartition], int] = {}
    sends: dict[tuple[str, TopicPartition], Placed] = {}
    for event in history:
        match event:
            case Positioned(process, partition, offset):
                next_offsets[process, partition] = offset
            case Polled(process=process, partition=partition, records=records) if records:
                key = (process, partition)
                visible.judge_within(event, report)
                visible.judge_between(event, next_offsets.get(key), report)
                next_offsets[key] = max(offset for offset, _ in records) + 1
            case Placed(number, partition, base_offset):
                key = (ledger.operations[number].process, partition)
                former = sends.get(key)
                if former is not None and base_offset < former.base_offset + len(former.values):
                    kind = "int-nonmonotonic-send" if former.operation == number else "nonmonotonic-send"
                    report(kind, f"{key[0]} sent to {former.base_offset}, then {base_offset} of {partition}")
                sends[key] = event
            case _:
                pass


class _Visible:
    """The offsets of each partition that have something to read, for both kinds of consumers."""

    def __init__(self, history: Sequence[Event], ledger: Ledger) -> None:
        committed: dict[TopicPartition, set[int]] = {}
        for event in history:
            if isinstance(event, Polled | FinalRead) and event.is_committed_only:
                committed.setdefault(event.partition, set()).update(offset for offset, _ in event.records)
        self._committed = {partition: sorted(offsets) for partition, offsets in committed.items()}
        self._all = {partition: sorted(values) for partition, values in ledger.offsets.items()}

    def judge_within(self, event: Polled, report: Report) -> None:
        offsets = [offset for offset, _ in event.records]
        for former, latter in pairwise(offsets):
            what = f"{event.process} read {latter} of {event.partition} right after {former}"
            if latter <= former:
                report("int-nonmonotonic-poll", what)
            elif self._lies_between(event, former + 1, latter):
                report("int-poll-skip", what)

    def judge_between(self, event: Polled, next_offset: int | None, report: Report) -> None:
        first = event.records[0][0]
        if next_offset is None:
            return
        what = f"{event.process} read {first} of {event.partition} when {next_offset} was next"
        if first < next_offset:
            report("nonmonotonic-poll", what)
        elif self._lies_between(event, next_offset, first):
            report("poll-skip", what)

    def _lies_between(self, event: Polled, start: int, end: int) -> bool:
        known = (self._committed if event.is_committed_only else self._all).get(event.partition, [])
        return bisect_right(known, end - 1) > bisect_left(known, start)
