"""What Spark wrote down about a batch, read back."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.checkpoints import batch_ranges, local_path, parse_offsets
from ropewalk.spark.ranges import FROM_THE_START, Range
from ropewalk.spark.refusals import DataLost

NO_SPARK: Any = None


def write(directory: Path, batch_id: int, *sources: str) -> None:
    (directory / "offsets").mkdir(exist_ok=True)
    (directory / "offsets" / str(batch_id)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *sources]))


def test_a_batch_lies_between_two_files(tmp_path: Path) -> None:
    write(tmp_path, 0, '{"t": {"0": 10}}')
    write(tmp_path, 1, '{"t": {"0": 15, "1": 4}}')
    write(tmp_path, 2, '{"t": {"0": 15, "1": 5}}')
    zero, one = TopicPartition("t", 0), TopicPartition("t", 1)
    assert batch_ranges(NO_SPARK, str(tmp_path), 1, {}) == [
        Range(zero, 10, 15),
        Range(one, FROM_THE_START, 4),
    ]
    assert batch_ranges(NO_SPARK, str(tmp_path), 2, {}) == [Range(zero, 15, 15), Range(one, 4, 5)]
    assert batch_ranges(NO_SPARK, f"file://{tmp_path}/", 0, {"t": {"0": 3}}) == [Range(zero, 3, 10)]
    assert batch_ranges(NO_SPARK, str(tmp_path), 0, {}) == [Range(zero, FROM_THE_START, 10)]


def test_several_sources_and_one_without_offsets() -> None:
    assert parse_offsets('v1\n{}\n{"t": {"0": 1}}\n-', "offsets/3") == [{"t": {"0": 1}}, {}]


def test_a_format_that_nobody_knows_is_told() -> None:
    with pytest.raises(DataLost, match="offsets/3 is of format 'v2'"):
        parse_offsets("v2\n{}\n{}", "offsets/3")


def test_addresses_and_paths() -> None:
    assert local_path("/a b/c") == Path("/a b/c")
    assert local_path("file:///a%20b") == Path("/a b")
    assert local_path("s3://bucket/a") is None
