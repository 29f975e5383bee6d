"""A program that copies a topic with nothing but Spark, until it is killed; or as a control, in a way that doubles when it is killed.

    spark_program.py sink|plain-sink|plain-archive MASTER BOOTSTRAP CHECKPOINT SOURCE TARGET OFFSETS_MAX PARTITIONS_MIN TASKS INTERVAL|once

Each copy says which record it is of.
"""

import os
import sys

from pyspark.sql import DataFrame, SparkSession

from ropewalk.spark import fail_points


def main(
    what: str,
    master: str,
    bootstrap: str,
    checkpoint: str,
    source: str,
    target: str,
    offsets_max: str,
    partitions_min: str,
    tasks: str,
    interval: str,
) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    rows = (
        session.readStream.format("ropewalk")
        .options(bootstrap=bootstrap, subscribe=source, startingOffsets="earliest")
        .options(maxOffsetsPerTrigger=offsets_max, minPartitions=partitions_min)
        .load()
        .selectExpr("key", "concat(partition, ' ', offset, ' ', CAST(value AS string)) AS value")
        .repartition(int(tasks), "key")
    )
    writing = rows.writeStream.option("checkpointLocation", checkpoint)
    writing = (
        writing.trigger(availableNow=True) if interval == "once" else writing.trigger(processingTime=interval)
    )
    if what == "plain-archive":

        def append(batch: DataFrame, _number: int) -> None:
            batch.select("value").write.mode("append").parquet(target)
            fail_points.reach("archive committed")

        query = writing.foreachBatch(append).start()
    else:
        writing = writing.format("ropewalk").options(bootstrap=bootstrap, topic=target)
        if what == "sink":
            writing = writing.options(exactlyOnce="true", name=what, tasks=tasks)
        query = writing.start()
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
