"""One partition of a queue beside its log: what is answered is in the log, for good, and what is deleted never comes back."""

import asyncio

import pytest
from msgspec import structs

from ropewalk.base.errors import BatchTooLarge, QueueNotReady, RopewalkError, ShardUnavailable
from ropewalk.base.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from ropewalk.base.limits import QUEUE_READ_AHEAD_BYTES_MAX
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Prepared, node_stopping
from ropewalk.broker.queues import read_ahead, reading
from ropewalk.broker.queues.figures import totals_of
from ropewalk.queues import QueuePartition
from ropewalk.queues.commands import Delete, Handle, Rewind
from ropewalk.queues.errors import ReceiptExpired
from ropewalk.queues.messages import Sent
from ropewalk.queues.snapshot_codec import encode_snapshot
from ropewalk.records.batch import decode_header
from ropewalk.records.marker import TransactionMarker
from ropewalk.records.record import Record, build, decode_records
from tests.broker.queues.queue_bench import FIFO, STANDARD, Host, a_turn, bodies_of, hosting


def core_of(host: Host) -> QueuePartition:
    assert host.hosted.core is not None
    return host.hosted.core


@pytest.mark.parametrize("settings", [STANDARD, FIFO], ids=["standard", "fifo"])
@pytest.mark.parametrize("durable_first", [True, False], ids=["group commit", "page cache"])
def test_a_message_is_sent_received_and_deleted(settings: object, durable_first: bool) -> None:
    async def story(host: Host) -> None:
        await host.send("one", "two")
        delivered = await host.receive()
        assert bodies_of(delivered) == ["one", "two"]
        assert [each.receive_count for each in delivered] == [1, 1]
        assert await host.receive() == []
        assert await host.delete(*delivered) == [None, None]
        assert core_of(host).state.floor >= delivered[1].receipt.offset

    hosting(story, settings, durable_first=durable_first)  # type: ignore[arg-type]


def test_the_first_thing_in_a_queues_log_is_a_snapshot() -> None:
    async def story(host: Host) -> list[str]:
        await host.send("one")
        return host.shapes()

    assert hosting(story) == ["snapshot", "1"]


def test_a_turn_is_one_batch_of_messages_and_one_delta() -> None:
    async def story(host: Host) -> list[str]:
        first, second = await host.send("a", "b")
        given = await host.receive()
        before = len(host.shapes())
        answers = [host.sending("c"), host.sending("d", "e")]
        asked = [
            host.hosted.ask(Delete((Handle(each.receipt.offset, each.receipt.attempt),))).answer
            for each in given
        ]
        await host.commit()
        sent = [outcome for answer in answers for outcome in await answer]
        assert [each.offset for each in sent if isinstance(each, Sent)] == [
            sent[0].offset + position  # type: ignore[attr-defined]
            for position in range(3)
        ]
        assert [(await each).refusals for each in asked] == [(None,), (None,)]
        assert first < second
        return host.shapes()[before:]

    assert hosting(story) == ["3", "state"]


@pytest.mark.parametrize("settings", [STANDARD, FIFO], ids=["standard", "fifo"])
def test_an_answer_waits_until_it_is_committed(settings: object) -> None:
    async def story(host: Host) -> None:
        sent = host.sending("one")
        await a_turn()
        assert not sent.done()
        await host.commit()
        assert sent.done()
        received = host.receiving()
        await a_turn()
        assert received.done() is not host.settings.is_fifo, "a standard queue gives out at once"
        given = (await host.told(received)).messages
        deleted = host.hosted.ask(Delete((Handle(given[0].offset, 1),))).answer
        await a_turn()
        assert not deleted.done()
        await host.commit()
        assert (await deleted).refusals == (None,)

    hosting(story, settings)  # type: ignore[arg-type]


def test_what_is_not_committed_is_not_given_out() -> None:
    async def story(host: Host) -> None:
        host.sending("one")
        waiting = host.receiving(wait_ms=20_000)
        await a_turn()
        assert not waiting.done()
        await host.commit()
        assert bodies_of(await host.hosted.deliver(await waiting)) == ["one"]

    hosting(story)


def test_what_a_standard_queue_gave_out_is_written_soon() -> None:
    async def story(host: Host) -> list[str]:
        await host.send("one")
        await host.receive()
        assert host.shapes() == ["snapshot", "1"]
        await host.pass_time(150)
        return host.shapes()

    assert hosting(story) == ["snapshot", "1", "state"]


