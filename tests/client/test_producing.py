"""The producer in a simulated world, against fake brokers that misbehave when told."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.errors import BufferFull, DeliveryFailed, Misuse, RecordTooLarge, RemoteError
from ropewalk.client.producing.producer import FinishedBatch, Producer
from ropewalk.records.codec import Codec
from ropewalk.records.packing import pack
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import init_producer_id, produce
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import PORT, Stage, on_stage


class StagePorts:
    def __init__(self, stage: Stage) -> None:
        self.network: Network = stage.world.network.host("client")
        self.clock: Clock = stage.clock
        self.rng: Rng = stage.world.rng_for("client")


@asynccontextmanager
async def producer_on(stage: Stage, **settings: Any) -> AsyncIterator[Producer]:
    async with Producer(f"b0:{PORT}", ports=StagePorts(stage), **settings) as producer:
        yield producer


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive_in_order_and_their_deliveries_say_where(compression: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with producer_on(stage, batch_size=500, compression=compression) as producer:
            deliveries = [await producer.send("orders", b"%d" % number) for number in range(100)]
            offsets = [(await delivery).offset for delivery in deliveries]
        assert offsets == list(range(100))
        assert partition.values() == [b"%d" % number for number in range(100)]
        assert len(partition.batches) > 5

    on_stage(story)


def test_a_record_waits_for_company_as_long_as_it_was_told_to() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with producer_on(stage, linger_ms=200) as producer:
            await producer.send_and_wait("orders", b"first")
            started_ms = stage.now_ms
            await producer.send("orders", b"second")
            await producer.send_and_wait("orders", b"third")
            assert 200 <= stage.now_ms - started_ms < 300
            await producer.send("orders", b"fourth")
            started_ms = stage.now_ms
            await producer.flush()
            assert stage.now_ms - started_ms < 100, "a flush does not linger"
        assert len(partition.batches) == 3

    on_stage(story)


def test_an_answer_lost_on_the_way_is_asked_for_again() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with producer_on(stage) as producer:
            await producer.send_and_wait("orders", b"first")
            broker.fail(produce.API, Fault(1, hang_up=True, handled_first=True))
            await producer.send_and_wait("orders", b"second")
        assert partition.values() == [b"first", b"second"]

    on_stage(story)


def test_a_broker_that_hangs_when_asked_for_an_identity_costs_no_record() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        broker.fail(init_producer_id.API, Fault(2, is_silent=True))
        async with producer_on(stage, request_timeout_ms=1_000, delivery_timeout_ms=30_000) as producer:
            assert (await producer.send_and_wait("orders", b"first")).offset == 0
        assert partition.values() == [b"first"]
        assert broker.asked(init_producer_id.InitProducerIdRequest) >= 3

    on_stage(story)


def test_finished_batches_arrive_once_and_in_order_though_an_answer_is_lost() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with producer_on(stage, max_in_flight=1) as producer:
            assert await producer.partition_counts(["orders"]) == {"orders": 1}
            await producer.send_and_wait("orders", b"first")
            broker.fail(produce.API, Fault(1, hang_up=True, handled_first=True))
            await producer.send_batches(
                (
                    TopicPartition("orders", 0),
                    pack(
                        [(None, b"%d" % number, 5, ()) for number in range(first, first + 3)],
                        codec=Codec.NONE,
                    ),
                    3,
                )
                for first in range(0, 30, 3)
            )
            await producer.send("orders", b"last")
            await producer.flush()
            assert producer.held_bytes == 0
        assert partition.values() == [b"first", *(b"%d" % number for number in range(30)), b"last"]

    on_stage(story)


def test_whoever_sends_finished_batches_hears_soon_that_they_are_refused() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        broker.fail(produce.API, Fault(50, code=ErrorCode.MESSAGE_TOO_LARGE))
        async with producer_on(stage, buffer_memory=500) as producer:
            packed = pack([(None, bytes(200), 5, ())], codec=Codec.NONE)
            taken: list[int] = []

            def batches() -> Iterator[FinishedBatch]:
                for number in range(50):
                    taken.append(number)
                    yield TopicPartition("orders", 0), bytearray(packed), 1

            with pytest.raises(DeliveryFailed, match="MESSAGE_TOO_LARGE"):
                await producer.send_batches(batches())
            assert len(taken) < 10

    on_stage(story)


def test_without_idempotence_an_unknown_outcome_is_told_and_not_repeated() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with producer_on(stage, enable_idempotence=False) as producer:
            broker.fail(produce.API, Fault(1, hang_up=True, handled_first=True))
            with pytest.raises(DeliveryFailed, match="not known") as failed:
                await producer.send_and_wait("orders", b"first")
            assert failed.value.is_unknown
            with pytest.raises(DeliveryFailed):
                await producer.flush()
            await producer.flush()
        assert partition.values() == [b"first"]

    on_stage(story)


def test_a_refusal_for_good_is_told_at_once() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        producer = Producer(f"b0:{PORT}", ports=StagePorts(stage))
        await producer.start()
        broker.fail(produce.API, Fault(1, code=ErrorCode.MESSAGE_TOO_LARGE))
        await producer.send("orders", b"first")
        with pytest.raises(DeliveryFailed) as failed:
            await producer.close()
        assert not failed.value.is_unknown
        assert isinstance(failed.value.cause, RemoteError)
        assert failed.value.cause.code is ErrorCode.MESSAGE_TOO_LARGE

    on_stage(story)


def test_a_request_that_cannot_even_be_sent_does_not_stop_those_to_other_brokers() -> None:
    """It takes along what is known of the topic, in the middle of a pass."""

    async def story(stage: Stage) -> None:
        await stage.add_broker(version_max={produce.API.key: -1})
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0, 1).partitions[1]
        async with producer_on(stage, linger_ms=0) as producer:
            for value in (
                b"first",
                b"second",
            ):  # the second time both brokers are connected when the pass begins
                refused, taken = [await producer.send("orders", value, partition=index) for index in (0, 1)]
                with pytest.raises(DeliveryFailed):
                    await refused
                await taken
            with pytest.raises(DeliveryFailed):
                await producer.flush()
        assert partition.values() == [b"first", b"second"]

    on_stage(story)


def test_a_partition_that_moves_is_followed() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with producer_on(stage) as producer:
            await producer.send_and_wait("orders", b"first")
            partition.leader, partition.leader_epoch = 1, 1
            await producer.send_and_wait("orders", b"second")
        assert partition.values() == [b"first", b"second"]

    on_stage(story)


def test_a_cluster_that_is_gone_is_tried_until_the_delivery_is_due() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with producer_on(stage, delivery_timeout_ms=5000, request_timeout_ms=1000) as producer:
            await producer.send_and_wait("orders", b"first")
            broker.stop()
            started_ms = stage.now_ms
            with pytest.raises(DeliveryFailed):
                await producer.send_and_wait("orders", b"second")
            assert 4900 <= stage.now_ms - started_ms <= 6500
            with pytest.raises(DeliveryFailed):
                await producer.flush()

    on_stage(story)


def test_memory_is_bounded_and_whoever_sends_more_waits() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with producer_on(
            stage, buffer_memory=3000, batch_size=1000, max_block_ms=500, request_timeout_ms=2000
        ) as producer:
            for number in range(50):
                await producer.send("orders", b"%d" % number * 100)
                assert producer.held_bytes <= 3000
            await producer.flush()
            broker.fail(produce.API, Fault(8, is_silent=True))
            while producer.held_bytes + 240 <= 3000:
                await producer.send("orders", b"x" * 200)
            with pytest.raises(BufferFull, match="buffer_memory is 3000"):
                await producer.send("orders", b"x" * 200)

    on_stage(story)


def test_misuse_and_what_no_broker_would_take_are_refused_at_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with producer_on(stage, max_request_size=1000) as producer:
            with pytest.raises(RecordTooLarge, match="max_request_size is 1000"):
                await producer.send("orders", b"x" * 2000)
            with pytest.raises(Misuse, match="value_format"):
                await producer.send("orders", "text")
            with pytest.raises(Misuse, match="transactional_id"):
                await producer.begin_transaction()
            with pytest.raises(RemoteError, match="1 partitions"):
                await producer.send_and_wait("orders", b"x", partition=7)
            with pytest.raises(RemoteError, match="1 partitions"):
                await producer.flush()
        with pytest.raises(Misuse, match="closed"):
            await producer.send("orders", b"x")

    on_stage(story)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"acks": 2}, "acks"),
        ({"linger": 1}, "linger"),
        ({"compression": "rar"}, "compression"),
        ({"buffer_memory": 0}, "buffer_memory"),
        ({"max_in_flight": 6}, "max_in_flight"),
        ({"transactional_id": "t", "acks": 1}, "transactional_id"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSetting, match=named):
        Producer("127.0.0.1:1", **settings)
