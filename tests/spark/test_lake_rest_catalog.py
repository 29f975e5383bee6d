"""Tables of Iceberg in a catalog that others serve: Apache Iceberg's own, over REST, where Maven is."""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

import pyspark
from pyiceberg.catalog import load_catalog

from bench.brokers import CACHE
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.table import Commit
from tests.spark.conftest import needs_java
from tests.spark.test_spark_lake_tables import DAY_MS, ZERO, spec, topic_rows, write

pytestmark = [needs_java, pytest.mark.compat, pytest.mark.timeout(400)]

ICEBERG, JETTY = "1.11.0", "12.1.3"
ARTIFACTS = (
    ("org.apache.iceberg", "iceberg-core", ICEBERG, ""),
    ("org.apache.iceberg", "iceberg-core", ICEBERG, "tests"),
    ("org.apache.iceberg", "iceberg-open-api", ICEBERG, "test-fixtures"),
    ("org.eclipse.jetty", "jetty-server", JETTY, ""),
    ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", JETTY, ""),
    ("org.eclipse.jetty.compression", "jetty-compression-server", JETTY, ""),
    ("org.eclipse.jetty.compression", "jetty-compression-gzip", JETTY, ""),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0", ""),
)
FETCHING_S, STARTING_S = 200, 60
DAYS = 20


def pom() -> str:
    """Those with a classifier come alone: what they say that they need is of a build, not of a run."""
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        + (f"<classifier>{classifier}</classifier>{alone}" if classifier else "")
        + "</dependency>"
        for group, name, version, classifier in ARTIFACTS
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>ropewalk</groupId><artifactId>rest</artifactId>"
        f"<version>1</version><dependencies>{wanted}</dependencies></project>"
    )


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = CACHE / "iceberg-rest"
    if directory.exists():
        return directory
    if shutil.which("mvn") is None:
        pytest.skip("optional: Iceberg's catalog is fetched with mvn, which is not on the PATH")
    described = tmp_path_factory.mktemp("rest") / "pom.xml"
    described.write_text(pom())
    making = directory.with_name(f"iceberg-rest.{os.getpid()}")
    command = ["mvn", "-q", "-B", "-f", str(described), "dependency:copy-dependencies"]
    try:
        subprocess.run(
            [*command, f"-DoutputDirectory={making}"], check=True, capture_output=True, timeout=FETCHING_S
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"optional: Maven could not fetch Iceberg's catalog: {error}")
    making.rename(directory)
    return directory


@pytest.fixture
def catalog(jars: Path, tmp_path: Path) -> Iterator[str]:
    """Its address. The port is one that was free a moment ago: the server shares a port with others without a word."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    hadoop = Path(pyspark.__file__).parent / "jars"
    classes = os.pathsep.join([f"{jars}/*", *map(str, hadoop.glob("hadoop-client-*.jar"))])
    settings = {
        "CATALOG_URI": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "CATALOG_WAREHOUSE": str(tmp_path / "warehouse"),
        "CATALOG_REST_PORT": str(port),
    }
    server = subprocess.Popen(
        ["java", "-Xmx256m", "-cp", classes, "org.apache.iceberg.rest.RESTCatalogServer"],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/v1/config", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def wait_for(address: str, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + STARTING_S
    while not is_served(address):
        assert server.poll() is None, "the catalog has ended"
        assert time.monotonic() < until, f"nobody answers at {address}"
        time.sleep(0.1)


def is_served(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except (urllib.error.URLError, TimeoutError):
        return False


def test_a_catalog_over_rest_has_every_row_and_a_time_filter_plans_few_files(
    catalog: str, tmp_path: Path
) -> None:
    named = {"type": "rest", "uri": catalog}
    wanted = spec(tmp_path / "orders", catalog={**named, "table": "sales.orders"})
    for day in range(DAYS):
        table = open_table("iceberg", wanted)
        rows = topic_rows(day * 10, 10, start_ms=day * DAY_MS)
        table.commit(Commit(write(table, rows), {ZERO: day * 10 + 10}, {"batch": str(day)}))
    assert open_table("iceberg", wanted).next_offsets([ZERO]) == {ZERO: DAYS * 10}

    read = load_catalog("reader", **named).load_table("sales.orders")
    found = read.scan().to_arrow().sort_by("offset")
    assert found["offset"].to_pylist() == list(range(DAYS * 10))
    assert found["value"].to_pylist() == [b"v%d" % number for number in range(DAYS * 10)]
    first = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=10)
    chosen = read.scan(
        row_filter=f"timestamp >= '{first.isoformat()}' and timestamp < '{(first + timedelta(days=1)).isoformat()}'"
    )
    assert len(list(read.scan().plan_files())) == DAYS
    assert len(list(chosen.plan_files())) <= 2
