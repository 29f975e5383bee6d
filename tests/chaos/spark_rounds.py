"""Pipelines on Spark that die over and over while records come in, and what they have carried in the end.

    driver     kill -9 of the driver's Python and Java; its workers are left to themselves, and some of them write on later
    executor   kill -9 of a Python worker, and of the whole executor where it is a process of its own
    broker     kill -9 of a node, which is started again a little later

Each comes at any moment, or at one of the places that `ropewalk.spark.fail_points` knows. From one driver to the next something else is
different: nothing; the checkpoint is gone; batches have another size; tasks are cut in another way; other nodes lead.
"""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path
from random import Random
from typing import Final, Generic, NamedTuple, TypeVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos.cluster import ClusterProcesses
from tests.chaos.spark_feed import PARTITION_COUNT, SOURCE, Feed, fed
from tests.chaos.spark_job import Job, JobEnded
from tests.chaos.spark_judge import Verdict, judge, judge_source
from tests.chaos.spark_pipelines import TARGET, Chosen, Killed, Scenery
from tests.spark.s3_server import s3_server

MASTER: Final = "local[2,8]"
"""A task may fail eight times: how often is up to chance here."""
VICTIMS: Final = ("driver", "executor", "broker")
CHANGES: Final = ("nothing", "checkpoint", "batch size", "splitting", "leader")
SETTINGS: Final = (
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=5",
    "transaction.state.log.num.partitions=5",
    "telemetry.interval.ms=0",
    "audit.topic=false",
)
BATCH_SIZES: Final = (400, 1_000, 4_000)
SPLITS: Final = (1, PARTITION_COUNT, 2 * PARTITION_COUNT)
AT_ONCE: Final = 50_000
"""Offsets of a batch when the rest is carried."""
WITHIN_S: Final = 60.0
REFUSED: Final = "Use the checkpoint of that query"
"""What the sink says to a query that it does not know."""
Card = TypeVar("Card")


class SparkTotals(NamedTuple):
    pipeline: str
    kills: Counter[str]
    between: Counter[str]
    """Kills after a commit that Spark did not know of: of drivers as found in the checkpoint and the output; of others by place."""
    changes: Counter[str]
    late: int
    """Workers of dead drivers that went on after the next driver had carried something."""
    ended: Counter[str]
    """Why jobs ended that nobody had killed; they were started again."""
    given: int
    verdict: Verdict
    failures: list[str]
    took_s: float

    def complaints(self) -> list[str]:
        return [*self.failures, *self.verdict.complaints()]

    def __str__(self) -> str:
        ended = "".join(f"; {count} ended by themselves: {why}" for why, count in self.ended.items())
        return (
            f"{self.pipeline}: killed {_counted(self.kills)}; after a commit that Spark did not know of {_counted(self.between)}; "
            f"between drivers {_counted(self.changes)}; {self.late} workers of dead drivers went on later{ended}; "
            f"{self.given} records, {len(self.verdict.lost)} lost, {len(self.verdict.doubled)} doubled, "
            f"{len(self.verdict.strange)} strange, {len(self.verdict.disordered)} out of order, in {self.took_s:.0f} s"
        )


def run(
    pipeline: Callable[[Scenery], Killed],
    kills: int,
    *,
    seed: int = 0,
    node_count: int = 3,
    master: str = MASTER,
    in_s3: bool = False,
    seconds_max: float = inf,
    progress: Callable[[str], None] = lambda _: None,
) -> SparkTotals:
    """Every victim so many times, or as often as time allows. Ends with everything carried, and judged."""
    began = time.monotonic()
    with _scenery(node_count, master, in_s3=in_s3) as (cluster, scenery):
        killed = pipeline(scenery)
        checkpoint = scenery.checkpoint_of(killed.name.partition("-")[0])
        environment = {} if scenery.s3 is None else scenery.s3.environment
        with Job(scenery.scratch, checkpoint, environment) as job:
            attack = Attack(killed, job, cluster, Random(seed), kills, progress)
            with Feed(cluster.bootstrap).running() as feed:
                while attack.is_unfinished and time.monotonic() < began + seconds_max:
                    attack.attempt()
            failures = [*feed.failures, *attack.lose_what_is_needed(), *attack.carry_the_rest()]
        given = fed(cluster.bootstrap)
        failures += judge_source(feed.acknowledged, feed.dropped, given)
        failures += [
            f"the feed has no transaction {fate}" for fate, count in feed.transactions.items() if not count
        ]
        verdict = judge(given, killed.carried())
    return SparkTotals(
        killed.name,
        attack.kills,
        attack.between,
        attack.changes,
        attack.late,
        attack.ended,
        len(given),
        verdict,
        failures,
        time.monotonic() - began,
    )


