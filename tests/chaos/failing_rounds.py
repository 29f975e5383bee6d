"""Rounds on a disk whose write-back fails: the node ends of it, nothing acknowledged is lost, and it goes on when the disk does.

Every round the device stops taking new blocks while producers write and topics are made. In most rounds the node is left to
find out; in every third it is asked to stop at that moment. Then the device is mended. Where the file system allows it
the node is started on the page cache as it is, which shows more than the disk has, and only then all is read from the disk.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos.failing_mount import FailingMount
from tests.chaos.load import PARTITION_COUNT, QUIET, TOPIC, Load
from tests.chaos.node import NodeProcess
from tests.chaos.rounds import complaints

ENDED_WITHIN_S = 60.0
TOPICS_BESIDE = 3
STOP_EVERY = 3


class Totals(NamedTuple):
    rounds: int
    acknowledged: int
    consumed: int
    died: int
    """Rounds in which the node found out by itself, and ended."""
    stops_refused: int
    """Rounds in which it was asked to stop, and said that it could not do so in order."""
    started_on_lies: int
    """Rounds in which it was started again before the page cache was dropped."""
    end_median_s: float
    violations: list[str]

    def __str__(self) -> str:
        return (
            f"failing disk: {self.rounds} rounds, {self.acknowledged} records acknowledged, {self.consumed} consumed, "
            f"the node ended by itself {self.died} times (median {self.end_median_s:.2f} s), "
            f"could not stop in order {self.stops_refused} times, started on a page cache that lies {self.started_on_lies} times, "
            f"{len(self.violations)} violations"
        )


def run(
    rounds: int,
    *,
    seed: int = 0,
    records_per_round: int = 600,
    progress: Callable[[str], None] = lambda _: None,
) -> Totals:
    """Stops at the first round with a violation."""
    random = Random(seed)
    died = stops_refused = started_on_lies = completed = 0
    ends_s: list[float] = []
    violations: list[str] = []
    with tempfile.TemporaryDirectory(prefix="failing-") as scratch, FailingMount(Path(scratch)) as mount:
        node = NodeProcess(mount.path / "data", Path(scratch))
        node.start()
        load = Load(node.address)
        load.make_topic(TOPIC, PARTITION_COUNT)
        try:
            with load.running():
                while completed < rounds and not complaints(load) and not violations:
                    load.grant(2 * records_per_round)
                    load.wait_for(random.randrange(1, records_per_round), within_s=60)
                    began_s = time.monotonic()
                    with _topics_being_made(node.address, completed):
                        mount.fail()
                        load.grant(records_per_round)
                        if completed % STOP_EVERY == STOP_EVERY - 1:
                            code = node.stop()
                            stops_refused += code == 1
                        else:
                            code = _wait_for_end(node)
                            died += code == 1
                            ends_s.append(time.monotonic() - began_s)
                    if code not in (0, 1) or (code == 0 and completed % STOP_EVERY != STOP_EVERY - 1):
                        violations.append(
                            f"round {completed}: the node ended with {code}: {node.last_words()}"
                        )
                        break
                    if mount.heal():
                        started_on_lies += _work_on(node, load, records_per_round // 4)
                    mount.mount_again()
                    node.start()
                    load.check()
                    completed += 1
                    progress(f"round {completed}: exit {code}, {load.acknowledged_count} acknowledged")
            load.check()
        except Exception as error:
            error.add_note(f"the node's last words: {node.last_words()}")
            raise
        finally:
            node.stop()
        return Totals(
            completed,
            load.acknowledged_count,
            load.consumed_count,
            died,
            stops_refused,
            started_on_lies,
            statistics.median(ends_s or [0.0]),
            [*violations, *complaints(load)],
        )


def _work_on(node: NodeProcess, load: Load, record_count: int) -> bool:
    """Start the node on the page cache as it is and have it acknowledge something, then kill it. False if it does not come to that.

    The file system may yet find out about itself what it has lost, and refuse everything from then on.
    """
    load.grant(record_count)
    try:
        node.start()
        load.wait_for(record_count, within_s=20)
    except RuntimeError:
        if node.is_running or load.failures:
            raise
        return False
    node.kill()
    return True


def _wait_for_end(node: NodeProcess) -> int:
    """The exit code of a node that ends by itself; -1 if it does not."""
    deadline_s = time.monotonic() + ENDED_WITHIN_S
    while node.is_running:
        if time.monotonic() > deadline_s:
            node.kill()
            return -1
        time.sleep(0.01)
    return node.stop()


@contextmanager
def _topics_being_made(address: str, number: int) -> Iterator[None]:
    """Whoever makes topics syncs the file system too, beside the group commit. What becomes of them is no matter."""

    def make() -> None:
        admin = AdminClient({"bootstrap.servers": address, **QUIET})
        for index in range(TOPICS_BESIDE):
            name = f"beside-{number}-{index}"
            with suppress(KafkaException):
                topic = NewTopic(name, num_partitions=3, replication_factor=1)
                admin.create_topics([topic], request_timeout=2)[name].result()

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        thread.join()
