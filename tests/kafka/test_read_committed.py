"""Whoever reads committed records alone gets nothing that is undecided, and hears what was aborted."""

import asyncio

import pytest
from msgspec.structs import replace

from ropewalk.base import limits
from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.http.exposition import Exposition
from ropewalk.log import aborted
from ropewalk.records.batch import decode_header, iterate
from ropewalk.records.marker import TransactionMarker
from ropewalk.wire.messages import describe_producers, fetch, list_offsets
from tests.kafka.door import Door, at_the_door, batch_of, fetch_request
from tests.log.transacted import transacted


def leading(door: Door) -> Partition:
    (partition,) = [each for each in door.node.partitions if each.name.topic == "t"]
    assert isinstance(partition, Partition)
    return partition


async def write(door: Door, producer: int, *, epoch: int = 0, count: int = 1) -> int:
    """A batch of a transaction, with leave; answers where it went."""
    batch = transacted(producer=producer, epoch=epoch, sequence=-1, count=count)
    prepared = Prepared(batch, decode_header(batch))
    partition = leading(door)
    ticket = partition.append(prepared, Acks.ALL, 10_000, partition.verification_needed(prepared.header))
    await ticket.wait()
    return ticket.base_offset


async def end(door: Door, producer: int, *, epoch: int = 0, committed: bool = True) -> int:
    marker = TransactionMarker(ProducerId(producer), ProducerEpoch(epoch), committed, 4)
    ticket = leading(door).append_marker(marker, Acks.ALL, 10_000)
    await ticket.wait()
    return ticket.base_offset


def asking(
    offset: int, *, wait_ms: int = 0, min_bytes: int = 1, max_bytes: int = 1 << 20
) -> fetch.FetchRequest:
    plain = fetch_request("t", offset, wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=max_bytes)
    return replace(plain, isolation_level=1)


async def read(
    door: Door, offset: int, *, max_bytes: int = 1 << 20
) -> tuple[list[int], list[tuple[int, int]], int]:
    """Base offsets of the batches, aborted transactions, last stable offset."""
    response = await door.call(fetch.API, 12, asking(offset, max_bytes=max_bytes))
    return shown(response)


def shown(response: fetch.FetchResponse) -> tuple[list[int], list[tuple[int, int]], int]:
    (data,) = response.topics[0].partitions
    assert data.error_code == 0
    assert data.aborted_transactions is not None
    return (
        [header.base_offset for _, header in iterate(data.records or b"")],
        [(each.producer_id, each.first_offset) for each in data.aborted_transactions],
        data.last_stable_offset,
    )


def test_nothing_undecided_is_read() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await door.produce("t", batch_of("a"))
        await write(door, 1)
        await door.produce("t", batch_of("b"))
        assert await read(door, 0) == ([0], [], 1)
        assert await read(door, 1) == ([], [], 1)
        plain = await door.fetch("t", 0)
        assert (plain.high_watermark, plain.last_stable_offset) == (3, 1)
        assert plain.aborted_transactions is None
        assert len(list(iterate(plain.records or b""))) == 3
        await end(door, 1)
        assert await read(door, 0) == ([0, 1, 2, 3], [], 4)

    at_the_door(story)


def test_what_was_aborted_is_named_with_the_records_it_left() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await write(door, 1)
        await write(door, 2)
        await end(door, 1, committed=False)
        await end(door, 2, committed=False)
        await write(door, 1)
        await end(door, 1)
        assert await read(door, 0) == ([0, 1, 2, 3, 4, 5], [(1, 0), (2, 1)], 6)
        assert await read(door, 3) == ([3, 4, 5], [(2, 1)], 6)
        assert await read(door, 4) == ([4, 5], [], 6)
        assert await read(door, 0, max_bytes=1) == ([0], [(1, 0)], 6)
        assert await read(door, 1, max_bytes=1) == ([1], [(1, 0), (2, 1)], 6)

    at_the_door(story)


@pytest.mark.parametrize("settings", [(), ("storage=memory",), ("flush=os",)], ids=["group", "memory", "os"])
def test_a_reader_that_waits_hears_of_the_end_of_a_transaction(settings: tuple[str, ...]) -> None:
    """However few bytes the marker has, and however many the reader wants at least."""

    async def story(door: Door) -> None:
        await door.create("t")
        await write(door, 1, count=100)
        other = await door.another()
        waiting = asyncio.ensure_future(other.call(fetch.API, 12, asking(0, wait_ms=50_000, min_bytes=500)))
        await door.fetch("t", 0)  # the other's request has come by now
        assert not waiting.done()
        await end(door, 1)
        began_at_s = door.world.now_s
        assert shown(await waiting) == ([0, 100], [], 101)
        assert door.world.now_s - began_at_s < 1

    at_the_door(story, *settings)


