"""What the pages and examples about Spark show is run as it stands, in one session, against the tests' own node."""

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.conftest import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent
ADDRESS = "127.0.0.1:9092"

pytestmark = [pytest.mark.compat, pytest.mark.timeout(240)]


def programs(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def promised(program: str) -> str:
    """What stands behind calls of `print`, or as comments below them."""
    return "".join(f"{line}\n" for line in re.findall(r"^(?:.*print\(.*\)  )?# (.*)$", program, re.MULTILINE))


def carried_out(program: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "page", "exec"), names)
    return printed.getvalue()


def test_the_page_of_source_and_sink(spark: "SparkSession", node: Node) -> None:
    names: dict[str, Any] = {}
    shown = programs(ROOT / "docs/guides/spark.md")
    assert len(shown) >= 5
    for program in shown:
        assert carried_out(program.replace(ADDRESS, node.bootstrap), names) == promised(program)
    assert names["spark"] is spark
