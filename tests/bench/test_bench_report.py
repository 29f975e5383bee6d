"""The arithmetic of the comparison: what is divided by what, and when a target counts as met."""

import os
import subprocess
import sys
from subprocess import PIPE

import pytest

from bench.processes import Meter, cpu_seconds, resident_mib
from bench.report import Row, Target, at_least, at_most, compare, markdown


@pytest.mark.parametrize(
    ("target", "ratio", "met"),
    [
        (at_least(1.5), 1.5, True),
        (at_least(1.5), 1.49, False),
        (at_most(0.6), 0.6, True),
        (at_most(0.6), 0.61, False),
    ],
)
def test_a_bound_itself_is_met(target: Target, ratio: float, met: bool) -> None:
    assert target.is_met(ratio) is met


def test_ratios_are_taken_between_neighbouring_repetitions() -> None:
    """The machine was slow in the second repetition, for both: the ratio does not notice."""
    row = Row("produce, MB/s", "Kafka", (400.0, 40.0, 420.0), (200.0, 20.0, 200.0), at_least(2))
    assert row.ratios == (2.0, 2.0, 2.1)
    assert row.cells() == (
        "produce, MB/s",
        "400 [40 – 420]",
        "Kafka",
        "200 [20 – 200]",
        "2 [2 – 2.1]",
        "≥ 2 met",
    )


def test_a_missed_target_says_so() -> None:
    assert Row("latency", "Kafka", (1.0,), (1.0,), at_most(0.5)).cells()[-1] == "≤ 0.5 MISSED"


def test_one_broker_alone_gives_figures_without_ratios() -> None:
    (row,) = compare("produce", "", [{"MB/s": 5.0}], [], {"MB/s": at_least(1.5)})
    assert row.cells() == ("produce, MB/s", "5 [5 – 5]", "", "–", "–", "")


def test_the_table_has_a_line_for_every_row() -> None:
    rows = compare("produce", "Kafka", [{"a": 1.0, "b": 2.0}], [{"a": 1.0, "b": 1.0}], {"a": None, "b": None})
    table = markdown(rows, 0.25, "client 1").splitlines()
    assert "0.25 cores" in table[0]
    assert [line.split(" | ")[0] for line in table[4:]] == ["| produce, a", "| produce, b"]


def test_the_meter_sees_the_work_of_the_process_it_watches() -> None:
    before = cpu_seconds(os.getpid())
    with Meter(os.getpid()) as meter:
        while cpu_seconds(os.getpid()) < before + 0.05:
            pass
    assert meter.broker_cpu_seconds >= 0.03  # /proc counts in steps of 10 ms
    assert meter.seconds > 0
    assert 5 < resident_mib(os.getpid()) < 10_000


def test_what_another_process_has_used_is_told_as_it_tells_itself() -> None:
    program = "import time\nwhile True:\n    print(time.process_time(), flush=True)\n    input()\n"
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = float(process.stdout.readline())
        told = cpu_seconds(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        after = float(process.stdout.readline())
        process.kill()
    assert before <= told <= after