class Attack:
    def __init__(
        self,
        killed: Killed,
        job: Job,
        cluster: ClusterProcesses,
        random: Random,
        count: int,
        progress: Callable[[str], None],
    ) -> None:
        self.kills = Counter(dict.fromkeys(VICTIMS, 0))
        self.between = Counter(dict.fromkeys(VICTIMS, 0))
        self.changes: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.late = 0
        self._killed = killed
        self._job = job
        self._cluster = cluster
        self._random = random
        self._count = count
        self._progress = progress
        self._chosen = Chosen(BATCH_SIZES[1], SPLITS[1])
        self._is_first = True
        before = [each for each in killed.driver_at if each not in killed.done_at]
        done = [each for each in killed.driver_at if each in killed.done_at]
        somewhere = [*killed.task_at, None]
        goes_on = killed.without_checkpoint == "goes on"
        self._changes = Deck(random, [each for each in CHANGES if goes_on or each != "checkpoint"])
        self._places = {
            "driver": Deck[str | None](random, [*done, *done, *before, None, None]),
            "executor": Deck[str | None](random, somewhere),
            "broker": Deck[str | None](random, [*somewhere, None]),
        }

    @property
    def is_unfinished(self) -> bool:
        return any(self.kills[victim] < self._count for victim in VICTIMS)

    def attempt(self) -> None:
        """One driver from its start to its end."""
        if not self._is_first:
            self._change(self._changes.draw())
        self._is_first = False
        self._job.start(self._killed.command(self._chosen))
        victims = [each for each in VICTIMS[1:] if self.kills[each] < self._count]
        self._random.shuffle(victims)
        try:
            self._job.wait_for_batches()
            if self._job.halts.clear():
                self.late += 1
                self._job.wait_for_batches()
            for victim in victims:
                self._kill(victim)
                self._job.wait_for_batches()
            if self.kills["driver"] < self._count:
                self._kill("driver")
            else:
                self._job.kill_driver()
        except JobEnded as ended:
            self.ended[str(ended)] += 1
            self._progress(f"ended by itself: {ended}")
            self._job.halts.clear()

    def lose_what_is_needed(self) -> list[str]:
        """What cannot go on without its checkpoint has to say so, and goes on when it has it back."""
        if self._killed.without_checkpoint != "refuses":
            return []
        checkpoint = self._job.checkpoint.directory
        elsewhere = checkpoint.with_name("kept aside")
        checkpoint.rename(elsewhere)
        self._job.start(self._killed.command(self._chosen))
        code = self._job.wait_until_ended()
        shutil.rmtree(checkpoint)
        elsewhere.rename(checkpoint)
        self.changes["checkpoint, refused"] += 1
        is_told = code != 0 and REFUSED in self._job.output()
        return [] if is_told else [f"without its checkpoint it ended with {code}: {self._job.last_words()}"]

    def carry_the_rest(self) -> list[str]:
        self._job.halts.clear()
        self._job.start(self._killed.command(Chosen(AT_ONCE, SPLITS[1], once=True)))
        code = self._job.wait_until_ended()
        return [] if code == 0 else [f"the last run ended with {code}: {self._job.last_words()}"]

    def _kill(self, victim: str) -> None:
        place = self._places[victim].draw()
        pid = self._stop_at(place)
        match victim:
            case "executor":
                self._kill_executor(pid)
            case "broker":
                self._kill_broker()
            case _:
                self._job.kill_driver()
        self.kills[victim] += 1
        is_between = place in self._killed.done_at
        if victim == "driver":
            is_between = self._killed.is_ahead(self._job.checkpoint)
        self.between[victim] += is_between
        if victim != "driver" or self._random.random() < 0.5:
            self._job.halts.clear()
        said = "at any moment" if place is None else f"at {place!r}"
        self._progress(
            f"{victim} {self.kills[victim]} {said}{', commit unknown to Spark' if is_between else ''}"
        )

    def _stop_at(self, place: str | None) -> int | None:
        if place is None:
            time.sleep(self._random.uniform(0, 1.5))
            return None
        self._job.halts.arm(place)
        self._job.wait_until(lambda: self._job.halts.waiting(place) is not None, f"nobody comes to {place!r}")
        return self._job.halts.waiting(place)

    def _kill_executor(self, pid: int | None) -> None:
        if pid is None and self._random.random() < 0.5 and self._job.kill_executor(self._random):
            return
        self._job.wait_until(lambda: self._job.kill_worker(self._random, pid), "there is no worker")

    def _kill_broker(self) -> None:
        node = self._random.choice(self._cluster.nodes)
        node.kill()
        self._job.halts.clear()  # whoever waited goes on without it
        time.sleep(self._random.uniform(0, 2))
        node.start()
        self._cluster.wait_until_healed(SOURCE, PARTITION_COUNT)

    def _change(self, change: str) -> None:
        match change:
            case "checkpoint":
                shutil.rmtree(self._job.checkpoint.directory)
            case "batch size":
                sizes = [each for each in BATCH_SIZES if each != self._chosen.offsets_per_trigger_max]
                self._chosen = self._chosen._replace(offsets_per_trigger_max=self._random.choice(sizes))
            case "splitting":
                splits = [each for each in SPLITS if each != self._chosen.partitions_min]
                self._chosen = self._chosen._replace(partitions_min=self._random.choice(splits))
            case "leader":
                self._change_leaders()
        self.changes[change] += 1
        self._progress(f"{change} changed")

    def _change_leaders(self) -> None:
        """A leader is away until others lead; it comes back as a follower. With one node it only comes back."""
        leaders = sorted({leader for leader, _ in self._cluster.leaders(SOURCE).values()})
        leader = self._random.choice([each for each in leaders if each != 0] or leaders)
        node = self._cluster.nodes[leader]
        node.kill()
        if leader != 0:  # who keeps the metadata is not replaced
            self._cluster.wait_for_new_leaders(SOURCE, leader)
        node.start()
        self._cluster.wait_until_healed(SOURCE, PARTITION_COUNT)