@pytest.mark.parametrize("settings", [STANDARD, FIFO], ids=["standard", "fifo"])
def test_whoever_leads_next_has_the_same_state(settings: object) -> None:
    async def story(host: Host) -> None:
        await host.send(*"abcdef")
        first = await host.receive(3, visibility_ms=5000)
        await host.delete(first[1] if not host.settings.is_fifo else first[0])
        await host.send("g", "h")
        await host.pass_time(200)
        before = core_of(host)
        durable = encode_snapshot(before.state)
        await host.replace()
        assert encode_snapshot(core_of(host).state) == durable
        await host.pass_time(6000)
        left = bodies_of(await host.receive()) + bodies_of(await host.receive())
        assert sorted(left) == sorted("bcdefgh" if host.settings.is_fifo else "acdefgh")

    hosting(story, settings)  # type: ignore[arg-type]


async def lead_with_less(host: Host, end_offset: int) -> None:
    """Somebody else leads, in the next epoch, whose log has nothing from there on."""
    host.hosted.end(QueueNotReady("moved"))
    trimming = host.partition.log.trimming
    if end_offset < host.partition.log.end_offset:
        cut = trimming.take_cut(Offset(end_offset), now_ms=host.time.now_ms())
        await host.bench.ports.pool.run(cut.run)
        trimming.on_cut(cut)
    host.partition.set_leader_epoch(LeaderEpoch(host.partition.leader_epoch + 1))
    await host.replace()


def test_a_handle_of_what_an_unclean_election_lost_deletes_nothing_that_was_given_out_since() -> None:
    async def story(host: Host) -> None:
        await host.send("a")
        end_offset = host.partition.log.end_offset
        (lost,) = await host.receive()
        await lead_with_less(host, end_offset)
        (given,) = await host.receive()
        (refused,) = await host.delete(lost)
        assert isinstance(refused, ReceiptExpired)
        assert await host.delete(given) == [None]

    hosting(story, FIFO)


def test_what_a_leader_gave_out_and_had_not_written_is_not_taken_back_from_whoever_has_it_since() -> None:
    """A standard queue: a delivery of the leader before comes late, and is given back."""

    async def story(host: Host) -> None:
        await host.send("a")
        end_offset = host.partition.log.end_offset
        late = await host.told(host.receiving())
        await lead_with_less(host, end_offset)
        (given,) = await host.receive()
        host.hosted.release(late)
        await host.commit()
        assert await host.receive() == []
        assert await host.delete(given) == [None]

    hosting(story, STANDARD)


def test_attempts_are_not_numbered_anew_when_the_state_is_read_again() -> None:
    async def story(host: Host) -> None:
        await host.send("one")
        first = await host.receiving()
        deleted = host.hosted.ask(Delete((Handle(first.messages[0].offset, first.attempt),))).answer
        host.partition.refuse(node_stopping(host.partition.name))
        await a_turn()
        with pytest.raises(ShardUnavailable):
            await deleted
        host.partition._end = None  # the trouble is over
        await host.hosted.load()
        second = await host.receiving()
        assert [each.offset for each in second.messages] == [each.offset for each in first.messages]
        assert second.attempt > first.attempt

    hosting(story, STANDARD)


def test_a_deleted_message_never_comes_back_whoever_leads() -> None:
    async def story(host: Host) -> None:
        await host.send("one", "two")
        one, _two = await host.receive(visibility_ms=1000)
        await host.delete(one)
        for _ in range(3):
            await host.replace()
            await host.pass_time(2000)
            assert bodies_of(await host.receive(visibility_ms=1000)) == ["two"]

    hosting(story)


def test_a_new_leader_reads_nothing_below_what_is_settled() -> None:
    """It has read nothing yet, and what it would read first is deleted, and gone from the log, before anybody receives."""

    async def story(host: Host) -> None:
        await host.send("one", "two", group="g")
        given = await host.receive()
        await host.send("three", group="g")
        await host.replace()
        await host.delete(*given)
        core = core_of(host)
        host.partition.begin_at(Offset(core.state.floor))
        assert bodies_of(await host.receive()) == ["three"]
        assert core_of(host) is core, "its turn was written"

    hosting(story, FIFO)