def test_a_session_reads_on_when_a_transaction_has_ended() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await write(door, 1)
        first = await door.call(fetch.API, 12, replace(asking(0), session_epoch=0))
        assert shown(first) == ([], [], 0)
        on = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=1,
            session_id=first.session_id,
            session_epoch=1,
            topics=(),
        )
        assert not (await door.call(fetch.API, 12, on)).topics
        await end(door, 1, committed=False)
        assert shown(await door.call(fetch.API, 12, replace(on, session_epoch=2))) == ([0, 1], [(1, 0)], 2)

    at_the_door(story)


def test_a_session_may_change_what_it_wants() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await write(door, 1)
        first = await door.call(fetch.API, 12, replace(asking(0), session_epoch=0))
        assert shown(first) == ([], [], 0)
        on = replace(asking(0), session_id=first.session_id, session_epoch=1, isolation_level=0, topics=())
        (data,) = (await door.call(fetch.API, 12, on)).topics[0].partitions
        assert len(list(iterate(data.records or b""))) == 1
        assert data.aborted_transactions is None

    at_the_door(story)


def test_the_latest_offset_is_the_last_stable_one() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await door.produce("t", batch_of("a"))
        await write(door, 1)

        async def latest(isolation_level: int) -> int:
            asked = list_offsets.ListOffsetsPartition(0, -1, -1)
            request = list_offsets.ListOffsetsRequest(
                -1, isolation_level, (list_offsets.ListOffsetsTopic("t", (asked,)),)
            )
            response = await door.call(list_offsets.API, 7, request)
            return response.topics[0].partitions[0].offset

        assert (await latest(0), await latest(1)) == (2, 1)

    at_the_door(story)


def test_an_open_transaction_is_shown_with_its_producer() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await door.produce("t", batch_of("a"))
        await write(door, 1, epoch=3)
        await write(door, 2)
        await end(door, 2)

        request = describe_producers.DescribeProducersRequest((describe_producers.TopicRequest("t", (0,)),))
        response = await door.call(describe_producers.API, 0, request)
        assert [
            (each.producer_id, each.producer_epoch, each.coordinator_epoch, each.current_txn_start_offset)
            for each in response.topics[0].partitions[0].active_producers
        ] == [(1, 3, -1, 1), (2, 0, 4, -1)]

    at_the_door(story)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_was_aborted_long_ago_is_read_from_its_file(
    is_restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aborted, "ABORTED_CHUNK_COUNT", 3)
    assert limits.ABORTED_CHUNK_COUNT > 3

    async def story(door: Door) -> None:
        await door.create("t")
        for producer in range(20):
            await write(door, producer)
            await end(door, producer, committed=False)
        log = leading(door).log
        snapshot = log.maintenance.take_snapshot(0, force=True)
        assert snapshot is not None
        await door.node._parts.ports.pool.run(snapshot.run)
        log.maintenance.on_snapshot(snapshot)
        assert len(log._contents.producers.transactions.aborted.chunk_offsets) == 6
        if is_restarted:
            await door.restart()
        offset, found = 0, []
        while offset < 40:
            bases, named, _ = await read(door, offset, max_bytes=300)
            found += [each for each in named if each not in found]
            offset = bases[-1] + 1
        assert found == [(producer, producer * 2) for producer in range(20)]

    at_the_door(story)


def test_a_transaction_that_nobody_ends_is_counted_as_hanging() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await write(door, 1)

        def figures() -> dict[str, float]:
            sheet = Exposition(per_partition=False)
            for source in door.node.sources():
                for _ in source.collect(sheet):
                    pass
            lines = b"".join(sheet.chunks()).decode().splitlines()
            return {
                name: float(value)
                for name, _, value in (line.partition(" ") for line in lines if not line.startswith("#"))
                if "ransactions" in name and "{" not in name
            }

        shown = figures()
        assert shown["ropewalk_partition_transactions_open"] == 1
        assert shown["ropewalk_partitions_with_hanging_transactions"] == 0
        await asyncio.sleep(15 * 60 + 5 * 60 - 10)
        assert figures()["ropewalk_partitions_with_hanging_transactions"] == 0
        await asyncio.sleep(20)
        assert figures()["ropewalk_partitions_with_hanging_transactions"] == 1
        await end(door, 1, committed=False)
        shown = figures()
        assert shown["ropewalk_partition_transactions_open"] == 0
        assert shown["ropewalk_partitions_with_hanging_transactions"] == 0

    at_the_door(story, limit_s=2000)
