"""A slice of everything on another PySpark than the tests': run as `python newest_slice.py BOOTSTRAP DIRECTORY`, prints what it found as JSON."""

import json
import os
import sys

import pyspark
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ropewalk.spark import archive, transform

TOPIC, COPIED = "slice", "slice-copied"


def main(bootstrap: str, directory: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    address = {"bootstrap": bootstrap}

    def count(topic: str) -> int:
        return int(spark.read.format("ropewalk").options(**address, subscribe=topic).load().count())

    for _ in range(2):  # nothing is there twice
        archive(
            spark, bootstrap=bootstrap, topics=TOPIC, to=f"{directory}/lake", once=True
        ).awaitTermination()
        transform(
            spark,
            name="slice",
            bootstrap=bootstrap,
            topics=TOPIC,
            to_topic=COPIED,
            sql=f"SELECT key, value FROM {TOPIC} WHERE offset % 2 = 0",
            tasks=2,
            checkpoint=f"{directory}/progress",
            once=True,
        ).awaitTermination()
    found = {
        "version": pyspark.__version__,
        "read": count(TOPIC),
        "archived": DeltaTable(f"{directory}/lake").to_pyarrow_table(columns=["offset"]).num_rows,
        "copied": count(COPIED),
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