def test_loading_begins_at_the_last_snapshot() -> None:
    async def story(host: Host) -> None:
        await host.send("one", "two")
        given = await host.receive(1)
        await host.delete(*given)
        host.hosted.write_snapshot()
        await host.commit()
        place = host.partition.log.places.last_of(host.queue.queue_id)
        assert place is not None
        assert place.start_offset > 2
        await host.send("three")
        await host.replace()
        assert bodies_of(await host.receive()) == ["two", "three"]

    hosting(story)


def test_what_others_append_is_given_out_too() -> None:
    async def story(host: Host) -> None:
        host.bench.append("from kafka")
        await host.send("from sqs")
        host.bench.append("again")
        await host.commit()
        assert bodies_of(await host.receive()) == ["from kafka", "from sqs", "again"]

    hosting(story)


def test_others_append_while_the_state_is_read() -> None:
    async def story(host: Host) -> None:
        await host.send("one")
        host.hosted.end(QueueNotReady("moved"))
        host.hosted = host.another()
        loading = asyncio.ensure_future(host.hosted.load())
        host.bench.append("two")
        await loading
        await host.commit()
        assert bodies_of(await host.receive()) == ["one", "two"]

    hosting(story)


def test_while_it_is_loaded_a_receive_waits_within_its_time_and_others_are_told_to_come_back() -> None:
    async def story(host: Host) -> None:
        await host.send("one")
        host.hosted.end(QueueNotReady("moved"))
        host.hosted = host.another()
        patient = host.receiving(wait_ms=10_000)
        impatient = host.receiving(wait_ms=50)
        with pytest.raises(QueueNotReady):
            host.receiving()
        with pytest.raises(QueueNotReady):
            host.sending("two")
        await asyncio.sleep(0.1)
        assert (await impatient).messages == ()
        await host.hosted.load()
        assert bodies_of(await host.hosted.deliver(await host.told(patient))) == ["one"]

    hosting(story)


def test_when_an_append_fails_the_outcome_is_unknown_and_the_state_is_read_again() -> None:
    async def story(host: Host) -> None:
        await host.send("one", "two")
        given = await host.receive(1)
        waiting = host.receiving(wait_ms=20_000, count_max=1)
        assert (await waiting).messages
        waiting = host.receiving(wait_ms=20_000)
        deleted = host.hosted.ask(Delete((Handle(given[0].receipt.offset, 1),))).answer
        host.partition.refuse(node_stopping(host.partition.name))
        await a_turn()
        with pytest.raises(ShardUnavailable):
            await deleted
        with pytest.raises(QueueNotReady):
            await waiting
        assert host.thrown_away == [host.hosted]
        assert not host.hosted.is_serving
        host.partition._end = None  # the trouble is over
        await host.hosted.load()
        await host.pass_time(31_000)
        assert bodies_of(await host.receive()) == ["one", "two"]

    hosting(story)


def test_a_long_poll_is_woken_by_an_append_by_a_timer_and_by_a_release() -> None:
    async def story(host: Host) -> None:
        waiting = host.receiving(wait_ms=20_000, visibility_ms=1000)
        await host.send("one")
        received = await waiting
        assert len(received.messages) == 1
        waiting = host.receiving(wait_ms=20_000, visibility_ms=60_000)
        await host.pass_time(1500)
        again = await waiting
        assert again.messages[0].receive_count == 2
        waiting = host.receiving(wait_ms=20_000)
        await host.commit()
        assert not waiting.done()
        host.hosted.release(again)
        await host.commit()
        assert (await waiting).messages[0].receive_count == 2, "what was never taken does not count"

    hosting(story)


def test_a_long_poll_that_gets_nothing_is_answered_in_time() -> None:
    async def story(host: Host) -> None:
        began = asyncio.get_running_loop().time()
        assert (await host.receiving(wait_ms=2000)).messages == ()
        assert asyncio.get_running_loop().time() - began == pytest.approx(2.0, abs=0.01)

    hosting(story)


def test_a_fifo_duplicate_is_answered_with_the_first_when_that_is_committed() -> None:
    async def story(host: Host) -> None:
        first = host.hosted.send([host.outgoing("a", deduplication_id="x")])
        await a_turn()
        second = host.hosted.send(
            [host.outgoing("b", deduplication_id="x"), host.outgoing("c", deduplication_id="y")]
        )
        await a_turn()
        assert not second.done()
        await host.commit()
        (one,), (duplicate, other) = await first, await second
        assert isinstance(one, Sent)
        assert isinstance(duplicate, Sent)
        assert isinstance(other, Sent)
        assert (duplicate.offset, duplicate.is_duplicate) == (one.offset, True)
        assert not other.is_duplicate
        await host.replace()
        (again,) = await host.told(host.hosted.send([host.outgoing("d", deduplication_id="x")]))
        assert again == duplicate, "whoever leads next knows it, too"
        assert bodies_of(await host.receive()) == ["a", "c"]

    hosting(story, FIFO)


