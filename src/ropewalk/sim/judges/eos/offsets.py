"""Committed offsets, and the transformations they stand for.

    unknown-offset   an offset that nobody committed, 0 for none among them (G3)
    aborted-offset   an offset whose transaction was aborted, or whose commit was refused (T4)
    early-offset     an offset before its transaction's commit was asked for (T4)
    stale-offset     an offset older than one that was committed before anybody asked (G2)
    made-twice       two committed records made from one record for one group (T4)
    not-made         a record before the committed offset of which nothing was made (T4)
    made-unread      something was made from a record that the group has still to read, by the committed offset (T4)

What a reader could get wrong
    The end of a transaction is answered before its markers are written. So only whoever asks for stable offsets must be told
    what was committed before.
    What is committed last in a history is the last event about it that was seen, not the one that was asked for last.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.eos.history import (
    NO_COMMIT,
    Event,
    FinalRead,
    OffsetSeen,
    OffsetsSent,
    Outcome,
    Sent,
)
from ropewalk.sim.judges.eos.records import NEVER, Ledger, Operation, Report

_Place = tuple[str, TopicPartition]


class _Write(Struct):
    operation: Operation
    offset: int
    confirmed: int
    """When it had taken effect for certain; what is seen is certain too."""

    @property
    def began(self) -> int:
        operation = self.operation
        return operation.commit_asked if operation.is_transactional else operation.began


def check_offsets(history: Sequence[Event], ledger: Ledger, report: Report) -> None:
    writes: dict[_Place, dict[int, _Write]] = {}
    newest: dict[_Place, tuple[int, int]] = {}
    """Per place (began, confirmed) of the confirmed write that began last, for the staleness of what is seen later."""
    for event in history:
        if isinstance(event, OffsetsSent):
            operation = ledger.operations[event.operation]
            confirmed = operation.ended if operation.outcome is Outcome.COMMITTED else NEVER
            for partition, offset in event.offsets:
                by_commit = writes.setdefault((event.group, partition), {})
                by_commit[event.commit] = _Write(operation, offset, confirmed)
    confirmations = sorted(
        (write.confirmed, write.began, key)
        for key, by_commit in writes.items()
        for write in by_commit.values()
        if write.confirmed != NEVER
    )
    position = 0
    seen = sorted(
        (event.began, index, event) for index, event in enumerate(history) if isinstance(event, OffsetSeen)
    )
    for began, index, event in seen:
        while position < len(confirmations) and confirmations[position][0] < began:
            confirmed, write_began, confirmed_key = confirmations[position]
            newest[confirmed_key] = max(newest.get(confirmed_key, (-1, -1)), (write_began, confirmed))
            position += 1
        key = (event.group, event.partition)
        _judge_seen(index, event, writes.get(key, {}), newest.get(key, (-1, -1))[0], report)


def _judge_seen(
    index: int, event: OffsetSeen, writes: dict[int, _Write], newest_began: int, report: Report
) -> None:
    what = f"{event.group} has {event.offset} committed for {event.partition}"
    if event.commit == NO_COMMIT:
        if event.offset >= 0:
            report("unknown-offset", f"{what}, which nobody committed")
        elif newest_began >= 0 and event.is_stable:
            report("stale-offset", f"{event.group} has nothing committed for {event.partition} any more")
        return
    write = writes.get(event.commit)
    if write is None or write.offset != event.offset:
        report("unknown-offset", f"{what}, which nobody committed")
    elif write.operation.is_aborted:
        report("aborted-offset", f"{what} by {write.operation}")
    elif write.operation.is_transactional and write.operation.commit_asked > index:
        report("early-offset", f"{what} by {write.operation}")
    elif event.is_stable and newest_began > write.confirmed:
        report("stale-offset", f"{what} by {write.operation}, which was committed over")
    else:
        write.confirmed = min(write.confirmed, index)


def check_transformations(history: Sequence[Event], report: Report) -> None:
    """Of each record before a group's last committed offset exactly one committed record was made, of others none."""
    final: dict[TopicPartition, dict[int, int]] = {}
    committed: dict[_Place, int] = {}
    sources: dict[int, tuple[str, TopicPartition, int]] = {}
    for event in history:
        match event:
            case FinalRead(partition, records, is_committed_only) if is_committed_only:
                final[partition] = dict(records)
            case OffsetSeen(group=group, partition=partition, offset=offset):
                committed[group, partition] = offset
            case Sent(values=values, sources=made_from) if made_from:
                sources.update(zip(values, made_from, strict=True))
            case _:
                pass
    made: dict[tuple[str, TopicPartition, int], int] = {}
    for values_by_offset in final.values():
        for value in values_by_offset.values():
            source = sources.get(value)
            if source is not None and made.setdefault(source, value) != value:
                report("made-twice", f"{made[source]} and {value} were both made from {_name(source)}")
    groups = {group for group, _, _ in sources.values()}
    for group, partition, offset in sorted(made):
        if offset >= committed.get((group, partition), NEVER):
            source = (group, partition, offset)
            report("made-unread", f"{made[source]} was made from {_name(source)}")
    for (group, partition), end_offset in committed.items():
        if group in groups:
            for offset in final.get(partition, {}):
                if offset < end_offset and (group, partition, offset) not in made:
                    report("not-made", f"nothing was made from {_name((group, partition, offset))}")


def _name(source: tuple[str, TopicPartition, int]) -> str:
    group, partition, offset = source
    return f"offset {offset} of {partition} for {group}"
