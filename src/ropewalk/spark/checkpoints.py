"""What Spark has written down about a batch: where it begins and ends in each partition.

Spark writes `offsets/<batch>` in the checkpoint directory before it runs a batch, and starts the next one there. So within
`foreachBatch` both ends of the batch at hand can be read, and a replay after a crash reads the same.

What a reader could get wrong
    Where the first batch begins is not in there: Spark asks the source for it, again at every replay. Who starts the query has to say it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ropewalk.spark.ranges import Json, Progress, Range, all_between, progress_in
from ropewalk.spark.refusals import DataLost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMAT = "v1"


def batch_ranges(
    spark: "SparkSession",
    checkpoint: str,
    batch_id: int,
    starting: Mapping[str, Mapping[str, int | str]],
    *,
    source: int = 0,
) -> list[Range]:
    """The offsets of one batch in every partition, those that nothing came to included. `starting` is where the query's first
    batch begins, as far as that was said."""
    end = batch_end(spark, checkpoint, batch_id, source=source)
    start = (
        progress_in(starting) if batch_id == 0 else batch_end(spark, checkpoint, batch_id - 1, source=source)
    )
    return all_between(start, end)


def batch_end(spark: "SparkSession", checkpoint: str, batch_id: int, *, source: int = 0) -> Progress:
    path = f"{checkpoint.rstrip('/')}/offsets/{batch_id}"
    return progress_in(parse_offsets(_text(spark, path), path)[source])


def batch_ends(spark: "SparkSession", checkpoint: str, batch_id: int) -> list[Progress]:
    """Of every source of the query, in the order of the plan."""
    path = f"{checkpoint.rstrip('/')}/offsets/{batch_id}"
    return [progress_in(each) for each in parse_offsets(_text(spark, path), path)]


def batch_watermark_ms(spark: "SparkSession", checkpoint: str, batch_id: int) -> int:
    """The event time that the batch takes for over; 0 while there is none."""
    path = f"{checkpoint.rstrip('/')}/offsets/{batch_id}"
    _, metadata, *_ = _text(spark, path).splitlines()
    return int(json.loads(metadata).get("batchWatermarkMs", 0))


def query_id(spark: "SparkSession", checkpoint: str) -> str:
    """The name that Spark gave the query when it made the checkpoint."""
    return str(json.loads(_text(spark, f"{checkpoint.rstrip('/')}/metadata"))["id"])


def parse_offsets(text: str, path: str) -> list[Json]:
    """One for each source of the query, in the order of the plan; empty for one that has nothing yet."""
    version, _, *offsets = text.splitlines()
    if version != _FORMAT:
        raise DataLost(f"{path} is of format {version!r}; this release reads {_FORMAT}")
    return [{} if each == "-" else json.loads(each) for each in offsets]


def local_path(address: str) -> Path | None:
    """The path of what lies in this machine's file system; None for other addresses."""
    parts = urlsplit(address)
    if parts.scheme in ("", "file"):
        return Path(url2pathname(parts.path) if parts.scheme else address)
    return None


def _text(spark: "SparkSession", path: str) -> str:
    local = local_path(path)
    if local is not None:
        return local.read_text()
    rows = spark.read.option("wholetext", "true").text(path).collect()
    return str(rows[0][0])