def test_purge_takes_what_its_own_turn_sent_before_it_and_spares_what_came_after() -> None:
    async def story(host: Host) -> None:
        await host.send("old")
        host.sending("before")
        purged = host.hosted.purge().answer
        host.sending("after")
        await host.told(purged)
        assert bodies_of(await host.receive()) == ["after"]
        await host.replace()
        await host.pass_time(31_000)
        assert bodies_of(await host.receive()) == ["after"]

    hosting(story)


def test_a_rewind_brings_everything_back() -> None:
    async def story(host: Host) -> None:
        await host.send("one", "two")
        await host.delete(*await host.receive())
        await host.told(host.hosted.ask(Rewind(0)).answer)
        assert bodies_of(await host.receive()) == ["one", "two"]

    hosting(story)


def test_a_delayed_message_is_given_out_when_its_delay_is_over() -> None:
    async def story(host: Host) -> None:
        await host.send("later", delay_ms=5000)
        assert await host.receive() == []
        await host.pass_time(5100)
        assert bodies_of(await host.receive()) == ["later"]

    hosting(story)


def test_records_that_are_not_at_hand_are_read_again() -> None:
    async def story(host: Host) -> None:
        bodies = [f"{number:03}" * 100 for number in range(20)]
        for body in bodies:
            await host.send(body)
        await host.replace()
        delivered = await host.receive(visibility_ms=1000)
        delivered += await host.receive(visibility_ms=1000)
        assert bodies_of(delivered) == bodies
        await host.pass_time(1500)
        again = await host.receive() + await host.receive()
        assert bodies_of(again) == bodies
        assert {each.receive_count for each in again} == {2}

    hosting(story)


def test_a_backlog_that_does_not_fit_at_hand_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def counted(batch: memoryview) -> list[Record]:
        records = decode_records(batch)
        opened.extend(record.offset for record in records)
        return records

    monkeypatch.setattr(reading, "decode_records", counted)
    monkeypatch.setattr(read_ahead, "QUEUE_READ_AHEAD_BYTES_MAX", 16_000)  # of which all is ten times as much
    monkeypatch.setattr(read_ahead, "QUEUE_READ_BYTES", 2_000)

    async def story(host: Host) -> int:
        for _ in range(120):
            await host.send("b" * 1_000)
        await host.replace()  # nothing is at hand
        count = 0
        while delivered := await host.receive():
            count += len(delivered)
            await host.delete(*delivered)
        return count

    assert hosting(story) == 120
    assert len(opened) == len(set(opened)) == 120


def test_a_message_too_large_for_the_topic_is_refused_alone() -> None:
    async def story(host: Host) -> None:
        outcomes = await host.told(host.sending("x" * (1 << 20), "small"))
        assert isinstance(outcomes[0], RopewalkError)
        assert isinstance(outcomes[1], Sent)

    hosting(story)


def test_a_message_that_fits_no_segment_is_refused_alone() -> None:
    async def story(host: Host) -> None:
        with_segments_of(host, 100_000)
        outcomes = await host.told(host.sending("x" * 100_000, "y" * 60_000, "z" * 60_000))
        assert isinstance(outcomes[0], BatchTooLarge)
        assert all(isinstance(each, Sent) for each in outcomes[1:])
        assert not host.thrown_away
        assert [len(each) for each in bodies_of(await host.receive())] == [60_000, 60_000]

    hosting(story)


def test_a_snapshot_is_written_in_pieces_that_fit_a_segment() -> None:
    async def story(host: Host) -> None:
        with_segments_of(host, 4_096)
        for start in range(0, 1_000, 50):
            await host.send(*[f"{number}" for number in range(start, start + 50)])
        for _ in range(100):
            assert len(await host.receive(visibility_ms=600_000)) == 10
        host.hosted.write_snapshot()
        await host.commit()
        assert host.shapes().count("snapshot") == 2, "the first of all, and this one, which is whole"
        assert not host.thrown_away
        await host.replace()
        await host.commit()
        assert not await host.receive(), "everything is in flight"

    hosting(story)


