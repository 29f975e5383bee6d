"""Compiled loops where nothing can be kept."""

import pytest

pytest.importorskip("numba")

from ropewalk.spark.compiled import compiled

SOURCE = "def double(number):\n    return number * 2\n"


def test_a_loop_that_cannot_be_kept_is_compiled_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Source that is in no file has no place beside it, nor in any cache directory: numba refuses to keep it."""
    names: dict[str, object] = {}
    exec(compile(SOURCE, "<nowhere>", "exec"), names)
    double = names["double"]
    assert callable(double)
    assert compiled(double)(21) == 42
    said = capsys.readouterr()
    assert (
        "NUMBA_CACHE_DIR" in said.out + said.err
    )  # where to depends on who has set the journal up in this process
