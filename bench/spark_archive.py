"""A topic into a Delta table, partitioned by date: our archive, and what one writes with Spark's own connector and Delta for Spark."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.brokers import Broker
from bench.client_load import LoadFailed
from bench.spark_load import Records

DELTA_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_TIMEOUT_SECONDS: Final = 300


def archive(session: Any, broker: Broker, topic: str, records: Records) -> float:
    """Records per second from the start of the query to the end of its last commit."""
    from ropewalk.spark.pipelines.archive import Archive, ArchiveSettings
    from ropewalk.spark.pipelines.pipeline import Work

    def start(directory: Path) -> Any:
        work = Work(
            spark=session,
            name="bench",
            bootstrap=broker.bootstrap,
            source={"subscribe": topic, "startingOffsets": "earliest"},
            checkpoint=str(directory / "checkpoint"),
            once=True,
            interval="1 second",
            settings=ArchiveSettings(to=str(directory / "table")),
        )
        return Archive.start(work).query

    return _timed(start, records)


def archive_by_connector(session: Any, broker: Broker, topic: str, records: Records) -> float:
    def start(directory: Path) -> Any:
        stream = session.readStream.format("kafka").options(
            **{"kafka.bootstrap.servers": broker.bootstrap},
            subscribe=topic,
            startingOffsets="earliest",
            includeHeaders="true",
        )
        return (
            stream.load()
            .selectExpr("*", "to_date(timestamp) AS date")
            .writeStream.format("delta")
            .partitionBy("date")
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(directory / "table"))
        )

    return _timed(start, records)


def _timed(start: Callable[[Path], Any], records: Records) -> float:
    from deltalake import DeltaTable

    directory = Path(tempfile.mkdtemp(prefix="bench-archive-"))
    try:
        started = time.perf_counter()
        query = start(directory)
        if not query.awaitTermination(_TIMEOUT_SECONDS):
            query.stop()
            raise LoadFailed(f"{records.title} were not archived within {_TIMEOUT_SECONDS} s")
        seconds = time.perf_counter() - started
        count = DeltaTable(str(directory / "table")).to_pyarrow_dataset().count_rows()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if count != records.count:
        raise LoadFailed(f"the table has {count} rows, not {records.count}")
    return records.count / seconds
