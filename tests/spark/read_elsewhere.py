"""Read a topic in a session on the master or the server that is named, and print what was found: a process of its own, since one
process has one kind of session.

    python -m tests.spark.read_elsewhere (--master M | --remote R) BOOTSTRAP TOPIC
"""

import json
import sys

from pyspark.sql import SparkSession

from tests.spark.spark_daemons import SETTINGS


def main(where: str, address: str, bootstrap: str, topic: str) -> None:
    builder = SparkSession.builder
    if where == "--remote":
        session = builder.remote(address).getOrCreate()
    else:
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.master(address).getOrCreate()
    try:
        frame = session.read.format("ropewalk").option("bootstrap", bootstrap).option("subscribe", topic)
        rows = frame.load().selectExpr("cast(value as string)", "partition", "offset").collect()
        print(json.dumps(sorted(list(row) for row in rows)))
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
