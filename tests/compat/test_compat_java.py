"""Kafka's own client, where Java and Maven are: its console producer, and a consumer by partition.

The jars are fetched once, into the project's cache. Without Java the clients of the other tests speak for it, so
its absence does not turn `./test` red; it is listed there.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compat.clients import Confluent, Message

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

JAVA = Path(__file__).parent / "java"
CACHE = Path(__file__).parents[2] / ".cache" / "java"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def tools() -> str:
    """The class path of the console tools."""
    return _fetch("kafka-tools", "4.3.1")


@pytest.fixture(scope="module")
def consumer() -> str:
    """The class path of our small consumer on the newest client."""
    jars = _fetch("kafka-clients", "4.4.0")
    classes = CACHE / "classes"
    subprocess.run(["javac", "-cp", jars, "-d", classes, JAVA / "ReadPartition.java"], check=True)
    return f"{classes}:{jars}"


def _fetch(artifact: str, version: str) -> str:
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"optional: {program} is missing, so Kafka's own client was not tried")
    jars = CACHE / f"{artifact}-{version}"
    if not jars.exists():
        what = [
            f"-Dartifact={artifact}",
            f"-Dversion={version}",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={jars}",
        ]
        command = ["mvn", "-q", "-B", "-f", str(JAVA / "pom.xml"), "dependency:copy-dependencies", *what]
        if subprocess.run(command, capture_output=True).returncode:
            shutil.rmtree(jars, ignore_errors=True)
            pytest.skip("optional: Maven could not fetch Kafka's own client, so it was not tried")
    return f"{jars}/*"


def test_the_console_producer_writes_what_other_clients_read(tools: str, bootstrap: str, topic: str) -> None:
    lines = [b"strand %d" % number for number in range(500)]
    to_topic = ("--bootstrap-server", bootstrap, "--topic", topic)
    _java(tools, "org.apache.kafka.tools.ConsoleProducer", *to_topic, stdin=b"\n".join(lines))
    received = Confluent(bootstrap).consume(topic, offset=0, count=len(lines))
    assert [(message.offset, message.value) for message in received] == list(enumerate(lines))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_java_consumer_reads_a_partition_from_the_middle_of_a_batch(
    consumer: str, bootstrap: str, topic: str, codec: str
) -> None:
    messages = [Message(b"strand %d" % number, b"%d" % number) for number in range(500)]
    Confluent(bootstrap).produce(topic, messages, codec=codec)
    printed = _java(consumer, "ReadPartition", bootstrap, topic, "123", "377")
    assert printed.splitlines() == [f"{number}\t{number}\tstrand {number}" for number in range(123, 500)]


def test_the_java_tool_creates_lists_and_describes_a_topic(tools: str, bootstrap: str, topic: str) -> None:
    tool = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap)
    _java(tools, *tool, "--create", "--topic", topic, "--partitions", "3")
    assert topic in _java(tools, *tool, "--list").splitlines()
    assert "PartitionCount: 3" in _java(tools, *tool, "--describe", "--topic", topic)


def _java(class_path: str, *arguments: str, stdin: bytes = b"") -> str:
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
