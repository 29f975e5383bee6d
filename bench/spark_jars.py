"""Spark's own Kafka connector and Delta, as jars from Maven Central: for comparison, never for the product.

What a reader could get wrong
    They are fetched one by one, without what they say they need: the connector asks for a token provider of its own version,
    which was never published, so that Spark's `--packages` cannot resolve it. The versions here fit together.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.brokers import CACHE, Unavailable

CONNECTOR: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
DELTA: Final = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")

_PATIENCE_S: Final = 120


def fetch(*artifacts: str) -> str:
    """What `spark.jars` is to be set to; fetched with Maven the first time."""
    return ",".join(str(_fetched(artifact)) for artifact in artifacts)


def _fetched(artifact: str) -> Path:
    _, name, version = artifact.split(":")
    jar = CACHE / "spark" / f"{name}-{version}.jar"
    if jar.exists():
        return jar
    if shutil.which("mvn") is None:
        raise Unavailable(f"{name} is fetched with mvn, which is not on the PATH")
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
    try:
        subprocess.run(
            [*command, f"-DoutputDirectory={jar.parent}"],
            check=True,
            capture_output=True,
            timeout=_PATIENCE_S,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"Maven could not fetch {artifact}: {error}") from None
    return jar