class Deck(Generic[Card]):
    """Each card as often as every other, in any order."""

    def __init__(self, random: Random, cards: Sequence[Card]) -> None:
        self._random = random
        self._cards = cards
        self._left: list[Card] = []

    def draw(self) -> Card:
        self._left = self._left or self._random.sample(self._cards, len(self._cards))
        return self._left.pop()


@contextmanager
def _scenery(node_count: int, master: str, *, in_s3: bool) -> Iterator[tuple[ClusterProcesses, Scenery]]:
    in_memory = Path("/dev/shm")
    place = in_memory if in_memory.is_dir() else None
    with tempfile.TemporaryDirectory(
        prefix="spark-kills-", dir=place, ignore_cleanup_errors=True
    ) as directory:
        scratch = Path(directory)
        data = [scratch / f"data-{number}" for number in range(node_count)]
        cluster = ClusterProcesses(data, scratch, settings=SETTINGS)
        try:
            cluster.start()
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
            topics = [
                NewTopic(SOURCE, PARTITION_COUNT, node_count),
                NewTopic(TARGET, PARTITION_COUNT, node_count),
            ]
            for made in admin.create_topics(topics).values():
                made.result(WITHIN_S)
            with s3_server(scratch) if in_s3 else nullcontext() as s3:
                yield cluster, Scenery(cluster.bootstrap, scratch, scratch / "checkpoint", master, s3)
        except Exception as error:
            error.add_note(cluster.last_words())
            raise
        finally:
            cluster.kill()


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "none"
