"""Rounds on a cluster whose disks fill up under load, and are emptied again.

ballast  somebody else takes all that is left on a node's disk, or on all, and gives it back after a while
topic    the same while there is a large topic, which is deleted; the disks have to empty themselves by that alone
records  the same, and the records of that topic are deleted
restart  a node whose disk is full is killed or stopped in order, and starts again: its records are read meanwhile

Producers go on all the while. Each round ends when records are acknowledged again and everything is in sync; whatever others took is given
back only then, unless that is what heals.
"""

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.chaos.load import QUIET
from tests.chaos.rounds import complaints
from tests.chaos.scene import Scene, scene

KINDS = ("ballast", "topic", "records", "restart")
DISK_BYTES = 128 << 20
LARGE_BYTES = 24 << 20
FULL_S_MAX = 6.0
CHECK_EVERY = 5
WITHIN_S = 90.0


class FullTotals(NamedTuple):
    """What a run amounted to. `violations` are complaints; a good run has none."""

    rounds: dict[str, int]
    acknowledged: int
    consumed: int
    healings_s: list[float]
    """From the end of what kept a disk full to the first records that are acknowledged again."""
    violations: list[str]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.rounds.items() if count)
        longest_s = max(self.healings_s, default=0.0)
        return (
            f"{sum(self.rounds.values())} rounds ({kinds}), {self.acknowledged} records acknowledged, "
            f"{self.consumed} consumed, written again after {longest_s:.1f} s at the longest, {len(self.violations)} violations"
        )


def run(
    kinds: Sequence[str],
    rounds: int,
    *,
    seed: int = 0,
    records_per_round: int = 600,
    settings: tuple[str, ...] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> FullTotals:
    """Every kind as often as every other, in any order. Ends with the first round that has a violation. Needs root."""
    random = Random(seed)
    deck: list[str] = []
    settings = ("node.session.timeout.ms=3000", "replica.lag.time.max.ms=3000", *settings)
    with scene(disk_bytes=DISK_BYTES, settings=settings) as playing:
        load = playing.load
        totals = FullTotals(dict.fromkeys(kinds, 0), 0, 0, [], playing.violations)
        filling = Filling(playing, random)
        while sum(totals.rounds.values()) < rounds and not complaints(load):
            deck = deck or random.sample(kinds, len(kinds))
            kind = deck.pop()
            load.grant(2 * records_per_round)
            load.wait_for(random.randrange(1, records_per_round), within_s=WITHIN_S)
            progress(f"{kind} …")
            filling.bring(kind)
            began_s = time.monotonic()
            load.grant(records_per_round)
            load.wait_for(records_per_round, within_s=WITHIN_S)
            totals.healings_s.append(time.monotonic() - began_s)
            playing.wait_until_healed()
            for disk in playing.small:
                disk.empty()
            totals.rounds[kind] += 1
            if sum(totals.rounds.values()) % CHECK_EVERY == 0:
                load.check()
            progress(
                f"round {sum(totals.rounds.values())}: {load.acknowledged_count} acknowledged, {totals.healings_s[-1]:.1f} s"
            )
    return totals._replace(acknowledged=load.acknowledged_count, consumed=load.consumed_count)


class Filling:
    """Each kind, from the first byte that is missing to whatever makes room."""

    def __init__(self, playing: Scene, random: Random) -> None:
        self._playing = playing
        self._cluster = playing.cluster
        self._random = random
        self._count = 0

    def bring(self, kind: str) -> None:
        self._count += 1
        name = f"large-{self._count}"
        if kind in ("topic", "records"):
            self._write(name)
        everybody = list(range(len(self._playing.small)))
        victims = (
            everybody
            if kind in ("topic", "records")
            else self._random.choice([everybody, *([each] for each in everybody)])
        )
        for victim in victims:
            self._playing.small[victim].fill()
        for victim in victims:
            self._cluster.nodes[victim].wait_until_page_says("/metrics", "ropewalk_disk_full 1")
            self._playing.small[victim].fill()
        time.sleep(self._random.uniform(0.5, FULL_S_MAX))
        if kind == "restart":
            for victim in victims:
                self._end(victim)
                self._cluster.nodes[victim].start()
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, **QUIET})
        if kind == "topic":
            self._playing.load.delete_topic(name)
        elif kind == "records":
            (deleted,) = admin.delete_records(
                [TopicPartition(name, 0, OFFSET_END)], request_timeout=30
            ).values()
            deleted.result()
            self._playing.load.topics_made.remove(name)  # it is no longer looked for
        else:
            for victim in victims:
                self._playing.small[victim].empty()

    def _write(self, name: str) -> None:
        self._playing.load.make_topic(name)
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap, **QUIET, "acks": "all"})
        value = self._random.randbytes(200_000)
        for _ in range(LARGE_BYTES // len(value)):
            producer.produce(name, value, partition=0)
            producer.poll(0)
        if producer.flush(60):
            raise RuntimeError(f"{name} could not be written while there was room")

    def _end(self, victim: int) -> None:
        node = self._cluster.nodes[victim]
        if self._random.random() < 0.5:
            node.kill()
        elif (code := node.stop()) != 0:
            raise RuntimeError(f"node {victim} ended with {code} when asked to stop with a full disk")
