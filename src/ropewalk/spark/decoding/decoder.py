"""Record batches as brokers send them → Arrow columns. No Python object is made per record.

    decoder = Decoder(COLUMNS, topic="orders", partition=3)
    rows = decoder.decode(fetched, Wanted(first_offset=120))

What a reader could get wrong
    The bytes of a column that nobody asked for are skipped, not copied: choosing columns is choosing work.
    Text of headers is handed on as it is; what is not UTF-8 there shows when somebody reads it as text.
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Final

import numpy as np
import pyarrow as pa

from ropewalk.base.errors import CorruptBatch
from ropewalk.spark.columns import HEADER_FIELDS, Column
from ropewalk.spark.decoding.bodies import Aborted, Bodies, Bytes, Numbers, open_bodies
from ropewalk.spark.decoding.choice import Choice
from ropewalk.spark.decoding.records_found import HeadersFound, RecordsFound, Wanted

_choice: Final = Choice()
_ARROW_BYTES_MAX: Final = 2**31 - 1
_MICROSECONDS: Final = 1000
_MILLISECONDS_MAX: Final = (2**63 - 1) // _MICROSECONDS


class Decoder:
    """`loops` are for who must have certain ones: the compiled ones, or those of numpy."""

    def __init__(
        self, columns: Iterable[Column], *, topic: str, partition: int, loops: ModuleType | None = None
    ) -> None:
        self._columns = tuple(columns)
        self.schema = pa.schema([(column.value, column.arrow_type) for column in self._columns])
        self._topic = topic
        self._partition = partition
        self._loops = loops

    def decode(
        self, fetched: memoryview, wanted: Wanted, aborted: Iterable[Aborted] = ()
    ) -> tuple[pa.RecordBatch, int | None]:
        """The rows, and the offset to go on at; None where there was no whole batch.

        Raises `CorruptBatch` for bytes that are not what a producer wrote.
        """
        bodies = open_bodies(fetched, aborted)
        loops = self._loops or _choice.of(bodies.counts, len(bodies.data))
        found = loops.find_records(bodies, wanted)
        if isinstance(found, int):
            raise CorruptBatch(
                f"the batch at offset {bodies.base_offsets[found]} does not hold what it claims to"
            )
        arrays = [self._array(column, bodies, found, loops) for column in self._columns]
        if not arrays:
            raise ValueError("a decoder without columns has nothing to do")
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), bodies.end_offset

    def _array(self, column: Column, bodies: Bodies, found: RecordsFound, loops: ModuleType) -> pa.Array:
        count = len(found)
        match column:
            case Column.KEY:
                return _binary(bodies.data, found.key_starts, found.key_lengths, column.arrow_type, loops)
            case Column.VALUE:
                return _binary(bodies.data, found.value_starts, found.value_lengths, column.arrow_type, loops)
            case Column.TOPIC:
                return _repeated(self._topic.encode(), count, column.arrow_type)
            case Column.PARTITION:
                return _fixed(np.full(count, self._partition, np.int32), column.arrow_type)
            case Column.OFFSET:
                return _fixed(found.offsets, column.arrow_type)
            case Column.TIMESTAMP:
                # What does not fit is as far as can be, rather than anywhere: somebody has sent nanoseconds.
                fitting = np.clip(found.timestamps, -_MILLISECONDS_MAX, _MILLISECONDS_MAX)
                return _fixed(fitting * _MICROSECONDS, column.arrow_type)
            case Column.TIMESTAMP_TYPE:
                return _fixed(found.time_types.astype(np.int32), column.arrow_type)
            case Column.HEADERS:
                return _headers(bodies, found, loops)


def _fixed(values: "np.ndarray[tuple[int], np.dtype[np.signedinteger]]", arrow_type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _binary(
    data: Bytes, starts: Numbers, lengths: Numbers, arrow_type: pa.DataType, loops: ModuleType
) -> pa.Array:
    offsets = _offsets(np.maximum(lengths, 0))
    gathered = loops.gather(data, starts, offsets)
    buffers = [_validity(lengths >= 0), pa.py_buffer(offsets), pa.py_buffer(gathered)]
    return pa.Array.from_buffers(arrow_type, len(starts), buffers)


def _repeated(text: bytes, count: int, arrow_type: pa.DataType) -> pa.Array:
    """By hand: Arrow's own scalars load pandas, which takes a worker longer than all else it does at first."""
    offsets = _offsets(np.full(count, len(text), np.int64))
    return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(offsets), pa.py_buffer(text * count)])


def _headers(bodies: Bodies, found: RecordsFound, loops: ModuleType) -> pa.Array:
    headers = loops.find_headers(bodies.data, found)
    if isinstance(headers, int):
        raise CorruptBatch(f"the record at offset {found.offsets[headers]} has headers that do not end in it")
    assert isinstance(headers, HeadersFound)
    key, value = HEADER_FIELDS
    pairs = pa.StructArray.from_arrays(
        [
            _binary(bodies.data, headers.key_starts, headers.key_lengths, key.type, loops),
            _binary(bodies.data, headers.value_starts, headers.value_lengths, value.type, loops),
        ],
        fields=[key, value],
    )
    # A record without headers has null, as it has in Spark's own source.
    offsets = _offsets(found.header_counts)
    buffers = [_validity(found.header_counts > 0), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(Column.HEADERS.arrow_type, len(found), buffers, children=[pairs])


def _offsets(lengths: Numbers) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    ends = np.cumsum(lengths)
    if len(ends) and ends[-1] > _ARROW_BYTES_MAX:
        raise CorruptBatch("one fetch opens to more than an Arrow column holds; fetch less at a time")
    offsets = np.zeros(len(lengths) + 1, np.int32)
    offsets[1:] = ends
    return offsets


def _validity(is_valid: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> pa.Buffer | None:
    return None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
