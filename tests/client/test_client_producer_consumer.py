"""The producer and the consumer of the command line, against the fake cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import NO_PRODUCER, TopicPartition
from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.client.calls.produce import Acks
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import ConnectionLost, RemoteError, UnreadableBatch
from ropewalk.client.producer import Producer, batches_of
from ropewalk.records.batch import decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import init_producer_id, produce
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import Stage, on_stage

ORDERS = TopicPartition("orders", 0)


def lines(count: int) -> list[Record]:
    return [Record(timestamp=1000 + number, value=b"%d" % number) for number in range(count)]


def test_keys_choose_the_partition_and_the_rest_take_turns() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 0, 0)
        keyed = [Record(key=b"k%d" % (number % 5), value=b"%d" % number) for number in range(30)]
        async with stage.client() as client:
            await Producer(client, "orders").send(keyed)
        for index, partition in enumerate(topic.partitions):
            expected = [record.value for record in keyed if partition_for_key(record.key or b"", 3) == index]
            assert partition.values() == expected

    on_stage(story)


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_sent_is_consumed_in_order_through_every_codec(codec: Codec) -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        sent = lines(100)
        async with stage.client(settings=ClientSettings(batch_bytes=500)) as client:
            delivered = await Producer(client, "orders", codec=codec).send(sent)
            assert sum(batch.record_count for batch in delivered) == 100
            assert len(delivered) > 5
            consumer = Consumer(client, {ORDERS: 0})
            (consumed,) = await consumer.poll()
        assert [record.value for record in consumed.records] == [record.value for record in sent]
        assert [record.timestamp for record in consumed.records] == [record.timestamp for record in sent]
        assert consumer.positions == {ORDERS: 100} == {ORDERS: consumed.end_offset}

    on_stage(story)


def test_an_answer_lost_on_the_way_does_not_append_twice() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        broker.fail(produce.API, Fault(1, hang_up=True, handled_first=True))
        async with stage.client() as client:
            producer = Producer(client, "orders")
            await producer.send(lines(3))
            await producer.send(lines(2))
        assert partition.values() == [b"0", b"1", b"2", b"0", b"1"]
        sequences = [decode_header(batch).base_sequence for batch in partition.batches]
        assert sequences == [0, 3]

    on_stage(story)


@pytest.mark.parametrize(
    ("acks", "offered"),
    [
        pytest.param(Acks.LEADER, True, id="acks=1"),
        pytest.param(Acks.ALL, False, id="a broker without InitProducerId"),
    ],
)
def test_batches_are_not_numbered_where_that_is_not_wanted_or_not_possible(acks: Acks, offered: bool) -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(version_max={} if offered else {init_producer_id.API.key: -1})
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with stage.client() as client:
            await Producer(client, "orders", acks=acks).send(lines(1))
        assert decode_header(partition.batches[0]).producer_id == NO_PRODUCER

    on_stage(story)


def test_records_that_nobody_acknowledges_are_read_by_the_time_they_are_drained() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 0)
        async with stage.client(settings=ClientSettings(batch_bytes=1_000)) as client:
            producer = Producer(client, "orders", acks=Acks.NONE)
            await producer.drain()
            await producer.send([Record(value=b"x" * 900) for _ in range(400)])
            await producer.drain()
            assert [len(partition.values()) for partition in topic.partitions] == [200, 200]

    on_stage(story)


def test_a_consumer_that_starts_inside_a_batch_sees_nothing_before_its_offset() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            await Producer(client, "orders").send(lines(10))
            (consumed,) = await Consumer(client, {ORDERS: 7}).poll()
        assert [record.offset for record in consumed.records] == [7, 8, 9]

    on_stage(story)


def test_a_control_batch_moves_the_position_and_shows_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        partition.append(bytes(build([Record(key=b"\0\0\0\1", value=b"")], is_control=True)))
        partition.append(bytes(build(lines(1))))
        async with stage.client() as client:
            consumer = Consumer(client, {ORDERS: 0})
            (consumed,) = await consumer.poll()
        assert [record.offset for record in consumed.records] == [1]
        assert consumer.positions == {ORDERS: 2}

    on_stage(story)


def test_a_batch_that_rotted_on_the_way_is_not_shown() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        partition.append(bytes(build(lines(1))))
        rotten = bytearray(partition.batches[0])
        rotten[-1] ^= 1
        partition.batches[0] = bytes(rotten)
        async with stage.client() as client:
            with pytest.raises(CorruptBatch, match="orders-0 has a batch at offset 0"):
                await Consumer(client, {ORDERS: 0}).poll()

    on_stage(story)


def test_a_batch_that_cannot_be_opened_is_raised_after_what_lies_before_it() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 0)
        for partition in topic.partitions:
            partition.append(bytes(build(lines(2))))
        rotten = bytearray(build(lines(1)))
        rotten[-1] ^= 1
        topic.partitions[0].append(bytes(rotten))
        other = TopicPartition("orders", 1)
        async with stage.client() as client:
            consumer = Consumer(client, {ORDERS: 0, other: 0})
            assert [len(consumed.records) for consumed in await consumer.poll()] == [2, 2]
            with pytest.raises(UnreadableBatch, match="orders-0 has a batch at offset 2"):
                await consumer.poll()
            assert consumer.positions == {ORDERS: 2, other: 2}

    on_stage(story)


def test_what_follows_a_failed_batch_is_not_taken_for_it() -> None:
    """Under the same sequence the broker would acknowledge it as the one that it has, and it would be lost."""

    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with stage.client(settings=ClientSettings(request_timeout_ms=1_000)) as client:
            producer = Producer(client, "orders")
            failing = Fault(100, hang_up=True, handled_first=True)
            broker.fail(produce.API, failing)
            with pytest.raises(ConnectionLost):
                await producer.send(lines(1))
            failing.count = 0
            await producer.send([Record(value=b"another")])
        assert partition.values() == [b"0", b"another"]

    on_stage(story)


def test_an_offset_out_of_range_is_raised_and_an_empty_partition_waited_on() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            with pytest.raises(RemoteError) as caught:
                await Consumer(client, {ORDERS: 5}).poll()
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
            started_ms = stage.now_ms
            (consumed,) = await Consumer(client, {ORDERS: 0}).poll(wait_ms=700)
        assert consumed.records == ()
        assert stage.now_ms - started_ms >= 700

    on_stage(story)


@given(st.lists(st.binary(max_size=300), max_size=40), st.integers(1, 1_000))
def test_batches_hold_all_records_in_order_and_keep_their_bound(values: list[bytes], bytes_max: int) -> None:
    records = [Record(value=value, headers=(("h", value[:3]),)) for value in values]
    runs = list(batches_of(records, bytes_max=bytes_max))
    assert [record for run in runs for record in run] == records
    assert all(len(run) == 1 or len(build(run)) - 61 <= bytes_max for run in runs)
    assert all(runs)
