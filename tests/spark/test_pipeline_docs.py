"""The guide to pipelines says what the code says, and `./run pipeline` adds what it promises."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from ropewalk.spark.pipelines.catalogue import PIPELINES, pipeline
from ropewalk.spark.pipelines.definition import Table, define, parse_file
from ropewalk.spark.pipelines.metrics import METRICS
from tests.spark.test_pipeline_definition import settings_of

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/pipelines.md").read_text()


def test_the_metrics_of_the_guide_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(ropewalk_pipeline\w+)` \| (\w+) \| (.*?) \| (.*) \|$", GUIDE, re.MULTILINE)
    assert rows == [
        (
            metric.name,
            metric.kind.value,
            ", ".join(f"`{label}`" for label in metric.labels if label not in ("pipeline", "kind")),
            metric.help,
        )
        for metric in METRICS
    ]


def test_the_kinds_of_the_guide_are_those_there_are() -> None:
    rows = re.findall(r"^\| \[?`(\w+)`(?:\]\([\w.-]+\))? \| (.*) \|$", GUIDE, re.MULTILINE)
    kinds = [(kind, pipeline(kind).summary) for kind in PIPELINES]
    assert [row for row in rows if not row[0].startswith("ropewalk_")] == kinds


def test_the_file_of_the_guide_is_a_definition() -> None:
    (file,) = re.findall(r"^```toml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    job = define("orders", parse_file(file, "the guide"), Table(), settings_of=settings_of)
    assert job.source["subscribe"] == "orders,returns"
    assert job.source["kafka.request.timeout.ms"] == "60000"
    assert (job.interval, job.once, job.conf) == ("10 seconds", False, {"spark.driver.memory": "2g"})


class Called(Struct):
    arguments: list[str]
    purpose: str


@pytest.mark.parametrize(
    "called",
    [
        Called(["pipeline", "ls"], "spark"),
        Called(["produce", "pipeline"], "run"),
        Called([], "run"),
    ],
    ids=lambda called: " ".join(["./run", *called.arguments]),
)
def test_run_asks_for_the_environment_that_a_command_needs(called: Called, tmp_path: Path) -> None:
    """With everything around the script replaced by what only says how it was called."""
    (tmp_path / "tools").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(ROOT / "run", tmp_path)
    programs = {
        "tools/find-python": f"#!/bin/sh\necho {sys.executable}\n",
        ".venv/bin/ropewalk": '#!/bin/sh\necho "ropewalk $*"\n',
        "tools/environment.py": "import sys\nprint('environment', *sys.argv[1:])\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([tmp_path / "run", *called.arguments], capture_output=True, text=True, check=True)
    expected = " ".join(called.arguments or ["up", "--demo"])
    assert done.stdout == f"environment {called.purpose}\nropewalk {expected}\n"


def test_the_size_is_said_before_it_is_fetched() -> None:
    from tools.environment import ANNOUNCEMENTS

    assert "1.2 GB" in ANNOUNCEMENTS["spark"]
    assert "1.2 GB" in GUIDE
