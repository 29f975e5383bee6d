"""What one partition has promised, as somebody sees who looks at every replica at once.

An entry is promised from the moment a leader's high watermark passes it: from then on it may have been read, and a
producer may have been told. `promised` only ever grows, unless the metadata itself records a loss.
"""

from typing import Final

from ropewalk.sim.runs.cores.replica_log import NOBODY, Entry

NEVER: Final = -1


class Truth:
    __slots__ = (
        "advancers",
        "dropped_ends",
        "is_loose",
        "loss_epoch",
        "minimums",
        "name",
        "promised",
        "sequences",
        "written",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.promised: list[Entry] = []
        self.written: dict[tuple[int, int], Entry] = {}
        """What a leader wrote, by its epoch and the offset."""
        self.advancers: dict[int, int] = {}
        """Who moved the high watermark in which leader epoch."""
        self.sequences: dict[int, int] = {}
        """The last promised sequence of each idempotent producer."""
        self.is_loose = False
        """By its settings, at some time, a disk or an election may have cost what was promised."""
        self.minimums: dict[int, int] = {}
        """How many must have an entry for it to be promised, by partition epoch."""
        self.dropped_ends: dict[int, int] = {}
        """How far the copies went that nodes have removed, by node."""
        self.loss_epoch = NEVER
        """The newest leader epoch that began with a loss."""

    def begin_after_loss(self, leader_epoch: int, entries: list[Entry]) -> int:
        """`entries` are what the leader has who was elected although some may be missing. It counts from here on.

        Answers how many promised entries are gone.
        """
        self.loss_epoch = leader_epoch
        common = 0
        for mine, theirs in zip(self.promised, entries, strict=False):
            if mine != theirs:
                break
            common += 1
        lost_count = len(self.promised) - common
        del self.promised[common:]
        self.sequences = {}
        for entry in self.promised:
            if entry.producer != NOBODY:
                self.sequences[entry.producer] = entry.sequence
        return lost_count
