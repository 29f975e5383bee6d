"""Which rows come too late for their window, told from the row alone and without Spark."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.spark.pipelines.late_rows import Windows, windows_of

MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("sql", "windows"),
    [
        ("SELECT count(*) FROM t GROUP BY window(at, '1 minute')", Windows("at", MINUTE)),
        ("SELECT count(*) FROM t GROUP BY WINDOW ( `at` , '5  minutes' ), item", Windows("at", 5 * MINUTE)),
        (
            "SELECT window(at, '1 hour').start, 1 FROM t GROUP BY window(at, '1 hour')",
            Windows("at", 60 * MINUTE),
        ),
        (
            "SELECT 1 FROM t GROUP BY window(at, '1 hour', '60 minutes', '15 minutes')",
            Windows("at", 60 * MINUTE, 15 * MINUTE),
        ),
        ("SELECT 1 FROM t GROUP BY window(at, '1 hour', '5 minutes')", None),  # they overlap
        ("SELECT 1 FROM t GROUP BY window(at, '1 month')", None),  # not all of one length
        ("SELECT 1 FROM t GROUP BY window(at, INTERVAL 1 HOUR)", None),
        ("SELECT 1 FROM t GROUP BY window(made, '1 hour')", None),  # not the event time
        ("SELECT 1 FROM t GROUP BY session_window(at, '1 hour')", None),
        ("SELECT 1 FROM t GROUP BY window(at, '1 hour'), window(at, '1 day')", None),
        ("SELECT 1 FROM t JOIN u ON t.a = u.a GROUP BY window(at, '1 hour')", None),
        ("SELECT at FROM t", None),
    ],
)
def test_windows_that_follow_each_other_are_found_in_the_query(sql: str, windows: Windows | None) -> None:
    assert windows_of(sql, "at") == windows


@given(
    st.integers(-(10**15), 10**15),
    st.integers(1, 10**10),
    st.integers(0, 10**10),
    st.integers(-(10**12), 10**12),
)
def test_a_row_is_late_when_its_window_has_ended_and_not_before(
    time_us: int, length_us: int, start_us: int, watermark_ms: int
) -> None:
    windows = Windows("at", length_us, start_us)
    number = (time_us - start_us) // length_us
    first, end = start_us + number * length_us, start_us + (number + 1) * length_us
    assert first <= time_us < end
    assert bool(windows.are_over(np.array([time_us]), watermark_ms)[0]) is (end <= watermark_ms * 1000)
