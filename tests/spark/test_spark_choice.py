"""When a process changes over to the compiled loops."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("numba")

from ropewalk.spark.decoding import kernels, lockstep
from ropewalk.spark.decoding.choice import BYTE_US, RECORD_US, STEP_US, Choice
from ropewalk.spark.patience import PATIENCE_US


def counts(*each: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(each, np.int64)


def test_a_few_records_are_not_worth_loading_anything_for() -> None:
    choice = Choice()
    assert choice.of(counts(), 0) is lockstep
    assert choice.of(counts(3, 1, 7), 500) is lockstep
    assert choice.of(counts(*[10] * 1000), 1 << 20) is lockstep


def test_one_long_batch_is() -> None:
    assert Choice().of(counts(10_000), 1 << 20) is kernels


def test_so_are_long_values() -> None:
    assert Choice().of(counts(*[2] * 8), 256 << 20) is kernels


def test_so_are_many_small_ones_in_the_end_and_it_stays_so() -> None:
    choice = Choice()
    cost_us = STEP_US * 10 + RECORD_US * 20 + BYTE_US * 100
    patience = int(PATIENCE_US // cost_us)
    assert {choice.of(counts(10, 10), 100) for _ in range(patience)} == {lockstep}
    assert choice.of(counts(10, 10), 100) is kernels
    assert choice.of(counts(1), 1) is kernels


A_FEW_RECORDS = """
import sys
from ropewalk.records.record import Record, build
from ropewalk.spark.columns import all_columns
from ropewalk.spark.reading import Decoder, Wanted  # what a task imports

batch = build([Record(timestamp=1, key=b"k", value=b"v", headers=(("h", b"x"),))])
decoder = Decoder(all_columns(with_headers=True), topic="t", partition=0)
assert decoder.decode(memoryview(batch), Wanted())[0].num_rows == 1
print(sorted({"numba", "pandas"} & set(sys.modules)))
"""


ROWS = """
import sys
import numpy as np
import pyarrow as pa
from ropewalk.records.codec import Codec
from ropewalk.spark.columns import Column
from ropewalk.spark.encoding.encoder import encode
from ropewalk.spark.encoding.rows import rows_of
from ropewalk.spark.sink.digest import RowsDigest
from ropewalk.spark.sink.placing import Placing
from ropewalk.spark.sink.transaction import write_once  # what a task imports

offsets = np.arange(0, 30 * COUNT + 1, 30, np.int32)
buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(bytes(30 * COUNT))]
texts = pa.Array.from_buffers(pa.binary(), COUNT, buffers)  # made from Python's objects it would load pandas
columns = {Column.KEY: texts, Column.VALUE: texts}
RowsDigest().add(columns)
rows = rows_of(columns, 0)
partitions = Placing("t", 2, first=0, bytes_each=1000).place(rows)
assert sum(each.record_count for each in encode(rows, partitions, codec=Codec.NONE, batch_bytes=1000, record_bytes_max=1000)) == COUNT
print(sorted({"numba", "pandas"} & set(sys.modules)))
"""


ARCHIVED = """
import sys, tempfile
import numpy as np
import pyarrow as pa
from ropewalk.base.ids import TopicPartition
from ropewalk.records.record import Record, build
from ropewalk.spark.columns import all_columns
from ropewalk.spark.lake.landing import Into, WriteTask
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Target
from ropewalk.spark.numbers import column_of
from ropewalk.spark.ranges import Range
from ropewalk.spark.reading import Decoder, Wanted
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat

batch = build([Record(timestamp=1, key=b"k", value=b"v", headers=(("h", b"x"),))])

class Given:
    def read(self, wanted):
        yield Decoder(all_columns(with_headers=True), topic="t", partition=0).decode(memoryview(batch), Wanted())[0]

with tempfile.TemporaryDirectory() as place:
    task = WriteTask(
        records=Given(),
        pieces=[Range(TopicPartition("t", 0), 0, 1)],
        into=Into(Target(place, ("date",), False), raw_schema("date")),
        letters=None,
        values=ResolvedFormat(ValueFormat("raw")),
        file_bytes_target=1 << 20,
    )
    handed, *_ = task(iter([pa.RecordBatch.from_arrays([column_of(np.zeros(1, np.int64))], ["id"])]))
assert b"date=1970-01-01" in handed["file"][0].as_py()
print(sorted({"numba", "pandas"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        pytest.param(A_FEW_RECORDS, [], id="a few records"),
        pytest.param(ARCHIVED, [], id="a few archived records"),
        pytest.param(ROWS.replace("COUNT", "100"), [], id="a few rows"),
        pytest.param(ROWS.replace("COUNT", "200_000"), ["numba"], id="many rows"),
    ],
)
def test_a_worker_loads_what_is_worth_it(program: str, loaded: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == (str(loaded), 0), done.stderr
