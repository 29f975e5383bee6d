"""Leave to begin a transaction in a partition: who needs it, and what makes it void (KIP-890)."""

import pytest

from ropewalk.base.errors import InvalidTransactionState, OutOfOrderSequence, ProducerFenced
from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.broker.partitions.acknowledgements import Acks, Ticket
from ropewalk.broker.partitions.partition import Prepared
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.records.batch import decode_header
from ropewalk.records.marker import TransactionMarker
from tests.broker.partition_bench import Bench, at_the_bench
from tests.log.transacted import transacted


def prepared(*, producer: int = 7, epoch: int = 0, sequence: int = 0) -> Prepared:
    batch = transacted(producer=producer, epoch=epoch, sequence=sequence)
    return Prepared(batch, decode_header(batch))


def ask(bench: Bench, made: Prepared, *, bumps_epoch: bool = False) -> VerificationGuard | None:
    return bench.partition.verification_needed(made.header, bumps_epoch=bumps_epoch)


def append(bench: Bench, made: Prepared, guard: VerificationGuard | None = None) -> Ticket:
    return bench.partition.append(made, Acks.ALL, 1000, guard)


def end(bench: Bench, *, epoch: int = 0, version: int = 0, committed: bool = False) -> Ticket:
    marker = TransactionMarker(ProducerId(7), ProducerEpoch(epoch), committed, 0, version)
    return bench.partition.append_marker(marker, Acks.ALL, 1000)


def test_only_the_first_batch_of_a_transaction_needs_leave() -> None:
    async def story(bench: Bench) -> None:
        first, second = prepared(), prepared(sequence=1)
        guard = ask(bench, first)
        assert guard is not None
        append(bench, first, guard)
        assert ask(bench, second) is None
        append(bench, second)
        end(bench)
        assert ask(bench, prepared(sequence=2)) is not None

    at_the_bench(story)


def test_without_leave_no_transaction_begins() -> None:
    async def story(bench: Bench) -> None:
        with pytest.raises(InvalidTransactionState):
            append(bench, prepared())
        assert bench.partition.log.end_offset == 0

    at_the_bench(story)


def test_a_marker_makes_leave_void() -> None:
    async def story(bench: Bench) -> None:
        guard = ask(bench, prepared())
        end(bench)
        with pytest.raises(InvalidTransactionState):
            append(bench, prepared(), guard)
        # What is asked afterwards is another question, even for the same producer and epoch.
        later = ask(bench, prepared())
        assert later is not guard
        with pytest.raises(InvalidTransactionState):
            append(bench, prepared(), guard)
        append(bench, prepared(), later)

    at_the_bench(story)


def test_the_marker_of_one_transaction_leaves_the_next_alone() -> None:
    """A producer whose every transaction has an epoch of its own may ask for the next before the marker of the last is here."""

    async def story(bench: Bench) -> None:
        append(bench, prepared(), ask(bench, prepared()))
        guard = ask(bench, prepared(epoch=1))
        end(bench, epoch=1, version=2, committed=True)
        append(bench, prepared(epoch=1), guard)

    at_the_bench(story)


def test_another_epoch_makes_leave_void() -> None:
    async def story(bench: Bench) -> None:
        guard = ask(bench, prepared())
        newer = ask(bench, prepared(epoch=1))
        with pytest.raises(InvalidTransactionState):
            append(bench, prepared(), guard)
        stale = ask(bench, prepared())
        with pytest.raises(InvalidTransactionState):
            append(bench, prepared(), stale)
        append(bench, prepared(epoch=1), newer)
        with pytest.raises(ProducerFenced):
            ask(bench, prepared())

    at_the_bench(story)


def test_leave_for_one_producer_is_not_for_another() -> None:
    async def story(bench: Bench) -> None:
        guard = ask(bench, prepared())
        with pytest.raises(InvalidTransactionState):
            append(bench, prepared(producer=8), guard)

    at_the_bench(story)


def test_a_batch_that_is_in_the_log_already_needs_no_leave() -> None:
    async def story(bench: Bench) -> None:
        first = append(bench, prepared(), ask(bench, prepared()))
        end(bench)
        assert ask(bench, prepared()) is None
        assert append(bench, prepared()).base_offset == first.base_offset

    at_the_bench(story)


def test_of_batches_that_wait_together_the_earliest_comes_first() -> None:
    async def story(bench: Bench) -> None:
        second = ask(bench, prepared(sequence=1))
        first = ask(bench, prepared(sequence=0))
        with pytest.raises(OutOfOrderSequence):
            append(bench, prepared(sequence=1), second)
        append(bench, prepared(sequence=0), first)
        append(bench, prepared(sequence=1), second)

    at_the_bench(story)


def test_with_an_epoch_for_every_transaction_nobody_begins_in_the_middle() -> None:
    async def story(bench: Bench) -> None:
        guard = ask(bench, prepared(sequence=3), bumps_epoch=True)
        with pytest.raises(OutOfOrderSequence):
            append(bench, prepared(sequence=3), guard)

    at_the_bench(story)


def test_a_marker_is_acknowledged_and_counts_when_it_is_durable() -> None:
    async def story(bench: Bench) -> None:
        append(bench, prepared(), ask(bench, prepared()))
        await bench.commits.commit()
        assert (bench.partition.high_watermark, bench.partition.last_stable_offset) == (1, 0)
        ticket = end(bench, epoch=1, version=2)
        again = end(bench, epoch=1, version=2)
        assert (ticket.base_offset, again.base_offset) == (1, -1)
        assert ticket.acknowledged is not None
        assert again.acknowledged is not None
        assert not again.acknowledged.done()
        assert bench.partition.last_stable_offset == 0
        await bench.commits.commit()
        await ticket.wait()
        await again.wait()
        assert bench.partition.last_stable_offset == 2
        assert end(bench, epoch=1, version=2).acknowledged is None

    at_the_bench(story)
