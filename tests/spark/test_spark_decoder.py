"""Whatever producers write comes out as rows, with the compiled loops and without them."""

from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.records.batch import HEADER_BYTES, stamp, stamp_crc
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.spark.columns import Column
from ropewalk.spark.decoding import kernels, lockstep
from ropewalk.spark.decoding.bodies import Aborted
from ropewalk.spark.decoding.decoder import Decoder
from ropewalk.spark.decoding.records_found import Wanted
from ropewalk.spark.reading import BYTES_PER_BATCH_MAX, ROWS_PER_BATCH_MAX, in_slices

BOTH = pytest.mark.parametrize("loops", [kernels, lockstep], ids=["compiled", "numpy"])
"""Both sets of loops answer the same."""

_texts = st.text(max_size=4)
_blobs = st.none() | st.binary(max_size=9) | st.just(bytes(300))
_records = st.builds(
    Record,
    timestamp=st.integers(0, 4_000_000_000_000),
    key=_blobs,
    value=_blobs,
    headers=st.lists(st.tuples(_texts, st.none() | st.binary(max_size=4)), max_size=3).map(tuple),
)
_batches = st.lists(
    st.tuples(st.lists(_records, min_size=1, max_size=6), st.sampled_from(Codec)), min_size=1, max_size=5
)


def fetched_from(batches: list[tuple[list[Record], Codec]], first_offset: int = 100) -> memoryview:
    """As a broker would send them, one after the other."""
    sent, offset = bytearray(), first_offset
    for records, codec in batches:
        batch = build(records, codec=codec)
        stamp(memoryview(batch), base_offset=Offset(offset), leader_epoch=LeaderEpoch(3))
        sent += batch
        offset += len(records)
    return memoryview(sent)


def rows_of(batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in batch.to_pylist()]


