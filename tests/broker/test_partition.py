"""One partition: nothing is acknowledged or shown before it is as durable as promised, and nobody waits for ever."""

import asyncio

import pytest

from ropewalk.base.errors import NodeStopping, NotLeader, RopewalkError, TimedOut, UnknownTopic
from ropewalk.base.ids import (
    ProducerEpoch,
    ProducerId,
)
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import node_stopping, topic_deleted
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from tests.broker.partition_bench import NAME, Bench, at_the_bench


def test_a_write_is_shown_and_acknowledged_only_after_the_sync() -> None:
    async def story(bench: Bench) -> None:
        ticket = bench.append("a")
        assert ticket.acknowledged is not None
        assert not ticket.acknowledged.done()
        assert await bench.read(0) == []
        await bench.commits.commit()
        await ticket.wait()
        assert await bench.read(0) == ["a"]

    at_the_bench(story)


def test_a_sync_covers_only_what_was_written_before_it_began() -> None:
    async def story(bench: Bench) -> None:
        first = bench.append("a")
        committing = asyncio.ensure_future(bench.commits.commit())
        await asyncio.sleep(0)  # the sync has noted what it covers
        second = bench.append("b")
        await committing
        assert first.acknowledged is not None
        assert second.acknowledged is not None
        assert (first.acknowledged.done(), second.acknowledged.done()) == (True, False)
        assert bench.partition.high_watermark == 1
        await bench.commits.commit()
        await second.wait()

    at_the_bench(story)


def test_without_waiting_for_the_disk_a_write_is_done_at_once() -> None:
    async def story(bench: Bench) -> None:
        assert bench.append("a").acknowledged is None
        assert await bench.read(0) == ["a"]

    at_the_bench(story, durable_first=False)


def test_segments_that_were_closed_reach_the_disk_even_if_nobody_waits() -> None:
    async def story(bench: Bench) -> None:
        for _ in range(4):
            bench.append("x" * 900)
        assert bench.commits.waiting() == [bench.partition]
        await bench.commits.commit()
        assert bench.partition.log.durable_offset == 4

    at_the_bench(story, durable_first=False)


def test_nobody_hears_of_a_write_that_asked_for_no_acks() -> None:
    async def story(bench: Bench) -> None:
        assert bench.append("a", acks=Acks.NOBODY).acknowledged is None
        await bench.commits.commit()
        assert await bench.read(0) == ["a"]

    at_the_bench(story)


def test_a_producers_time_can_be_over_before_the_disk_is_done() -> None:
    async def story(bench: Bench) -> None:
        hasty, patient = bench.append("a", timeout_ms=10), bench.append("b", timeout_ms=10_000)
        bench.partition.expire(bench.ports.clock.monotonic_ms() + 100)
        with pytest.raises(TimedOut):
            await hasty.wait()
        await bench.commits.commit()
        await patient.wait()
        assert await bench.read(0) == ["a", "b"], "an expired write is still written"

    at_the_bench(story)


def test_a_hasty_producer_does_not_wait_for_a_patient_one_before_it() -> None:
    async def story(bench: Bench) -> None:
        patient, hasty = bench.append("a", timeout_ms=10_000), bench.append("b", timeout_ms=10)
        bench.partition.expire(bench.ports.clock.monotonic_ms() + 100)
        assert hasty.acknowledged is not None
        assert hasty.acknowledged.done()
        with pytest.raises(TimedOut):
            await hasty.wait()
        await bench.commits.commit()
        await patient.wait()

    at_the_bench(story)


def test_a_duplicate_waits_for_its_first_copy() -> None:
    async def story(bench: Bench) -> None:
        record = [Record(timestamp=EPOCH_MS, value=b"a")]
        tickets = [
            bench.partition.append(
                bench.partition.prepare(
                    memoryview(
                        build(
                            record,
                            producer_id=ProducerId(5),
                            producer_epoch=ProducerEpoch(0),
                            base_sequence=0,
                        )
                    )
                ),
                Acks.ALL,
                1000,
            )
            for _ in range(2)
        ]
        assert [ticket.base_offset for ticket in tickets] == [0, 0]
        assert all(ticket.acknowledged is not None for ticket in tickets)
        await bench.commits.commit()
        for ticket in tickets:
            await ticket.wait()
        assert bench.partition.log.end_offset == 1

    at_the_bench(story)


@pytest.mark.parametrize(
    ("reason", "of_writes", "expected"),
    [
        pytest.param(topic_deleted(NAME), UnknownTopic, UnknownTopic, id="deleted"),
        pytest.param(node_stopping(NAME), TimedOut, NodeStopping, id="stopping: a write may come to count"),
        pytest.param(NotLeader("another leads"), TimedOut, NotLeader, id="led elsewhere: it may be there"),
    ],
)
def test_the_end_sends_everybody_away(
    reason: RopewalkError, of_writes: type[Exception], expected: type[Exception]
) -> None:
    async def story(bench: Bench) -> None:
        ticket = bench.append("a")
        reading = asyncio.ensure_future(bench.read(0, wait_ms=50_000))
        await asyncio.sleep(0)
        bench.partition.end(reason)
        with pytest.raises(of_writes):
            await ticket.wait()
        with pytest.raises(expected):
            await reading
        with pytest.raises(expected):
            bench.append("b")

    at_the_bench(story)


def test_a_reader_waits_for_bytes_that_are_durable_not_for_bytes_that_are_written() -> None:
    async def story(bench: Bench) -> None:
        reading = asyncio.ensure_future(bench.read(0, wait_ms=50_000))
        await asyncio.sleep(0)
        bench.append("a")
        await asyncio.sleep(1)
        assert not reading.done()
        await bench.commits.commit()
        assert await reading == ["a"]

    at_the_bench(story)


def test_changing_the_flush_setting_never_moves_the_high_watermark_back() -> None:
    async def story(bench: Bench) -> None:
        bench.append("a")
        assert bench.partition.high_watermark == 0
        bench.partition.set_durable_first(False)
        assert bench.partition.high_watermark == 1
        bench.append("b")
        bench.partition.set_durable_first(True)
        assert bench.partition.high_watermark == 2
        ticket = bench.append("c")
        assert ticket.acknowledged is not None
        assert bench.partition.high_watermark == 2
        await bench.commits.commit()
        await ticket.wait()

    at_the_bench(story)
