"""A machine: the disk that outlives processes, and what has befallen it.

What was lost of a replica since its node last registered is kept here (`amnesia`), because that is the physical truth
which membership has to respect: whoever forgot something must be out of ISR and ELR from its next registration on.
"""

import random
from typing import Final, TypeAlias

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.sim.runs.cores.replica_log import ReplicaLog

Key: TypeAlias = tuple[TopicId, int]
"""A partition, by the id of its topic."""

SYNC_US: Final = 400


class Machine:
    __slots__ = (
        "amnesia",
        "amnesia_life",
        "clock_offset_ms",
        "configuration",
        "damaged",
        "directory",
        "is_clean",
        "is_emptied",
        "life",
        "logs",
        "lost_ends",
        "marked",
        "node_id",
        "rack",
        "sync_us",
    )

    def __init__(self, node_id: NodeId, rng: random.Random) -> None:
        self.node_id = node_id
        self.rack = f"rack-{node_id % 3}"
        self.directory: bytes = rng.randbytes(16)
        self.logs: dict[Key, ReplicaLog] = {}
        self.is_clean = True
        """The last process stopped in order, or there was none."""
        self.is_emptied = False
        """Its disk was lost, and no replica on it has been in sync since."""
        self.amnesia: set[Key] = set()
        self.amnesia_life = 0
        """The last process that does not know of it: what it has on its way tells nothing."""
        self.lost_ends: dict[Key, int] = {}
        """How far replicas went that were lost, or lost their end: others were told that they hold it."""
        self.damaged: set[Key] = set()
        """Replicas found damaged of which no registration has told yet. A process that finds them may die before it tells."""
        self.marked: set[Key] = set()
        """Replicas whose entries may count before they are durable: on disk before the first one does."""
        self.configuration: dict[str, str] = {}
        """What the file of its node says of settings that all nodes must agree on."""
        self.clock_offset_ms = 0
        self.sync_us = SYNC_US
        self.life = 0
        """How many processes there have been."""

    def lose_power(self, rng: random.Random) -> int:
        """What was not synced is gone in part; say how many entries. The process must have been ended before."""
        lost_count = 0
        for key, log in self.logs.items():
            vouched_end = log.vouched_end
            lost_count += log.lose_power(rng)
            if log.end < vouched_end:
                self._forget(key, vouched_end)
        return lost_count

    def lose_disk(self, rng: random.Random) -> None:
        for key, log in self.logs.items():
            self._forget(key, log.vouched_end)
        self.logs = {}
        self.marked = set()
        self.damaged = set()
        self.directory = rng.randbytes(16)
        self.is_clean = False
        self.is_emptied = True

    def recover(self, rng: random.Random) -> bool:
        """Open every log for the next process. Whether one turned out to be damaged below what was durable."""
        found = False
        for key, log in self.logs.items():
            if log.rotten_at is not None:
                self._forget(key, log.vouched_end)
                log.truncate(log.rotten_at)
                self.damaged.add(key)
                found = True
            log.durable_end = log.end
            log.flushes = True
            if log.high_watermark:  # the checkpoint is as old as it happens to be
                log.high_watermark = rng.randrange(log.high_watermark // 2, log.high_watermark + 1)
        return found

    def _forget(self, key: Key, end: int) -> None:
        self.lost_ends[key] = max(end, self.lost_ends.get(key, 0))
        self.amnesia.add(key)
        self.amnesia_life = self.life