@BOTH
@settings(max_examples=60, deadline=None)
@given(batches=_batches, low=st.integers(95, 115), count=st.integers(0, 40))
def test_rows_are_the_records(
    loops: ModuleType, batches: list[tuple[list[Record], Codec]], low: int, count: int
) -> None:
    decoder = Decoder(
        (
            Column.KEY,
            Column.VALUE,
            Column.OFFSET,
            Column.TIMESTAMP,
            Column.HEADERS,
            Column.TOPIC,
            Column.PARTITION,
        ),
        topic="orders",
        partition=7,
        loops=loops,
    )
    decoded, next_offset = decoder.decode(
        fetched_from(batches), Wanted(first_offset=low, end_offset=low + count)
    )
    decoded.validate(full=True)
    records = [record for some, _ in batches for record in some]
    expected = [
        (
            record.key,
            record.value,
            offset,
            record.timestamp,
            [{"key": key, "value": value} for key, value in record.headers] or None,
            "orders",
            7,
        )
        for offset, record in enumerate(records, 100)
        if low <= offset < low + count
    ]
    shown = decoded.set_column(
        3, "timestamp", pa.array([stamp.value // 1000 for stamp in decoded.column("timestamp")], pa.int64())
    )
    assert rows_of(shown) == expected
    assert next_offset == 100 + len(records)


@BOTH
def test_nothing_but_the_wanted_columns_and_times(loops: ModuleType) -> None:
    records = [Record(timestamp=1000 + number, key=None, value=b"v") for number in range(10)]
    decoded, _ = Decoder((Column.OFFSET,), topic="t", partition=0, loops=loops).decode(
        fetched_from([(records, Codec.NONE)], 0), Wanted(first_timestamp=1003, end_timestamp=1005)
    )
    assert decoded.schema.names == ["offset"]
    assert decoded.column("offset").to_pylist() == [3, 4]


@BOTH
def test_a_batch_cut_short_at_the_end_is_left_for_the_next_fetch(loops: ModuleType) -> None:
    whole = fetched_from([([Record(timestamp=1, key=None, value=b"a")], Codec.NONE)] * 2, 0)
    decoded, next_offset = Decoder((Column.OFFSET,), topic="t", partition=0, loops=loops).decode(
        whole[:-1], Wanted()
    )
    assert (decoded.column("offset").to_pylist(), next_offset) == ([0], 1)


@BOTH
def test_a_changed_bit_is_noticed(loops: ModuleType) -> None:
    changed = fetched_from([([Record(timestamp=1, key=None, value=b"abc")], Codec.NONE)])
    changed[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        Decoder((Column.VALUE,), topic="t", partition=0, loops=loops).decode(changed, Wanted())


@BOTH
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_bytes_that_were_never_records_are_refused_and_not_followed(
    loops: ModuleType, data: st.DataObject
) -> None:
    """The checksum holds: whoever wrote this meant it. No length in it leads out of the batch."""
    records = data.draw(st.lists(_records, min_size=1, max_size=4))
    batch = bytearray(fetched_from([(records, Codec.NONE)]))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    stamp_crc(memoryview(batch))
    results = []
    decoder = Decoder((Column.VALUE, Column.HEADERS), topic="t", partition=0, loops=loops)
    try:
        decoded, _ = decoder.decode(memoryview(batch), Wanted())
        results.append(decoded.num_rows)
    except CorruptBatch:
        results.append(-1)
    assert results[0] <= len(records)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_both_sets_of_loops_find_the_same(data: st.DataObject) -> None:
    from ropewalk.spark.decoding.bodies import open_bodies

    records = data.draw(st.lists(_records, min_size=1, max_size=4))
    batch = bytearray(fetched_from([(records, Codec.NONE)]))
    for _ in range(data.draw(st.integers(0, 3))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    stamp_crc(memoryview(batch))
    bodies = open_bodies(memoryview(batch))
    compiled, plain = kernels.find_records(bodies, Wanted()), lockstep.find_records(bodies, Wanted())
    if isinstance(compiled, int) or isinstance(plain, int):
        assert compiled == plain
    else:
        for name in compiled.__struct_fields__:
            assert np.array_equal(getattr(compiled, name), getattr(plain, name)), name


def transactional(batch: bytearray, producer_id: int, *, control: bool = False) -> bytearray:
    view = memoryview(batch)
    view[43:51] = producer_id.to_bytes(8, "big")
    view[22] |= 0x10 | (0x20 if control else 0)
    stamp_crc(view)
    return batch


@BOTH
def test_what_was_aborted_and_the_markers_are_not_rows(loops: ModuleType) -> None:

    def written(value: bytes, producer_id: int) -> bytearray:
        return transactional(build([Record(timestamp=1, key=None, value=value)]), producer_id)

    def marker(producer_id: int, *, committed: bool) -> bytearray:
        key = (0).to_bytes(2, "big") + int(committed).to_bytes(2, "big")
        record = Record(timestamp=1, key=key, value=bytes(6))
        return transactional(build([record]), producer_id, control=True)

    sent, offset = bytearray(), 10
    for batch in (
        written(b"a", 1),  # 10: aborted
        written(b"b", 2),  # 11: committed
        marker(1, committed=False),
        marker(2, committed=True),
        written(b"c", 1),  # 14: the same producer again, committed
        marker(1, committed=True),
        build([Record(timestamp=1, key=None, value=b"d")]),  # 16: no transaction
    ):
        stamp(memoryview(batch), base_offset=Offset(offset), leader_epoch=LeaderEpoch(0))
        sent += batch
        offset += 1
    decoded, next_offset = Decoder((Column.VALUE, Column.OFFSET), topic="t", partition=0, loops=loops).decode(
        memoryview(sent), Wanted(), [Aborted(1, 10)]
    )
    assert rows_of(decoded) == [(b"b", 11), (b"c", 14), (b"d", 16)]
    assert next_offset == 17


@BOTH
def test_a_time_that_fits_no_column_does_not_become_another_one(loops: ModuleType) -> None:
    nanoseconds = 1_790_000_000_000_000_000
    fetched = fetched_from([([Record(timestamp=nanoseconds, key=None, value=b"x", headers=())], Codec.NONE)])
    decoded, _ = Decoder((Column.TIMESTAMP,), topic="orders", partition=0, loops=loops).decode(
        fetched, Wanted()
    )
    assert decoded.column(0).cast(pa.int64()).to_pylist() == [2**63 // 1000 * 1000]


def test_large_rows_are_handed_on_in_slices_that_fit() -> None:
    small = pa.record_batch({"value": pa.array([b"x"] * (ROWS_PER_BATCH_MAX * 2 + 1))})
    assert [each.num_rows for each in in_slices(small)] == [ROWS_PER_BATCH_MAX, ROWS_PER_BATCH_MAX, 1]
    large = pa.record_batch({"value": pa.array([bytes(BYTES_PER_BATCH_MAX // 4)] * 10)})
    slices = list(in_slices(large))
    assert max(each.nbytes for each in slices) <= BYTES_PER_BATCH_MAX
    assert sum(each.num_rows for each in slices) == 10
    giant = pa.record_batch({"value": pa.array([bytes(BYTES_PER_BATCH_MAX * 2)] * 2)})
    assert [each.num_rows for each in in_slices(giant)] == [1, 1]
    assert list(in_slices(small.slice(0, 0))) == []
