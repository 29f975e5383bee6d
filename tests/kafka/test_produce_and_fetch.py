"""Produce and Fetch through the door: what is answered, and what is refused, in Kafka's words."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ConnectionLost
from ropewalk.records.batch import HEADER_BYTES, iterate, stamp_crc
from ropewalk.records.codec import Codec
from ropewalk.records.record import decode_records
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, init_producer_id, produce
from tests.kafka.door import NODE, Door, at_the_door, batch_of, fetch_request, produce_request

HOUR_MS = 3_600_000


def values(data: fetch.PartitionData) -> list[str]:
    view = memoryview(data.records or b"")
    return [
        (record.value or b"").decode()
        for start, header in iterate(view)
        for record in decode_records(view[start : start + header.size_bytes])
    ]


@pytest.mark.parametrize("version", produce.API.versions)
def test_what_is_produced_in_any_version_can_be_fetched(version: int) -> None:
    async def story(door: Door) -> tuple[int, list[str]]:
        topic_id = await door.create("t")
        request = produce_request("t", batch_of("a", "b"), topic_id=topic_id)
        answer = (await door.call(produce.API, version, request)).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.NONE
        return answer.base_offset, values(await door.fetch("t", 0))

    assert at_the_door(story) == (0, ["a", "b"])


@pytest.mark.parametrize("version", fetch.API.versions)
def test_fetch_answers_in_any_version(version: int) -> None:
    async def story(door: Door) -> list[str]:
        topic_id = await door.create("t")
        await door.produce("t", batch_of("a"))
        request = fetch_request("t", 0, topic_id=topic_id)
        return values((await door.call(fetch.API, version, request)).topics[0].partitions[0])

    assert at_the_door(story) == ["a"]


@pytest.mark.parametrize(
    ("topic", "partition", "acks", "batch", "expected"),
    [
        pytest.param("t", 0, 1, batch_of("x"), ErrorCode.NONE, id="leader alone is enough"),
        pytest.param("t", 0, -1, batch_of("x"), ErrorCode.NONE, id="isr of one acknowledges itself"),
        pytest.param("t", 0, 7, batch_of("x"), ErrorCode.INVALID_REQUIRED_ACKS, id="acks makes no sense"),
        pytest.param("no", 0, -1, batch_of("x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param("t", 9, -1, batch_of("x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such partition"),
        pytest.param(
            "t", -1, -1, batch_of("x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="negative partition"
        ),
        pytest.param("t", 0, -1, b"", ErrorCode.INVALID_RECORD, id="no batch"),
        pytest.param("t", 0, -1, batch_of("x")[:-1], ErrorCode.CORRUPT_MESSAGE, id="cut short"),
        pytest.param(
            "t", 0, -1, batch_of("x")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE, id="fails its checksum"
        ),
        pytest.param("t", 0, -1, batch_of("x") * 2, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(
            "t", 0, -1, batch_of("x", is_control=True), ErrorCode.INVALID_RECORD, id="control batch"
        ),
        pytest.param("t", 0, -1, batch_of("x" * 2000), ErrorCode.MESSAGE_TOO_LARGE, id="too large"),
        pytest.param(
            "t",
            0,
            -1,
            batch_of("x", timestamp=EPOCH_MS + 2 * HOUR_MS),
            ErrorCode.INVALID_TIMESTAMP,
            id="from the future",
        ),
        pytest.param(
            "t", 0, -1, batch_of("x", producer=(1, 0, 5)), ErrorCode.NONE, id="first of an unknown producer"
        ),
    ],
)
def test_produce_answers(topic: str, partition: int, acks: int, batch: bytes, expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        await door.create("t", max_message_bytes="1000")
        return (await door.produce(topic, batch, acks=acks, partition=partition)).error_code

    assert at_the_door(story) == expected


def test_a_failure_belongs_to_its_partition() -> None:
    async def story(door: Door) -> list[tuple[int, int]]:
        await door.create("t", 2)
        good, bad = bytes(batch_of("x")), bytes(batch_of("x")[:-1])
        data = (produce.PartitionProduceData(0, bad), produce.PartitionProduceData(1, good))
        request = produce.ProduceRequest(None, -1, 1000, (produce.TopicProduceData("t", partitions=data),))
        answers = (await door.call(produce.API, 9, request)).topics[0].partitions
        return [(answer.index, answer.error_code) for answer in answers]

    assert at_the_door(story) == [(0, ErrorCode.CORRUPT_MESSAGE), (1, ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("before", "then", "expected"),
    [
        pytest.param([(1, 0, 0)], (1, 0, 0), (ErrorCode.NONE, 0), id="a repeated batch has its old offset"),
        pytest.param([(1, 0, 0)], (1, 0, 1), (ErrorCode.NONE, 1), id="the next one is new"),
        pytest.param([(1, 0, 0)], (1, 0, 7), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), id="a gap"),
        pytest.param([(1, 1, 0)], (1, 0, 1), (ErrorCode.INVALID_PRODUCER_EPOCH, -1), id="an older epoch"),
        pytest.param(
            [(1, 0, 0)], (1, 1, 3), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), id="a new epoch starts at 0"
        ),
    ],
)
def test_idempotent_producers(
    before: list[tuple[int, int, int]], then: tuple[int, int, int], expected: tuple[int, int]
) -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t")
        for producer in before:
            await door.produce("t", batch_of("x", producer=producer))
        answer = await door.produce("t", batch_of("x", producer=then))
        return answer.error_code, answer.base_offset

    assert at_the_door(story) == expected


def test_pipelined_requests_take_effect_and_are_answered_in_order() -> None:
    async def story(door: Door) -> list[int]:
        await door.create("t")
        sent = [door.send(produce.API, 9, produce_request("t", batch_of(str(n)))) for n in range(50)]
        offsets = [(await answer).topics[0].partitions[0].base_offset for answer in sent]
        assert values(await door.fetch("t", 0)) == [str(n) for n in range(50)]
        return offsets

    assert at_the_door(story) == list(range(50))


def test_a_topic_that_opens_batches_keeps_the_order_too() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("t", compression_type="gzip")
        await door.create("u")
        sent = [
            door.send(produce.API, 9, produce_request("t", batch_of(str(n), codec=Codec(n % 5))))
            for n in range(20)
        ]
        for answer in sent:
            assert (await answer).topics[0].partitions[0].error_code == 0
        fetched = await door.fetch("t", 0)
        assert {header.codec for _, header in iterate(memoryview(fetched.records or b""))} == {Codec.GZIP}
        return values(fetched)

    assert at_the_door(story) == [str(n) for n in range(20)]


def _that_cannot_be_opened(codec: Codec, producer: tuple[int, int, int] | None = None) -> bytearray:
    """Under a true CRC, so that only whoever looks into it can tell."""
    batch = batch_of("x" * 100, codec=codec, producer=producer)
    batch[HEADER_BYTES:] = bytes(len(batch) - HEADER_BYTES)
    stamp_crc(memoryview(batch))
    return batch


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    ("validate", "expected"), [("full", ErrorCode.INVALID_RECORD), ("header", ErrorCode.NONE)]
)
def test_what_no_consumer_could_open_is_refused_where_records_are_validated(
    codec: Codec, validate: str, expected: ErrorCode
) -> None:
    async def story(door: Door) -> int:
        await door.create("t", records_validate=validate)
        assert (await door.produce("t", batch_of("sound", codec=codec))).error_code == ErrorCode.NONE
        return (await door.produce("t", _that_cannot_be_opened(codec))).error_code

    assert at_the_door(story) == expected


def test_validated_batches_of_an_idempotent_producer_keep_their_order_with_several_on_their_way() -> None:
    """The third cannot be opened: those behind it miss it, whatever order the disk pool has."""

    async def story(door: Door) -> tuple[list[int], list[str]]:
        await door.create("t", records_validate="full")
        batches = [
            batch_of(str(n), codec=Codec(n % 5), producer=(7, 0, n))
            if n != 2
            else _that_cannot_be_opened(Codec.GZIP, (7, 0, n))
            for n in range(6)
        ]
        sent = [door.send(produce.API, 9, produce_request("t", batch)) for batch in batches]
        codes = [(await answer).topics[0].partitions[0].error_code for answer in sent]
        return codes, values(await door.fetch("t", 0))

    missing = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert at_the_door(story) == ([0, 0, ErrorCode.INVALID_RECORD, missing, missing, missing], ["0", "1"])


def test_requests_to_several_partitions_that_open_batches_keep_their_order() -> None:
    async def story(door: Door) -> list[list[str]]:
        await door.create("t", 3, compression_type="gzip")
        sent = [
            door.send(
                produce.API,
                9,
                produce.ProduceRequest(
                    None,
                    -1,
                    30_000,
                    (
                        produce.TopicProduceData(
                            "t",
                            partitions=tuple(
                                produce.PartitionProduceData(index, bytes(batch_of(str(number))))
                                for index in range(3)
                            ),
                        ),
                    ),
                ),
            )
            for number in range(20)
        ]
        for answer in sent:
            assert {each.error_code for each in (await answer).topics[0].partitions} == {0}
        return [values(await door.fetch("t", 0, partition=index)) for index in range(3)]

    assert at_the_door(story) == [[str(number) for number in range(20)]] * 3


def test_a_request_that_is_half_handled_is_not_overwritten_by_other_connections() -> None:
    """Batches that are opened one after the other wait in the receive buffer, which others would like to have."""
    count = 20

    async def story(door: Door) -> list[list[str]]:
        await door.create("t", count, compression_type="gzip")
        other = await Connection.open(
            door.world.network.host("other"),
            door.world.machine("other").clock,
            NODE,
            client_id="other",
            deadline_ms=door.deadline_ms,
        )
        data = tuple(
            produce.PartitionProduceData(index, bytes(batch_of(f"{index}" * 50))) for index in range(count)
        )
        topic = produce.TopicProduceData("t", partitions=data)
        sent = door.send(produce.API, 9, produce.ProduceRequest(None, -1, 30_000, (topic,)))
        while not sent.done():
            foreign = produce_request("t", batch_of("foreign" * 400), partition=0)
            await other.send(produce.API, 9, foreign, deadline_ms=door.deadline_ms)
        assert {answer.error_code for answer in (await sent).topics[0].partitions} == {0}
        return [values(await door.fetch("t", 0, partition=index)) for index in range(1, count)]

    assert at_the_door(story) == [[f"{index}" * 50] for index in range(1, count)]


def test_a_compacted_topic_refuses_records_without_keys_and_names_them() -> None:
    async def story(door: Door) -> produce.PartitionProduceResponse:
        await door.create("t", cleanup_policy="compact")
        return await door.produce("t", batch_of("a", "b", key=None))

    answer = at_the_door(story)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]


def test_append_time_is_the_brokers_clock() -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t", message_timestamp_type="LogAppendTime")
        answer = await door.produce("t", batch_of("a", timestamp=5))
        (_, header), *_ = iterate(memoryview((await door.fetch("t", 0)).records or b""))
        return answer.log_append_time_ms, header.max_timestamp

    stamped, stored = at_the_door(story)
    assert stamped == stored >= EPOCH_MS


def test_acks_0_is_not_answered_and_an_error_closes_the_connection() -> None:
    async def story(door: Door) -> str:
        await door.create("t")
        door.connection.send_unanswered(produce.API, 9, produce_request("t", batch_of("a"), acks=0))
        assert values(await door.fetch("t", 0, wait_ms=5000)) == ["a"]
        door.connection.send_unanswered(produce.API, 9, produce_request("no", batch_of("a"), acks=0))
        try:
            await door.fetch("t", 0)
        except ConnectionLost:
            return "closed"
        return "open"

    assert at_the_door(story) == "closed"


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        pytest.param(0, -1, ErrorCode.NONE, id="from the start"),
        pytest.param(2, -1, ErrorCode.NONE, id="at the end is empty, not an error"),
        pytest.param(3, -1, ErrorCode.OFFSET_OUT_OF_RANGE, id="beyond the end"),
        pytest.param(-5, -1, ErrorCode.OFFSET_OUT_OF_RANGE, id="negative"),
        pytest.param(0, 0, ErrorCode.NONE, id="the right epoch"),
        pytest.param(0, 1, ErrorCode.UNKNOWN_LEADER_EPOCH, id="an epoch from the future"),
    ],
)
def test_fetch_answers(offset: int, epoch: int, expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        await door.produce("t", batch_of("a", "b"))
        request = fetch_request("t", offset, epoch=epoch)
        return (await door.call(fetch.API, 12, request)).topics[0].partitions[0].error_code

    assert at_the_door(story) == expected


def test_an_offset_in_the_middle_of_a_batch_gets_the_whole_batch() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await door.produce("t", batch_of("a", "b", "c"))
        await door.produce("t", batch_of("d"))
        return values(await door.fetch("t", 1))

    assert at_the_door(story) == ["a", "b", "c", "d"]


def test_the_first_batch_is_given_even_if_it_is_larger_than_asked_for() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await door.produce("t", batch_of("a" * 500))
        await door.produce("t", batch_of("b"))
        return values(await door.fetch("t", 0, max_bytes=1))

    assert at_the_door(story) == ["a" * 500]


def test_a_fetch_waits_until_something_is_written() -> None:
    async def story(door: Door) -> tuple[list[str], float]:
        await door.create("t")
        began_s = door.world.now_s
        waiting = door.send(fetch.API, 12, fetch_request("t", 0, wait_ms=30_000))
        other = await door.connection.open(
            door.world.network.host("other"),
            door.world.machine("other").clock,
            door.connection.address,
            client_id="other",
            deadline_ms=door.deadline_ms,
        )
        await other.send(produce.API, 9, produce_request("t", batch_of("late")), deadline_ms=door.deadline_ms)
        fetched = (await waiting).topics[0].partitions[0]
        return values(fetched), door.world.now_s - began_s

    found, waited_s = at_the_door(story)
    assert (found, waited_s < 20) == (["late"], True)


def test_an_empty_fetch_ends_when_its_time_is_over() -> None:
    async def story(door: Door) -> tuple[list[str], float]:
        await door.create("t")
        began_s = door.world.now_s
        fetched = await door.fetch("t", 0, wait_ms=700)
        return values(fetched), door.world.now_s - began_s

    found, waited_s = at_the_door(story)
    assert found == []
    assert waited_s >= 0.7


def test_a_fetch_waits_for_the_bytes_it_asked_for() -> None:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        batch = batch_of("0123456789")
        await door.produce("t", batch)
        request = fetch_request("t", 0, wait_ms=60_000, min_bytes=3 * len(batch))
        other = await door.connection.open(
            door.world.network.host("other"),
            door.world.machine("other").clock,
            door.connection.address,
            client_id="other",
            deadline_ms=door.deadline_ms,
        )
        waiting = door.send(fetch.API, 12, request)
        for _ in range(2):
            await other.send(
                produce.API, 9, produce_request("t", batch_of("0123456789")), deadline_ms=door.deadline_ms
            )
        return values((await waiting).topics[0].partitions[0])

    assert at_the_door(story) == ["0123456789"] * 3


@pytest.mark.parametrize(
    ("version", "faked"),
    [
        (12, fetch.FetchRequest(replica_id=1)),
        (15, fetch.FetchRequest(replica_state=fetch.ReplicaState(replica_id=1, replica_epoch=0))),
    ],
)
def test_a_replica_id_is_refused_on_a_client_listener_with_one_line(
    version: int, faked: fetch.FetchRequest
) -> None:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        with capture_logs() as logs:
            for _ in range(3):
                answer = await door.call(fetch.API, version, faked)
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return [entry["reason"] for entry in logs]

    assert at_the_door(story) == [
        "a Fetch with a replica id, which only nodes may send, and on their own listener"
    ]


def test_a_waiting_fetch_hears_that_its_topic_is_deleted() -> None:
    async def story(door: Door) -> int:
        topic_id = await door.create("t")
        waiting = door.send(fetch.API, 13, fetch_request("", 0, topic_id=topic_id, wait_ms=60_000))
        second = await door.another()
        await delete(second, "t")
        return (await waiting).topics[0].partitions[0].error_code

    assert at_the_door(story) == ErrorCode.UNKNOWN_TOPIC_ID


def test_every_producer_gets_an_id_of_its_own() -> None:
    async def story(door: Door) -> list[int]:
        request = init_producer_id.InitProducerIdRequest(None, 60_000)
        answers = await asyncio.gather(*(door.call(init_producer_id.API, 0, request) for _ in range(20)))
        return [answer.producer_id for answer in answers]

    ids = at_the_door(story)
    assert len(set(ids)) == 20


async def delete(door: Door, name: str) -> None:
    from ropewalk.wire.messages import delete_topics

    request = delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicState(name),))
    (result,) = (await door.call(delete_topics.API, 6, request)).topics
    assert result.error_code == ErrorCode.NONE


def test_a_fetch_is_answered_with_no_more_than_the_node_allows() -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        for _ in range(4):
            await door.produce("t", batch_of("x" * 600))
        return len(values(await door.fetch("t", 0)))

    assert at_the_door(story, "fetch.max.bytes=1500") == 2


def test_pipelined_fetches_wait_one_after_the_other() -> None:
    """Their answers would otherwise all be read into memory at once when a record comes."""

    async def story(door: Door) -> float:
        await door.create("t")
        began_s = door.world.now_s
        for waiting in [door.send(fetch.API, 12, fetch_request("t", 0, wait_ms=500)) for _ in range(3)]:
            await waiting
        return door.world.now_s - began_s

    assert at_the_door(story) >= 1.5
