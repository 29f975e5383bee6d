"""Whatever rows hold comes out of the batches that they are encoded into, with the compiled loops and without them."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.client.calls.partitioner import murmur2
from ropewalk.client.errors import RecordTooLarge
from ropewalk.records.batch import HEADER_BYTES, decode_header, stamp, verify_crc
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, decode_records
from ropewalk.spark.columns import Column
from ropewalk.spark.decoding.decoder import Decoder
from ropewalk.spark.decoding.records_found import Wanted
from ropewalk.spark.encoding import encoder as encoding
from ropewalk.spark.encoding import kernels, plain
from ropewalk.spark.encoding.encoder import EncodedBatch, encode
from ropewalk.spark.encoding.rows import Blobs, rows_of
from ropewalk.spark.refusals import WrongUse

BOTH = pytest.mark.parametrize("loops", [kernels, plain], ids=["compiled", "plain"])

_blobs = st.none() | st.binary(max_size=9) | st.just(bytes(200))
_headers = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3)
_rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4_000_000_000_000), _blobs, _blobs, _headers),
    min_size=1,
    max_size=30,
)
Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def columns_of(rows: Sequence[Row]) -> dict[Column, pa.Array]:
    return {
        Column.KEY: pa.array([row[2] for row in rows], pa.binary()),
        Column.VALUE: pa.array([row[3] for row in rows], pa.binary()),
        Column.TIMESTAMP: pa.array([row[1] * 1000 for row in rows], pa.int64()).cast(
            Column.TIMESTAMP.arrow_type
        ),
        Column.HEADERS: pa.array(
            [[{"key": name, "value": content} for name, content in row[4]] or None for row in rows],
            Column.HEADERS.arrow_type,
        ),
    }


def encoded(
    columns: dict[Column, pa.Array], partitions: list[int], loops: ModuleType, **settings: object
) -> list[EncodedBatch]:
    used = {"codec": Codec.NONE, "batch_bytes": 500, "record_bytes_max": 1 << 20, **settings}
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(encoding, "loops", loops)
        return list(encode(rows_of(columns, 7), np.array(partitions, np.int64), **used))  # type: ignore[arg-type]


@BOTH
@settings(max_examples=60, deadline=None)
@given(rows=_rows, codec=st.sampled_from(Codec), cut=st.integers(0, 3))
def test_batches_hold_the_rows(loops: ModuleType, rows: list[Row], codec: Codec, cut: int) -> None:
    """As our own reader and as the decoder of topics see them; also where the columns are slices of longer ones."""
    cut = min(cut, len(rows) - 1)
    columns = {name: column.slice(cut) for name, column in columns_of(rows).items()}
    rows = rows[cut:]
    batches = encoded(columns, [row[0] for row in rows], loops, codec=codec)
    for partition in range(4):
        wanted = [row for row in rows if row[0] == partition]
        records: list[Record] = []
        sent = bytearray()
        for batch in batches:
            if batch.partition != partition:
                continue
            assert verify_crc(memoryview(batch.encoded))
            header = decode_header(batch.encoded)
            assert (header.record_count, header.codec) == (batch.record_count, codec)
            found = list(decode_records(memoryview(batch.encoded)))
            assert header.max_timestamp == max(record.timestamp for record in found)
            stamp(memoryview(batch.encoded), base_offset=Offset(len(records)), leader_epoch=LeaderEpoch(0))
            records += found
            sent += batch.encoded
        assert [
            (partition, record.timestamp, record.key, record.value, list(record.headers))
            for record in records
        ] == wanted
        decoded, _ = Decoder(
            (Column.KEY, Column.VALUE, Column.HEADERS, Column.OFFSET), topic="t", partition=partition
        ).decode(memoryview(sent), Wanted())
        assert [tuple(row.values()) for row in decoded.to_pylist()] == [
            (row[2], row[3], [{"key": name, "value": content} for name, content in row[4]] or None, offset)
            for offset, row in enumerate(wanted)
        ]


@settings(max_examples=60, deadline=None)
@given(rows=_rows)
def test_both_sets_of_loops_write_the_same(rows: list[Row]) -> None:
    columns, partitions = columns_of(rows), [row[0] for row in rows]
    one, other = (encoded(columns, partitions, loops) for loops in (kernels, plain))
    assert [(each.partition, bytes(each.encoded)) for each in one] == [
        (each.partition, bytes(each.encoded)) for each in other
    ]


@settings(max_examples=100, deadline=None)
@given(keys=st.lists(_blobs, min_size=1, max_size=9))
def test_hashes_are_the_same_everywhere(keys: list[bytes | None]) -> None:
    blobs = Blobs.of(pa.array(keys, pa.binary()))
    expected = [murmur2(key or b"") & 0x7FFFFFFF for key in keys]
    assert kernels.hash_keys(blobs).tolist() == plain.hash_keys(blobs).tolist() == expected
    assert kernels.hash_blobs(blobs).tolist() == plain.hash_blobs(blobs).tolist()


@BOTH
def test_batches_stay_within_their_bound_and_a_large_record_has_its_own(loops: ModuleType) -> None:
    values = [bytes(10)] * 40 + [bytes(3000)] + [bytes(10)] * 40
    batches = encoded({Column.VALUE: pa.array(values, pa.binary())}, [0] * 81, loops)
    assert sum(batch.record_count for batch in batches) == 81
    sizes = [len(batch.encoded) for batch in batches]
    assert [size for size in sizes if size > 500] == [max(sizes)]
    assert next(batch for batch in batches if len(batch.encoded) > 500).record_count == 1
    assert min(sizes) > HEADER_BYTES


@BOTH
def test_text_is_written_as_bytes_and_what_is_missing_is_null_and_now(loops: ModuleType) -> None:
    for kind in (pa.string(), pa.large_string(), pa.large_binary()):
        (batch,) = encoded({Column.VALUE: pa.array(["ä", None], pa.string()).cast(kind)}, [0, 0], loops)
        assert list(decode_records(memoryview(batch.encoded))) == [
            Record(timestamp=7, key=None, value="ä".encode()),
            Record(offset=Offset(1), timestamp=7, key=None, value=None),
        ]


def test_a_record_that_no_request_carries_is_refused_with_its_size() -> None:
    with pytest.raises(RecordTooLarge, match=r"a row of 2036 bytes.*max\.request\.size is 2000"):
        encoded({Column.VALUE: pa.array([bytes(2000)], pa.binary())}, [0], kernels, record_bytes_max=2000)


def test_a_header_without_a_key_is_refused() -> None:
    headers = pa.array([None, [{"key": None, "value": b"x"}]], Column.HEADERS.arrow_type)
    columns = {Column.VALUE: pa.array([b"a", b"b"], pa.binary()), Column.HEADERS: headers}
    with pytest.raises(WrongUse, match="no key"):
        rows_of(columns, 7)


def test_no_rows_are_no_batches() -> None:
    assert encoded({Column.VALUE: pa.array([], pa.binary())}, [], kernels) == []
