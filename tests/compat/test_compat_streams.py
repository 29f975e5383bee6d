"""Kafka Streams, exactly once, on three nodes of which one is killed: every word is counted once, and every count is there once."""

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.java_tools import class_path_of, java_command
from tests.compat.node_process import NodeProcess
from tests.compat.test_compat_cluster import cluster, wait_until_in_sync

__all__ = ["cluster"]

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(240)]

WORDS = [f"strand{number}" for number in range(30)]
LINES = 600
WORDS_PER_LINE = 5
PARTITION_COUNT = 3
WITHIN_S = 100


def test_words_are_counted_exactly_once(cluster: NodeProcess, tmp_path: Path) -> None:
    path = class_path_of("WordCount", "kafka-streams", "4.3.1")
    bootstrap = ",".join(cluster.ready["kafka"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for made in admin.create_topics(
        [NewTopic(name, PARTITION_COUNT, 3) for name in ("lines", "counts")]
    ).values():
        made.result(WITHIN_S)
    command = java_command(path, "WordCount", bootstrap, "lines", "counts", str(tmp_path / "state"))
    with open(tmp_path / "streams.log", "wb") as log:
        streams = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
    try:
        random = Random(0)
        lines = [" ".join(random.choices(WORDS, k=WORDS_PER_LINE)) for _ in range(LINES)]
        feed(bootstrap, lines[: LINES // 3])
        wait_for_counts(bootstrap, lines[: LINES // 3], tmp_path)
        wait_until_in_sync(admin, ("lines", "counts"))
        os.kill(cluster.ready["pids"][1], signal.SIGKILL)
        feed(bootstrap, lines[LINES // 3 :])
        found = wait_for_counts(bootstrap, lines, tmp_path)
        assert streams.stdin is not None
        streams.stdin.close()
        assert streams.wait(WITHIN_S) == 0
    finally:
        streams.kill()
        streams.wait()
    expected = Counter(word for line in lines for word in line.split())
    assert found == {word: list(range(1, count + 1)) for word, count in expected.items()}


def feed(bootstrap: str, lines: list[str]) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    )
    for number, line in enumerate(lines):
        producer.produce("lines", line, partition=number % PARTITION_COUNT)
    assert producer.flush(WITHIN_S) == 0


def wait_for_counts(bootstrap: str, lines: list[str], directory: Path) -> dict[str, list[int]]:
    """All counts that are committed, by word, as soon as there are as many as there are words, and none comes after them."""
    wanted = sum(len(line.split()) for line in lines)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader of counts",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("counts", index, 0) for index in range(PARTITION_COUNT)])
    counts: dict[str, list[int]] = {}
    read = 0
    deadline_s = time.monotonic() + WITHIN_S
    try:
        while True:
            messages = [message for message in consumer.consume(1000, 1) if message.error() is None]
            if not messages and read >= wanted:
                return counts
            for message in messages:
                word, count = (message.key() or b"").decode(), int(message.value() or b"0")
                counts.setdefault(word, []).append(count)
            read += len(messages)
            if time.monotonic() > deadline_s:
                log = (directory / "streams.log").read_text()[-3000:]
                raise AssertionError(f"{read} of {wanted} counts after {WITHIN_S} s\n{log}")
    finally:
        consumer.close()
