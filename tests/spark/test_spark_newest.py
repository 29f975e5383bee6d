"""The newest PySpark that the extra allows reads, archives and transforms as the tests' own does.

It is installed into a directory of its own, once, beside what the tests' environment has: some 490 MB, from the package index.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from packaging.requirements import Requirement

from bench.brokers import CACHE
from tests.spark.conftest import Node, needs_java

pytestmark = [needs_java, pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
INSTALLING_S = 600
COUNT = 40


def allowed() -> str:
    """As the extra says it, without the extras of PySpark: what those need is in the environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = [Requirement(each) for each in project["optional-dependencies"]["spark"]]
    return next(f"{each.name}{each.specifier}" for each in said if each.name == "pyspark")


@pytest.fixture(scope="module")
def newest() -> Path:
    directory = CACHE / "spark" / "newest"
    if directory.exists():
        return directory
    making = directory.with_name(f"newest.{os.getpid()}")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(making), allowed()]
    try:
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=INSTALLING_S)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(making, ignore_errors=True)
        pytest.skip(f"optional: {allowed()} cannot be installed: {error}")
    making.rename(directory)
    return directory


def test_the_newest_pyspark_reads_archives_and_transforms(node: Node, newest: Path, tmp_path: Path) -> None:
    for topic in ("slice", "slice-copied"):
        node.create(topic)
    node.write("slice", COUNT)
    found = subprocess.run(
        [sys.executable, str(ROOT / "tests/spark/newest_slice.py"), node.bootstrap, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{newest}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    told = json.loads(found.stdout.splitlines()[-1])
    assert told.pop("version") in Requirement(allowed()).specifier
    assert told == {"read": COUNT, "archived": COUNT, "copied": COUNT // 2}
