"""One replica's log, as a list: what is written, what of it is on the platter, and what has rotted.

An entry is what a batch is to a real log: who leads when it is written (the epoch), what is in it, and whose it is.
Offsets count entries. `durable_end` is the promise of the last sync; a power cut keeps everything below it and a
part of the rest, as the operating system happened to write it out.
"""

import random
from typing import Final, NamedTuple

from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log.epochs import EpochEnd, LeaderEpochs

NOBODY: Final = -1


class Entry(NamedTuple):
    epoch: int
    value: int
    """Different for every attempt to write, so two entries are the same write exactly if they are equal."""
    producer: int = NOBODY
    sequence: int = -1


class ReplicaLog:
    __slots__ = (
        "cut_count",
        "durable_end",
        "entries",
        "epochs",
        "flushes",
        "high_watermark",
        "last_sequences",
        "loose_end",
        "rotten_at",
    )

    def __init__(self, *, flushes: bool) -> None:
        self.entries: list[Entry] = []
        self.epochs = LeaderEpochs()
        self.cut_count = 0
        """How often it was truncated: a sync that began before says nothing about what was written after."""
        self.durable_end = 0
        self.high_watermark = 0
        """As last checkpointed. Not above `durable_end` of a log that flushes."""
        self.flushes = flushes
        """Whether only what is durable counts (`flush=group`), or all that is written (`flush=os`)."""
        self.loose_end = 0
        """Up to here entries have counted that may not have been durable."""
        self.rotten_at: int | None = None
        """The first entry that will fail its checksum when it is read from the platter."""
        self.last_sequences: dict[int, dict[int, int]] = {}
        """By producer: the offsets of its sequences."""

    @property
    def end(self) -> int:
        return len(self.entries)

    # What the cores of replication look at.

    @property
    def start_offset(self) -> Offset:
        return Offset(0)

    @property
    def end_offset(self) -> Offset:
        return Offset(len(self.entries))

    @property
    def leader_epoch_latest(self) -> LeaderEpoch:
        return LeaderEpoch(self.epochs.latest)

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> EpochEnd | None:
        return self.epochs.end_of(leader_epoch, log_end_offset=len(self.entries))

    @property
    def counted_end(self) -> int:
        """What may be relied on: durable, or with `flush=os` written."""
        return self.durable_end if self.flushes else len(self.entries)

    @property
    def vouched_end(self) -> int:
        """What others were ever told to rely on, durable or not."""
        return max(self.counted_end, self.loose_end)

    def count_all(self) -> None:
        """From here on what is written counts (`flush=os`)."""
        self.flushes = False
        self.loose_end = len(self.entries)

    @property
    def counted_offset(self) -> Offset:
        return Offset(self.durable_end if self.flushes else len(self.entries))

    @property
    def checkpoint(self) -> Offset:
        """The high watermark that a replica begins with."""
        return Offset(min(self.high_watermark, self.counted_end))

    def append(self, entry: Entry) -> int:
        offset = len(self.entries)
        self.epochs.assign(entry.epoch, offset)
        self.entries.append(entry)
        if not self.flushes:
            self.loose_end = len(self.entries)
        if entry.producer != NOBODY:
            self.last_sequences.setdefault(entry.producer, {})[entry.sequence] = offset
        return offset

    def last_sequence(self, producer: int) -> int:
        held = self.last_sequences.get(producer)
        return max(held) if held else -1

    def truncate(self, end: int) -> None:
        if end >= len(self.entries):
            return
        for entry in self.entries[end:]:
            if entry.producer != NOBODY:
                self.last_sequences[entry.producer].pop(entry.sequence, None)
        del self.entries[end:]
        self.cut_count += 1
        self.epochs = LeaderEpochs([(epoch, start) for epoch, start in self.epochs.entries() if start < end])
        self.durable_end = min(self.durable_end, end)
        self.loose_end = min(self.loose_end, end)
        self.high_watermark = min(self.high_watermark, end)
        if self.rotten_at is not None and self.rotten_at >= end:
            self.rotten_at = None

    def lose_power(self, rng: random.Random) -> int:
        """Keep what was durable and a part of the rest; say how much is gone."""
        before = self.end
        if before > self.durable_end:
            self.truncate(rng.randrange(self.durable_end, before + 1))
        return before - self.end
