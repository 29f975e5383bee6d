"""What a consumer makes of the bytes of a fetch: positions, parts of batches, aborted transactions."""

from ropewalk.base.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition
from ropewalk.client.consuming.chunk import Chunk
from ropewalk.records.batch import stamp
from ropewalk.records.record import Record, build

ORDERS = TopicPartition("orders", 0)
ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


def batch(base_offset: int, *values: bytes, producer: int = -1, is_transactional: bool = False) -> bytes:
    made = build(
        [Record(value=value) for value in values],
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(0),
        is_transactional=is_transactional,
    )
    stamp(memoryview(made), base_offset=Offset(base_offset), leader_epoch=LeaderEpoch(7))
    return bytes(made)


def marker(base_offset: int, producer: int, key: bytes) -> bytes:
    made = build(
        [Record(key=key, value=b"\x00\x00\x00\x00\x00\x00")],
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(0),
        is_transactional=True,
        is_control=True,
    )
    stamp(memoryview(made), base_offset=Offset(base_offset), leader_epoch=LeaderEpoch(7))
    return bytes(made)


def test_batches_are_handed_out_in_parts_and_the_position_follows() -> None:
    chunk = Chunk(ORDERS, batch(0, b"a", b"b", b"c") + batch(5, b"d"), fetch_offset=1)
    assert [message.value for message in chunk.take(1)] == [b"b"]
    assert (chunk.position, chunk.is_empty) == (2, False)
    assert [message.offset for message in chunk.take(10)] == [2, 5]
    assert (chunk.position, chunk.is_empty, chunk.leader_epoch) == (6, True, 7)


def test_a_batch_that_is_cut_off_waits_for_the_next_fetch() -> None:
    whole = batch(0, b"a")
    chunk = Chunk(ORDERS, whole + batch(1, b"b")[:-1], fetch_offset=0)
    assert [message.value for message in chunk.take(10)] == [b"a"]
    assert chunk.position == chunk.end_offset == 1


def test_a_batch_that_cannot_be_opened_costs_nothing_that_lies_before_it_and_is_not_passed() -> None:
    damaged = bytearray(batch(2, b"b", b"c"))
    damaged[-2] ^= 1
    chunk = Chunk(ORDERS, batch(0, b"a", b"a") + damaged + batch(4, b"d"), fetch_offset=0)
    assert [message.offset for message in chunk.take(10)] == [0, 1]
    for _ in range(2):
        assert chunk.failure is not None
        assert (chunk.failure.base_offset, chunk.failure.end_offset) == (2, 4)
        assert "orders-0 has a batch at offset 2" in str(chunk.failure)
        assert (chunk.position, chunk.is_empty) == (2, False)
        assert chunk.take(10) == []


def test_bytes_that_are_no_batch_end_a_chunk_where_they_begin() -> None:
    of_another_format = bytearray(batch(1, b"b"))
    of_another_format[16] = 1
    chunk = Chunk(ORDERS, batch(0, b"a") + of_another_format + batch(2, b"c"), fetch_offset=0)
    assert [message.offset for message in chunk.take(10)] == [0]
    assert chunk.failure is not None
    assert chunk.failure.end_offset is None
    assert (chunk.position, chunk.is_empty) == (1, False)


def test_aborted_transactions_are_skipped_and_the_next_of_their_producer_are_not() -> None:
    records = b"".join(
        [
            batch(0, b"lost", producer=1, is_transactional=True),
            batch(1, b"plain"),
            batch(2, b"kept", producer=2, is_transactional=True),
            batch(3, b"lost", producer=1, is_transactional=True),
            marker(4, 1, ABORT),
            marker(5, 2, COMMIT),
            batch(6, b"kept", producer=1, is_transactional=True),
            batch(7, b"not transactional", producer=1),
            batch(8, b"lost", producer=1, is_transactional=True),
        ]
    )
    chunk = Chunk(ORDERS, records, fetch_offset=0, aborted=[(1, 8), (1, 0)])
    found = [(message.offset, message.value) for message in chunk.take(100)]
    assert found == [(1, b"plain"), (2, b"kept"), (6, b"kept"), (7, b"not transactional")]
    assert chunk.position == 9


def test_an_aborted_transaction_of_which_only_the_marker_is_left_to_read_takes_nothing_along() -> None:
    """Reading goes on between its last record and its marker: what its producer commits next is seen."""
    records = b"".join(
        [
            marker(4, 1, ABORT),
            batch(5, b"kept", producer=1, is_transactional=True),
            marker(6, 1, COMMIT),
        ]
    )
    chunk = Chunk(ORDERS, records, fetch_offset=4, aborted=[(1, 2)])
    assert [message.offset for message in chunk.take(100)] == [5]


def test_whoever_reads_everything_sees_what_was_aborted_and_no_markers() -> None:
    records = batch(0, b"lost", producer=1, is_transactional=True) + marker(1, 1, ABORT)
    chunk = Chunk(ORDERS, records, fetch_offset=0)
    assert [message.value for message in chunk.take(100)] == [b"lost"]
    assert chunk.position == 2
