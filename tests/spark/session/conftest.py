"""One Spark session for all tests of this directory: starting Spark takes longer than they do."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

from tests.spark.quick_java import quick_java  # noqa: E402


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """As bare as Spark comes but for what keeps a test small."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or newer")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", quick_java())
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
