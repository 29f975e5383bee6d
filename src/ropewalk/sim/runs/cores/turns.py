"""Two replicas that lead in turns, each while the other is away, and that write what nobody else gets.

Both then hold records of several epochs that the other has never heard of, with epochs of the other in between. Where histories
part like that a follower finds out epoch by epoch: it cuts its log, asks again, and has to cut it once more.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Partition
from ropewalk.sim.runs.cores.machine import Key
from ropewalk.sim.runs.cores.network import CLIENTS
from ropewalk.sim.runs.cores.process import Process, Surroundings
from ropewalk.sim.runs.cores.replica_log import NOBODY
from ropewalk.sim.runs.cores.written import Produced, Write

STEP_US: Final = 100_000
PATIENCE_STEPS: Final = 120
"""For somebody to be elected: sessions end within that time."""
TURN_COUNT: Final = 4
FIRST_VALUE: Final = 1_000_000_000
"""Far above those of all other clients: each value is written once."""
ADDRESS: Final = CLIENTS + 999
"""Where nobody else is."""


class Turns:
    def __init__(self, around: Surroundings, rng: random.Random, start: Callable[[NodeId], None]) -> None:
        self._around = around
        self._rng = rng
        self._start = start
        self._is_playing = False
        self._number = 0
        self.is_over = False
        """Whether nobody is to be taken away any more."""

    def begin(self) -> None:
        """With some partition, if there is one that can do without the node that keeps the metadata. One at a time."""
        found = [
            ((topic.topic_id, partition.index), partition)
            for topic in self._around.home.image.topics.values()
            for partition in topic.partitions
            if partition.leader is not None
            and len(partition.isr) > 1
            and self._around.home.address not in partition.replicas
        ]
        if found and not self._is_playing:
            self._is_playing = True
            self._go_on(self._play(*self._rng.choice(found)))

    def _go_on(self, story: Iterator[None]) -> None:
        if self.is_over:
            return
        try:
            next(story)
        except StopIteration:
            self._is_playing = False
        else:
            self._around.queue.after(STEP_US, self._go_on, story)

    def _play(self, key: Key, partition: Partition) -> Iterator[None]:
        """Yields where time has to pass."""
        assert partition.leader is not None
        first = partition.leader
        second = self._rng.choice([each for each in partition.isr if each != first])
        for node_id in partition.replicas:  # with too few in sync, whoever leaves may still be elected
            if node_id not in (first, second):
                self._end(node_id)
        yield from self._until(key, lambda facts: {*facts.isr} <= {first, second})
        self._around.network.cut(first, second)
        self._around.network.cut(second, first)
        for turn in range(TURN_COUNT):
            leading, away = (first, second) if turn % 2 == 0 else (second, first)
            if turn:
                self._end(away)
                self._start(leading)
                yield from self._until(key, lambda facts: facts.leader == leading)  # noqa: B023
            for _ in range(self._rng.randrange(4, 12)):
                self._write(key, leading)
                yield
        self._around.network.mend()
        for node_id in partition.replicas:
            self._start(node_id)

    def _until(self, key: Key, condition: Callable[[Partition], bool]) -> Iterator[None]:
        for _ in range(PATIENCE_STEPS):
            facts = self._facts(key)
            if facts is None or condition(facts):
                return
            yield

    def _write(self, key: Key, leading: NodeId) -> None:
        """Wanting nobody's acknowledgement, so that one is enough to take it."""
        self._number += 1
        write = Write(FIRST_VALUE + self._number, 0, NOBODY, -1)
        self._around.call_once(ADDRESS, leading, Process.on_produce, ADDRESS, key, write, _hear)

    def _facts(self, key: Key) -> Partition | None:
        topic = self._around.home.image.topics_by_id.get(key[0])
        return None if topic is None else topic.partitions[key[1]]

    def _end(self, node_id: NodeId) -> None:
        process = self._around.processes.get(node_id)
        if process is not None:
            process.end()


def _hear(_: Produced) -> None:
    """Nobody waits for an answer."""
