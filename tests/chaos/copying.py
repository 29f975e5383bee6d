"""Programs that copy a topic exactly once, killed over and over on a cluster whose nodes are killed too.

    kill    kill -9 of a copier; another takes its place, with the same transactional id
    pause   a copier stands still for longer than its group waits for it, and goes on as if nothing had been
    node    kill -9 of a node, which is started again a little later

In the end everything that was put in is read back, committed records alone: each is there once, and those of a partition in their order.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos.cluster import ClusterProcesses
from tests.chaos.copier import SESSION_MS
from tests.chaos.etcd import EtcdProcesses
from tests.chaos.node import Program

SOURCE: Final = "source"
TARGET: Final = "target"
GROUP: Final = "copiers"
PARTITION_COUNT: Final = 3
SETTINGS: Final = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=1000",
    "offsets.topic.num.partitions=5",
    "transaction.state.log.num.partitions=5",
    "telemetry.interval.ms=0",
)
QUIET: Final = {"log_level": 0}
WITHIN_S: Final = 120.0
FEED_S: Final = 0.02
STUCK_S: Final = 20.0
"""A copier of librdkafka 2.16 may wait for ever in `send_offsets_to_transaction`, whatever time it was given, for a coordinator that was out of the
metadata for a while (confluentinc/librdkafka#5511 and #5456). Whoever supervises such programs starts them again, and so does this one."""
LAST_WORDS_CHARS: Final = 2_000


class CopyTotals(NamedTuple):
    faults: dict[str, int]
    fed: int
    copied: int
    aborts: dict[str, int]
    """What copiers said went wrong."""
    took_s: float
    violations: list[str]

    def __str__(self) -> str:
        faults = ", ".join(f"{count} {kind}" for kind, count in self.faults.items())
        aborts = ", ".join(f"{count} {reason}" for reason, count in self.aborts.items()) or "none"
        return (
            f"{faults} in {self.took_s:.0f} s; {self.fed} records fed, {self.copied} copied; "
            f"trouble of copiers: {aborts}; {len(self.violations)} violations"
        )


class Copier:
    """One of several, each with a transactional id of its own; every other one with `ropewalk`'s own client."""

    def __init__(self, number: int, bootstrap: str, output: Path) -> None:
        self._program = "tests.chaos.library_copier" if number % 2 else "tests.chaos.copier"
        self._arguments = [bootstrap, GROUP, f"copier {number}", SOURCE, TARGET]
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._program, *self._arguments],
                cwd=Path(__file__).parents[2],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(SIGKILL)
            self._process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def restart_if_ended(self) -> None:
        """A fatal error ends it, as it would under any supervisor."""
        if self._process is not None and self._process.poll() is not None:
            self.start()

    def freeze(self) -> None:
        assert self._process is not None, "it was started"
        self._process.send_signal(SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None, "it was started"
        self._process.send_signal(SIGCONT)

    def last_words(self) -> str:
        return self._output.read_text(errors="replace")[-LAST_WORDS_CHARS:]

    def trouble(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for line in self._output.read_text(errors="replace").splitlines():
            kind, _, rest = line.partition(": ")
            if kind == "copy":
                found[rest.split(":", 1)[0]] += 1
        return found


class Feed(threading.Thread):
    """Puts numbers into the source, in turn into its partitions, until it is ended; remembers what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
        self._ended = threading.Event()
        self.acknowledged: list[list[str]] = [[] for _ in range(PARTITION_COUNT)]
        self.pause_s_max = 0.0
        """The longest time between two acknowledgements."""
        self._acknowledged_at = time.monotonic()
        self.failures: list[str] = []

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def run(self) -> None:
        number = 0
        while not self._ended.wait(FEED_S):
            for _ in range(PARTITION_COUNT):
                self._producer.produce(
                    SOURCE, str(number), partition=number % PARTITION_COUNT, on_delivery=self._on_delivery
                )
                number += 1
            self._producer.poll(0)
        if self._producer.flush(WITHIN_S):
            self.failures.append("the feed could not be flushed")

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"the feed was refused: {error}")
        else:
            now = time.monotonic()
            self.pause_s_max = max(self.pause_s_max, now - self._acknowledged_at)
            self._acknowledged_at = now
            self.acknowledged[message.partition() or 0].append((message.value() or b"").decode())


def run(
    kills: int,
    *,
    seed: int = 0,
    etcd: bool = False,
    copier_count: int = 2,
    node_every: int = 5,
    pause_every: int = 8,
    progress: Callable[[str], None] = lambda _: None,
) -> CopyTotals:
    """A copier is killed so many times; every so often one is paused as well, or a node killed."""
    random = Random(seed)
    faults = {"kill": 0, "pause": 0, "node": 0}
    began = time.monotonic()
    with copying_cluster(etcd) as (cluster, scratch), ExitStack() as stack:
        feed = Feed(cluster.bootstrap)
        feed.start()
        copiers = [
            Copier(number, cluster.bootstrap, scratch / f"copier-{number}") for number in range(copier_count)
        ]
        for copier in copiers:
            copier.start()
            stack.callback(copier.kill)
        away: int | None = None
        while faults["kill"] < kills:
            time.sleep(random.uniform(0.3, 2.5))
            random.choice(copiers).restart()
            faults["kill"] += 1
            if away is not None:
                cluster.nodes[away].start()
                away = None
            if faults["kill"] % pause_every == 0:
                _pause(random.choice(copiers), random)
                faults["pause"] += 1
            elif faults["kill"] % node_every == 0:
                cluster.wait_until_healed(SOURCE, PARTITION_COUNT)
                away = random.randrange(1 if cluster.has_local_home else 0, len(cluster.nodes))
                cluster.nodes[away].kill()
                faults["node"] += 1
            for copier in copiers:
                copier.restart_if_ended()
            progress(f"{faults} {feed.count} fed")
        if away is not None:
            cluster.nodes[away].start()
        feed.end()
        try:
            copies = copies_of(cluster.bootstrap, feed.acknowledged, copiers)
        except Exception as error:
            error.add_note(cluster.last_words())
            raise
        trouble = sum((copier.trouble() for copier in copiers), Counter[str]())
        held_loops = [complaint for node in cluster.nodes for complaint in node.held_loops()]
    violations = [*feed.failures, *violations_of(feed.acknowledged, copies), *held_loops]
    copied = sum(map(len, copies))
    return CopyTotals(faults, feed.count, copied, dict(trouble), time.monotonic() - began, violations)


def _pause(copier: Copier, random: Random) -> None:
    copier.freeze()
    time.sleep(SESSION_MS / 1000 * random.uniform(1.2, 3))
    copier.thaw()


@contextmanager
def copying_cluster(etcd: bool, program: Program | None = None) -> Iterator[tuple[ClusterProcesses, Path]]:
    """Three nodes with both topics; `program` is what they are run by at first."""
    in_memory = Path("/dev/shm")
    with ExitStack() as stack:
        place = in_memory if in_memory.is_dir() else None
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="copying-", dir=place)))
        members = stack.enter_context(EtcdProcesses(scratch / "etcd")) if etcd else None
        data = [scratch / f"data-{number}" for number in range(3)]
        cluster = ClusterProcesses(
            data, scratch, etcd=None if members is None else members.endpoints, settings=SETTINGS
        )
        stack.callback(cluster.kill)
        if program is not None:
            for node in cluster.nodes:
                node.program = program
        cluster.start()
        make_topics(cluster, SOURCE, TARGET)
        yield cluster, scratch


def make_topics(cluster: ClusterProcesses, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    made = admin.create_topics([NewTopic(name, PARTITION_COUNT, len(cluster.nodes)) for name in names])
    for each in made.values():
        each.result(WITHIN_S)


def copies_of(bootstrap: str, fed: list[list[str]], copiers: list[Copier]) -> list[list[str]]:
    """What is committed in the target, by partition, once as much is there as was fed; or as much as comes in time."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **QUIET,
        }
    )
    reader.assign([TopicPartition(TARGET, index, 0) for index in range(PARTITION_COUNT)])
    copies: list[list[str]] = [[] for _ in range(PARTITION_COUNT)]
    wanted = sum(map(len, fed))
    deadline = time.monotonic() + WITHIN_S
    stuck_at = time.monotonic() + STUCK_S
    is_quiet = False
    try:
        # When all are there one more look: whatever comes then is there twice.
        while time.monotonic() < deadline and not is_quiet:
            messages = reader.consume(1_000, 1.0)
            is_quiet = not messages and sum(map(len, copies)) >= wanted
            if messages:
                stuck_at = time.monotonic() + STUCK_S
            is_stuck = time.monotonic() > stuck_at
            for copier in copiers:
                if is_stuck:
                    copier.restart()
                else:
                    copier.restart_if_ended()
            if is_stuck:
                stuck_at = time.monotonic() + STUCK_S
            for message in messages:
                if message.error() is None:
                    copies[message.partition() or 0].append((message.value() or b"").decode())
    finally:
        reader.close()
    return copies


def violations_of(fed: list[list[str]], copies: list[list[str]]) -> list[str]:
    found: list[str] = []
    for index, (sources, targets) in enumerate(zip(fed, copies, strict=True)):
        expected = [f"{index}:{offset}:{value}" for offset, value in enumerate(sources)]
        if targets == expected:
            continue
        twice = [value for value, count in Counter(targets).items() if count > 1]
        missing = sorted(set(expected) - set(targets))
        strange = sorted(set(targets) - set(expected))
        found.append(
            f"{TARGET}-{index}: of {len(expected)} {len(missing)} are missing {missing[:5]}, {len(twice)} there more than once {twice[:5]}, "
            f"{len(strange)} unheard of {strange[:5]}"
            + ("" if missing or twice or strange else "; they are out of order")
        )
    return found
