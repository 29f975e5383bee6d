"""Who may see what, and when: nothing that was aborted, nothing before its end was asked for, all of it or nothing, all in the end.

aborted-read       a value whose operation was aborted for certain (G1a)
precommitted-read  a value before its transaction's commit was asked for, be it by the reader's own transaction
unstable           a last stable offset beyond a transaction that was still open (T3)
torn               of one transaction some values are there and others are not (T1)
lost-write         committed, and not there where somebody has read on
unseen             committed, and read by nobody until the end
"""

from bisect import bisect_left
from collections.abc import Sequence

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.eos.history import Event, FinalRead, Outcome, Polled
from ropewalk.sim.judges.eos.records import Ledger, Operation, Report


def check_visibility(history: Sequence[Event], ledger: Ledger, report: Report) -> None:
    seen: dict[TopicPartition, set[int]] = {}
    stable = _StableOffsets()
    for index, event in enumerate(history):
        match event:
            case Polled():
                stable.note(index, event.partition, event.stable_offset)
            case FinalRead():
                pass
            case _:
                continue
        if event.is_committed_only:
            seen.setdefault(event.partition, set()).update(offset for offset, _ in event.records)
        for offset, value in event.records:
            writer = ledger.writer_of(value)
            if writer is not None:
                where = f"{event.partition} has {value} of {writer} at {offset}"
                _judge_read(index, event, writer, where, report)
    ends = {partition: max(offsets) for partition, offsets in seen.items() if offsets}
    for operation in ledger.operations.values():
        _judge_whole(operation, seen, ends, report)
        if operation.is_transactional and operation.outcome is Outcome.COMMITTED:
            stable.judge(operation, report)


def _judge_read(index: int, event: Polled | FinalRead, writer: Operation, where: str, report: Report) -> None:
    if writer.is_transactional:
        if not event.is_committed_only:
            return
        if writer.is_aborted:
            report("aborted-read", where)
        elif writer.commit_asked > index:
            report("precommitted-read", where)
    elif writer.is_aborted:
        report("aborted-read", f"{where}, which was refused")


def _judge_whole(
    operation: Operation,
    seen: dict[TopicPartition, set[int]],
    ends: dict[TopicPartition, int],
    report: Report,
) -> None:
    if operation.is_aborted:
        return
    there: list[str] = []
    missing: list[tuple[str, str]] = []
    for partition, placed in operation.placed.items():
        offsets = seen.get(partition, set())
        for offset, value in placed:
            if offset in offsets:
                there.append(f"{value} in {partition}")
            else:
                kind = "lost-write" if offset < ends.get(partition, -1) else "unseen"
                missing.append((kind, f"{value} at {offset} of {partition}"))
    if operation.outcome is Outcome.COMMITTED:
        for kind, what in missing:
            report(kind, f"{operation} committed {what}")
    if operation.is_transactional and there and missing:
        report("torn", f"of {operation} there is {there[0]}, and not {missing[0][1]}")


class _StableOffsets:
    """The largest last stable offset that anybody had been told, by the time it was told."""

    def __init__(self) -> None:
        self._told: dict[TopicPartition, tuple[list[int], list[int]]] = {}

    def note(self, index: int, partition: TopicPartition, offset: int) -> None:
        indexes, largest = self._told.setdefault(partition, ([], []))
        indexes.append(index)
        largest.append(max(offset, largest[-1]) if largest else offset)

    def judge(self, operation: Operation, report: Report) -> None:
        for partition, placed in operation.placed.items():
            indexes, largest = self._told.get(partition, ([], []))
            told_count = bisect_left(indexes, operation.commit_asked)
            first_offset = min(offset for offset, _ in placed)
            if told_count and largest[told_count - 1] > first_offset:
                told = f"{partition} was stable to {largest[told_count - 1]}"
                report("unstable", f"{told} when {operation} was open at {first_offset}")
