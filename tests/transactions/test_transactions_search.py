"""Every order of a few deeds of two producers under one transactional id, with crashes: no transaction has two outcomes.

The search walks all states that can be reached in so many steps, and visits each once. A state is the log's last record,
and what each producer knows and was told. Crashes lose nothing here but what the coordinator keeps in mind: what is lost
with an uncommitted log is the model's matter.
"""

from typing import TypeAlias

import pytest
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.answers import Ended, PartitionsAdded, ProducerIdWanted, ProducerInitialised
from ropewalk.transactions.commands import AddPartitions, EndTransaction, InitProducer, MarkersWritten
from ropewalk.transactions.core import TransactionsCore
from ropewalk.transactions.events import TransactionRecorded, TransactionState
from ropewalk.transactions.identity import EPOCH_LAST, EPOCH_MAX
from ropewalk.transactions.settings import TransactionSettings
from ropewalk.transactions.step import TransactionStep as Step

Who: TypeAlias = tuple[int, int]
Told: TypeAlias = frozenset[tuple[Who, bool]]
"""Which ends were decided or answered with success, by who the producer was."""
State: TypeAlias = tuple[TransactionRecorded, tuple[Who, ...], Told, int]
"""The record, who each producer is, what was told, and the next producer id."""

PLACE = TopicPartition("p", 0)
DEEDS = ("init", "go on", "join", "commit", "abort")


def start(epoch: int) -> State:
    record = TransactionRecorded(
        transactional_id="t",
        producer_id=1,
        producer_epoch=epoch,
        state=TransactionState.EMPTY,
        timeout_ms=1_000,
        partitions=(),
        started_at_ms=-1,
        updated_at_ms=0,
        version=0,
        previous_producer_id=1,
    )
    return record, ((1, epoch), (-1, -1)), frozenset(), 2


def successors(state: State) -> list[State]:
    record, producers, told, next_id = state
    reached = []
    for index, who in enumerate(producers):
        for deed in DEEDS:
            if who == (-1, -1) and deed != "init":
                continue
            after = _do(record, who, deed, next_id)
            if after is None:
                continue
            changed, now, end, used_id = after
            ends = told | end | _decided(record, changed)
            known = tuple(now if place == index else old for place, old in enumerate(producers))
            reached.append((changed, known, ends, next_id + used_id))
            reached.append((changed, producers, ends, next_id + used_id))  # the answer is lost
    for step in (_finished(record), _timed_out(record)):
        changed = _last(step, record)
        reached.append((changed, producers, told | _decided(record, changed), next_id))
    return reached


def _decided(before: TransactionRecorded, after: TransactionRecorded) -> Told:
    """The end that a change has given to a transaction, whether its producer hears of it or not."""
    if after == before or before.state.is_prepared:
        return frozenset()
    match after.state:
        case TransactionState.PREPARE_COMMIT | TransactionState.COMPLETE_COMMIT:
            return frozenset({((before.producer_id, before.producer_epoch), True)})
        case TransactionState.PREPARE_ABORT | TransactionState.COMPLETE_ABORT:
            return frozenset({((before.producer_id, before.producer_epoch), False)})
        case _:
            return frozenset()


def _core(record: TransactionRecorded) -> TransactionsCore:
    """Always one that has just been loaded: nothing may depend on what a former one kept in mind."""
    core = TransactionsCore(TransactionSettings())
    core.apply(record, 0)
    core.on_loaded(0)
    return core


def _do(
    record: TransactionRecorded, who: Who, deed: str, next_id: int
) -> tuple[TransactionRecorded, Who, Told, int] | None:
    command: InitProducer | AddPartitions | EndTransaction
    match deed:
        case "init":
            command = InitProducer("t", 1_000)
        case "go on":
            command = InitProducer("t", 1_000, *who)
        case "join":
            command = AddPartitions("t", *who, (PLACE,))
        case _:
            command = EndTransaction("t", *who, committed=deed == "commit", bumps_epoch=True)
    step = _core(record).decide(1, command, 0)
    used_id = 0
    if isinstance(step.replies[0].answer, ProducerIdWanted):
        assert isinstance(command, InitProducer | EndTransaction)
        assert not step.events
        step = _core(record).decide(1, replace(command, fresh_producer_id=next_id), 0)
        used_id = 1
    changed = _last(step, record)
    match step.replies[0].answer:
        case ProducerInitialised(producer_id, epoch):
            return changed, (producer_id, epoch), frozenset(), used_id
        case Ended(producer_id, epoch):
            end = frozenset({(who, deed == "commit")})
            return changed, (producer_id, epoch), end, used_id
        case PartitionsAdded():
            return changed, who, frozenset(), 0
        case _:
            return (changed, who, frozenset(), 0) if step.events else None


def _finished(record: TransactionRecorded) -> Step:
    return _core(record).decide(
        1,
        MarkersWritten(
            "t", record.producer_id, record.producer_epoch, record.started_at_ms, record.partitions
        ),
        0,
    )


def _timed_out(record: TransactionRecorded) -> Step:
    return _core(record).tick(1_000)


def _last(step: Step, record: TransactionRecorded) -> TransactionRecorded:
    if not step.events:
        return record
    event = step.events[-1]
    assert isinstance(event, TransactionRecorded)
    # Times do not matter here, and would make every state another one.
    started_at_ms = 0 if event.started_at_ms >= 0 else -1
    return replace(event, updated_at_ms=0, started_at_ms=started_at_ms)


def check(before: State, after: State) -> None:
    record, producers, told, _ = after
    former = before[0]
    assert len({who for who, _ in told}) == len(told), f"one transaction has both ends: {sorted(told)}"
    assert all(epoch < EPOCH_MAX for _, epoch in producers), "the last epoch is for markers"
    if former.state.is_prepared and record != former:
        complete = former.state.value.replace("Prepare", "Complete")
        assert record.state.value == complete, f"{former.state} was followed by {record.state}"
    if former.state is TransactionState.ONGOING and record.producer_epoch == former.producer_epoch:
        assert record.state is TransactionState.ONGOING, "a transaction has ended and its epoch goes on"
    moves_on = record.producer_id != former.producer_id or record.producer_epoch >= former.producer_epoch
    assert moves_on, "an epoch was given out again"


@pytest.mark.parametrize(
    ("epoch", "depth"), [(0, 6), (EPOCH_LAST - 2, 6)], ids=["first epochs", "last epochs"]
)
def test_no_order_of_deeds_gives_a_transaction_two_outcomes(epoch: int, depth: int) -> None:
    seen = {start(epoch)}
    edge = list(seen)
    for _ in range(depth):
        following = []
        for state in edge:
            for reached in successors(state):
                check(state, reached)
                if reached not in seen:
                    seen.add(reached)
                    following.append(reached)
        edge = following
    states = {record.state for record, _, _, _ in seen}
    assert len(states) == 6, "every state was reached"
    assert len(seen) > 1_000
