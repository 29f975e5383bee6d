"""Jobs started from Python: what is refused before Spark is asked for anything, in the words of the command line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ropewalk.spark import archive, transform
from ropewalk.spark.refusals import WrongUse

SESSION: Any = None
"""Nobody gets as far as to use one."""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            {"topics": "orders", "tabel": "delta"}, "archive has no setting 'tabel'", id="no setting"
        ),
        pytest.param({}, "say what to read", id="no topic"),
        pytest.param({"topics": "orders", "table": "hudi"}, "table is 'hudi', must be", id="no such kind"),
        pytest.param({"topics": "orders", "interval": "soon"}, "interval is 'soon'", id="no time"),
        pytest.param({"topics": "orders", "name": "a b"}, "is no name for a job", id="no name"),
        pytest.param({"topics": "orders", "batch_bytes": -1}, "batch_bytes is -1", id="below its least"),
    ],
)
def test_an_archive_is_refused_as_on_the_command_line(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse, match=said):
        archive(SESSION, to=tmp_path, **given)


def test_what_goes_to_a_topic_has_a_name(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="say name="):
        transform(SESSION, sql="SELECT 1", topics="orders", to_topic="more", checkpoint=tmp_path)


def test_importing_the_package_loads_nothing_else() -> None:
    """Each worker of Spark imports it, before it knows what for."""
    program = "import sys, ropewalk.spark; print(sorted({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_name_that_is_not_there_is_told() -> None:
    import ropewalk.spark

    with pytest.raises(AttributeError, match=r"ropewalk\.spark has no archives"):
        _ = ropewalk.spark.archives