def test_a_delta_that_fits_no_segment_becomes_a_snapshot() -> None:
    async def story(host: Host) -> None:
        await host.send(*[f"{number}" for number in range(1_000)])
        for _ in range(100):
            await host.receive(visibility_ms=1_000)
        with_segments_of(host, 4_096)
        await host.pass_time(2_000)
        host.hosted.change(host.queue, structs.replace(host.settings, retry_backoff_ms=900_000))
        await host.pass_time(2_000)
        assert not host.thrown_away
        await host.replace()
        await host.commit()
        assert core_of(host).figures().resting_count == 1_000
        assert not await host.receive(), "all of them rest"

    hosting(story)


def with_segments_of(host: Host, size_bytes: int) -> None:
    host.partition.log.settings = structs.replace(host.partition.log.settings, segment_bytes=size_bytes)


def test_what_is_sent_while_the_node_stops_is_refused_and_nothing_is_written() -> None:
    async def story(host: Host) -> None:
        end_offset = host.partition.log.end_offset
        host.partition.refuse(node_stopping(host.partition.name))
        with pytest.raises(RopewalkError):
            host.sending("one")
        await a_turn()
        assert host.partition.log.end_offset == end_offset
        assert host.hosted.is_serving

    hosting(story)


def test_what_was_given_out_is_written_before_somebody_else_leads() -> None:
    async def story(host: Host) -> None:
        await host.send("one", "two")
        await host.receive(1)
        host.hosted.write_down(whole=True)
        assert host.shapes()[-1] == "snapshot"
        await host.receive(1)
        await a_turn()
        assert host.shapes()[-1] == "state", "nothing is in memory alone from then on"
        await host.replace()
        assert await host.receive() == []

    hosting(story)


@pytest.mark.parametrize("is_at_hand", [True, False], ids=["live", "after a change of leader"])
def test_what_a_transaction_took_back_is_no_message_and_what_is_undecided_waits(is_at_hand: bool) -> None:
    async def story(host: Host) -> None:
        def write(producer_id: int, body: bytes) -> None:
            records = [Record(timestamp=host.time.now_ms(), value=body)]
            batch = memoryview(
                build(
                    records,
                    producer_id=ProducerId(producer_id),
                    producer_epoch=ProducerEpoch(0),
                    base_sequence=0,
                    is_transactional=True,
                )
            )
            prepared = Prepared(batch, decode_header(batch))
            guard = host.partition.verification_needed(prepared.header)
            host.partition.append(prepared, Acks.ALL, 1000, guard)

        def end(producer_id: int, *, committed: bool) -> None:
            marker = TransactionMarker(
                ProducerId(producer_id), ProducerEpoch(0), committed=committed, coordinator_epoch=0
            )
            host.partition.append_marker(marker, Acks.ALL, 1000)

        write(7, b"taken back")
        write(8, b"kept")
        await host.send("sent meanwhile")
        assert await host.receive(wait_ms=500) == [], "nothing is given out beyond what is undecided"
        end(7, committed=False)
        end(8, committed=True)
        await host.commit()
        if not is_at_hand:
            await host.replace()
        assert bodies_of(await host.receive()) == ["kept", "sent meanwhile"]

    hosting(story)


def test_the_totals_of_a_queue_count_messages_and_nothing_else() -> None:
    async def story(host: Host) -> None:
        def counts() -> tuple[int, int, int]:
            totals = totals_of([host.hosted])
            return totals.visible_count, totals.in_flight_count, totals.delayed_count

        assert counts() == (0, 0, 0)
        await host.send("a", "b", "c")
        await host.send("later", delay_ms=60_000)
        assert counts() == (3, 0, 1)
        (a,) = await host.receive(1)
        assert counts() == (2, 1, 1)
        await host.delete(a)
        assert counts() == (2, 0, 1)
        await host.pass_time(200)
        await host.replace()
        assert counts()[1] == 0
        assert sum(counts()) == 3, "what nobody has read since cannot be told from what is delayed"

    hosting(story)


def test_no_more_is_kept_at_hand_than_may_be() -> None:
    async def story(host: Host) -> None:
        for _ in range(40):
            await host.send(*["x" * 1000] * 1, *["y" * 600])
        assert 0 < host.room.used_bytes <= QUEUE_READ_AHEAD_BYTES_MAX
        host.hosted.end(QueueNotReady("moved"))
        assert host.room.used_bytes == 0

    hosting(story)
