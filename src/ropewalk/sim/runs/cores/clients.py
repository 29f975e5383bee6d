"""Producers and consumers: they believe some node's image about who leads, and are told what they are told.

A plain write is tried once. An idempotent one is sent again until it is acknowledged, whatever is said meanwhile,
as clients do; the next one waits for it.
"""

import random
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Partition
from ropewalk.sim.runs.cores.machine import Key
from ropewalk.sim.runs.cores.network import CLIENTS
from ropewalk.sim.runs.cores.process import Process, Surroundings
from ropewalk.sim.runs.cores.replica_log import NOBODY, Entry
from ropewalk.sim.runs.cores.written import Produced, Verdict, Write

TIMEOUT_US: Final = 2_000_000
OUT_OF_ORDER_MAX: Final = 30
"""So often in a row means that what came before is lost: the producer begins again under another id."""


class Crowd:
    """What all clients of a run share: numbers that are never given twice, and whether they are still to write."""

    def __init__(self, around: Surroundings, rng: random.Random) -> None:
        self.around, self.rng = around, rng
        self.is_writing = True
        self.operation_count = 0
        self._number = 0

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def pick_partition(self) -> tuple[Key, Partition] | None:
        """A partition as some process sees it, which may be long ago."""
        processes = self.around.processes
        if not processes:
            return None
        image = processes[self.rng.choice(list(processes))].image
        topics = list(image.topics.values())
        if not topics:
            return None
        topic = self.rng.choice(topics)
        partition = self.rng.choice(topic.partitions)
        return (topic.topic_id, partition.index), partition

    def partition_of(self, key: Key) -> Partition | None:
        processes = self.around.processes
        if not processes:
            return None
        topic = processes[self.rng.choice(list(processes))].image.topics_by_id.get(key[0])
        return None if topic is None or len(topic.partitions) <= key[1] else topic.partitions[key[1]]


class Producer:
    """One write at a time."""

    def __init__(self, crowd: Crowd, number: int, *, is_idempotent: bool, pause_us: int) -> None:
        self._crowd = crowd
        self._address = CLIENTS + number
        self._is_idempotent = is_idempotent
        self._pause_us = pause_us
        self._sequences: dict[Key, tuple[int, int]] = {}
        """Own id and last acknowledged sequence by partition."""
        self._key: Key | None = None
        self._write: Write | None = None
        self._attempt = 0
        self._refused_count = 0
        crowd.around.queue.after(crowd.rng.randrange(pause_us), self._begin)

    def _begin(self) -> None:
        crowd = self._crowd
        if not crowd.is_writing:
            return
        picked = crowd.pick_partition()
        if picked is None:
            crowd.around.queue.after(self._pause_us, self._begin)
            return
        self._key = picked[0]
        if self._is_idempotent:
            producer, last = self._sequences.setdefault(self._key, (crowd.next_number(), -1))
            self._write = Write(crowd.next_number(), -1, producer, last + 1)
        else:
            self._write = Write(crowd.next_number(), crowd.rng.choice((-1, -1, -1, 1, 0)), NOBODY, -1)
        crowd.operation_count += 1
        self._send()

    def _send(self) -> None:
        key, write, crowd = self._key, self._write, self._crowd
        if key is None or write is None:
            return
        self._attempt += 1
        partition = crowd.partition_of(key)
        target: NodeId | None = None
        if partition is not None:
            target = partition.leader
            if target is None or crowd.rng.random() < 0.03:
                target = crowd.rng.choice(partition.replicas)
        around = crowd.around
        around.queue.after(TIMEOUT_US, self._on_timeout, self._attempt)
        if target is None:
            return
        attempt = self._attempt

        def reply(produced: Produced) -> None:
            self._on_produced(attempt, produced)

        call = around.call if self._is_idempotent else around.call_once
        call(self._address, target, Process.on_produce, self._address, key, write, reply)

    def _on_timeout(self, attempt: int) -> None:
        self._on_produced(attempt, Produced.unknown("no answer"))

    def _on_produced(self, attempt: int, produced: Produced) -> None:
        if attempt != self._attempt or self._write is None or self._key is None:
            return
        key, write, judge = self._key, self._write, self._crowd.around.judge
        self._attempt += 1  # whatever else comes for it counts for nothing
        if produced.verdict is Verdict.AT:
            judge.on_acknowledged(key, produced.offset, write.value, to_all=write.acks == -1)
            self._crowd.around.trace.note(
                self._crowd.around.queue.now_us, "acked", write.value, produced.offset
            )
        if not self._is_idempotent:
            if produced.verdict is Verdict.REFUSED:
                judge.on_refused(key, write.value)
            elif produced.verdict is Verdict.UNKNOWN:
                self._crowd.around.sometimes.note("a write's outcome stayed unknown")
            self._finish()
        elif produced.verdict is Verdict.AT:
            self._sequences[key] = (write.producer, write.sequence)
            self._refused_count = 0
            self._finish()
        else:
            self._try_again(key, produced)

    def _try_again(self, key: Key, produced: Produced) -> None:
        crowd = self._crowd
        self._refused_count = self._refused_count + 1 if produced.verdict is Verdict.OUT_OF_ORDER else 0
        if not crowd.is_writing or key[0] not in crowd.around.home.image.topics_by_id:
            self._sequences.pop(key, None)
            self._finish()
        elif self._refused_count > OUT_OF_ORDER_MAX:
            self._refused_count = 0
            self._sequences.pop(key, None)
            self._finish()
        else:
            crowd.around.queue.after(crowd.rng.randrange(20_000, 400_000), self._send)

    def _finish(self) -> None:
        self._key = self._write = None
        self._crowd.around.queue.after(
            self._pause_us // 2 + self._crowd.rng.randrange(self._pause_us), self._begin
        )


class Consumer:
    """Reads one partition from its start, at whichever replica; then the next one."""

    def __init__(self, crowd: Crowd, number: int, *, pause_us: int) -> None:
        self._crowd = crowd
        self._address = CLIENTS + number
        self._pause_us = pause_us
        self._key: Key | None = None
        self._position = 0
        self._idle_count = 0
        crowd.around.queue.after(crowd.rng.randrange(pause_us), self._poll)

    def _poll(self) -> None:
        crowd = self._crowd
        crowd.around.queue.after(self._pause_us, self._poll)
        self._idle_count += 1
        if self._key is None or self._idle_count > 20:
            picked = crowd.pick_partition()
            if picked is None:
                return
            self._key, self._position, self._idle_count = picked[0], 0, 0
        partition = crowd.partition_of(self._key)
        if partition is None:
            self._key = None
            return
        target, key = crowd.rng.choice(partition.replicas), self._key

        def reply(offset: int, entries: tuple[Entry, ...]) -> None:
            self._on_read(key, offset, entries)

        crowd.around.call(
            self._address, target, Process.on_consume, self._address, key, self._position, reply
        )

    def _on_read(self, key: Key, offset: int, entries: tuple[Entry, ...]) -> None:
        """An answer that comes late is about another position."""
        if self._key != key or offset != self._position or not entries:
            return
        self._crowd.around.judge.on_read(key, offset, entries)
        self._position += len(entries)
        self._idle_count = 0
        self._crowd.operation_count += 1
