"""What the pages and examples about Spark show is run as it stands, in one session, against the tests' own node."""

import asyncio
import contextlib
import io
import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.conftest import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
ADDRESS = "127.0.0.1:9092"
SCRIPT = ROOT / "examples/spark/orders.py"
NOTEBOOK = ROOT / "examples/spark/orders.ipynb"

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


def test_the_script(
    spark: "SparkSession", node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specification = spec_from_file_location("orders", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    script = module_from_spec(specification)
    specification.loader.exec_module(script)
    script.main(node.bootstrap, spark, tmp_path)
    printed = capsys.readouterr().out
    # A minute is told when an order came that is half a minute younger than its end.
    assert "orders in the lake: 600\n" in printed
    assert f"counts in example_orders_per_minute: {9 * 3}\n" in printed
    assert re.search(r"rope *\| *200\|", printed)


def test_the_notebook(spark: "SparkSession") -> None:
    """Cell by cell, with a running event loop in the thread as there is in a notebook."""
    cells = [
        "".join(cell["source"])
        for cell in json.loads(NOTEBOOK.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    assert cells[-1].startswith("spark.stop()\n")
    cells[-1] = cells[-1].removeprefix("spark.stop()\n")  # it is the session of all tests
    names: dict[str, Any] = {}

    async def in_a_notebook(cells: list[str]) -> None:
        for cell in cells:
            carried_out(cell, names)

    asyncio.run(in_a_notebook(cells[:-1]))
    assert names["spark"] is spark
    assert names["DeltaTable"](names["lake"]).to_pyarrow_table().num_rows == 600
    told = names["told"].collect()
    assert (len(told), sum(row.orders for row in told)) == (14 * 3, 14 * 60)
    asyncio.run(in_a_notebook(cells[-1:]))
