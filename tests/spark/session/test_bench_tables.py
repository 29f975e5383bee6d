"""A slice of `bench/tables`: what it says of tables is so, and what it complains of is what is wrong."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from msgspec import structs
from pyspark.sql import SparkSession

from bench.table_health import INTERVAL_S, JOBS, Health, grow, late_s, missed
from tests.spark.conftest import Node

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", ["archive-delta", "transform-iceberg"])
def test_a_table_is_looked_at_as_it_grows(spark: SparkSession, node: Node, name: str, tmp_path: Path) -> None:
    found = grow(spark, node.bootstrap, f"grown-{name}", JOBS[name], tmp_path, [1, 3])
    assert [each.batches for each in found] == [1, 3]
    assert [each.files_in_a_directory for each in found] == [1, 3]
    assert all(each.metadata_bytes > 1000 and each.commit_s > 0 for each in found)
    assert [each.unnamed_files for each in found] == [0, 0]


def test_what_is_out_of_bounds_is_told() -> None:
    good = Health(100, 30, 1000, 1.0, 0)
    assert missed([good, good, structs.replace(good, metadata_bytes=1500, commit_s=1.5)]) == []
    for change in (
        {"files_in_a_directory": 31},
        {"metadata_bytes": 1501},
        {"commit_s": 1.6},
        {"unnamed_files": 1},
    ):
        assert len(missed([good, good, structs.replace(good, **change)])) == 1, change


def test_a_batch_is_late_by_what_is_more_than_an_interval_after_the_one_before() -> None:
    assert late_s({7: 100.0}) == 0
    assert late_s({8: 100.0 + INTERVAL_S, 7: 100.0, 9: 102.5 + 2 * INTERVAL_S}) == 2.5
