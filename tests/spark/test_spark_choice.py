"""When a process changes over to the compiled loops."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("numba")

from ropewalk.spark.decoding import kernels, lockstep
from ropewalk.spark.decoding.choice import BYTE_US, PATIENCE_US, RECORD_US, STEP_US, Choice


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


def test_a_worker_that_sees_a_few_records_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", A_FEW_RECORDS], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
