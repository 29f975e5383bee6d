"""The programs of the page about delivery keep what the page promises, killed in the middle or not.

Each is run as it stands there, except that the address of the test's own node takes the place of `127.0.0.1:9092`.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ropewalk import Consumer, Producer, TopicPartition
from ropewalk.testing import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.timeout(240)]

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "delivery.md"
ORDERS = 120
KILLED_AFTER = (1, 40, 30)
"""In each life so many lines are waited for before it is killed."""


TITLES = ("At most once", "At least once", "Exactly once")


@pytest.fixture(scope="module")
def said(address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[int]]:
    """What each program said. They wait for most of their time, so they wait together."""
    paths = [program(title, address, tmp_path_factory.mktemp("program")) for title in TITLES]
    with ThreadPoolExecutor(len(TITLES)) as pool:
        return dict(zip(TITLES, pool.map(lives, paths), strict=True))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=2)
        cluster.create_topic("invoices", partitions=2)
        with Producer(cluster.bootstrap) as producer:
            for number in range(ORDERS):
                producer.send("orders", b"%d" % number, key=b"%d" % number)
        yield cluster.bootstrap


def program(title: str, address: str, directory: Path) -> Path:
    """The page's program under that heading. Lists are short, so that a death falls between several commits."""
    section = PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    (text,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert text.count("enable_auto_commit=False,") == 1
    text = text.replace("127.0.0.1:9092", address)
    text = text.replace("timeout_ms=5000", "timeout_ms=10_000")  # a busy machine is not the end of the orders
    text = text.replace("enable_auto_commit=False,", "enable_auto_commit=False, max_poll_records=10,")
    path = directory / "program.py"
    path.write_text(text)
    return path


def lives(path: Path) -> Counter[int]:
    """What was said in all lives together: some that were killed, and one that came to its end."""
    said: Counter[int] = Counter()
    for killed_after in (*KILLED_AFTER, None):
        process = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for count, line in enumerate(process.stdout, 1):
            if line.endswith("\n"):  # death may fall into the middle of a line: that one was not said
                said[int(line.removeprefix("order "))] += 1
            if count == killed_after:
                process.kill()  # what it has said meanwhile is read to the end all the same
        if process.wait(60) == 0:
            return said
        assert killed_after is not None, "the last life ended badly"
    raise AssertionError("no life came to its end")


def test_at_most_once_says_nothing_twice(said: dict[str, Counter[int]]) -> None:
    assert max(said["At most once"].values()) == 1


def test_at_least_once_leaves_nothing_out(said: dict[str, Counter[int]]) -> None:
    assert sorted(said["At least once"]) == list(range(ORDERS))


def test_exactly_once_writes_every_invoice_once(address: str, said: dict[str, Counter[int]]) -> None:
    assert sorted(said["Exactly once"]) == list(range(ORDERS))
    invoices: Counter[bytes] = Counter()
    with Consumer(address, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        partitions = [TopicPartition("invoices", index) for index in range(2)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any((consumer.position(partition) or 0) < end for partition, end in ends.items()):
            invoices.update(message.value for message in consumer.poll())
    assert invoices == Counter(b"invoice for %d" % number for number in range(ORDERS))
