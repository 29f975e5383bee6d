"""What a job keeps beside Spark's checkpoint, and what it reads of it.

Files are read and written through Spark: a checkpoint may be on any file system that Spark knows, and nowhere near this process.
"""

from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.errors import AnalysisException

from ropewalk.spark.pipelines.beginnings import Kept
from ropewalk.spark.refusals import WrongUse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEPT: Final = "ropewalk"
"""A directory: that is what Spark writes text into. It is whole when it has a file."""


def has_progress(spark: "SparkSession", checkpoint: str) -> bool:
    """Spark has written down at least one batch."""
    return _lines(spark, f"{checkpoint}/offsets") != []


def read_kept(spark: "SparkSession", checkpoint: str) -> Kept | None:
    lines = _lines(spark, f"{checkpoint}/{_KEPT}")
    if not lines:
        return None
    try:
        return msgspec.json.decode(lines[0], type=Kept)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise WrongUse(f"{checkpoint}/{_KEPT} is not what a job has written: {error}") from None


def write_kept(spark: "SparkSession", checkpoint: str, kept: Kept) -> None:
    text = msgspec.json.encode(kept).decode()
    spark.sql("SELECT :kept AS value", args={"kept": text}).write.mode("overwrite").text(
        f"{checkpoint}/{_KEPT}"
    )


def _lines(spark: "SparkSession", path: str) -> list[str]:
    """One, or none where there is nothing."""
    try:
        return [row[0] for row in spark.read.text(path).take(1)]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []
