"""What opening a log comes to: its parts, and the report of how they were found."""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log.damage import DamagedRange, DamagedRanges
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.places import Places
from ropewalk.log.producers import Producers
from ropewalk.log.segment import Segment

LEADER_EPOCH_MAX: Final = LeaderEpoch(2**31 - 1)


class Recovered(Struct, frozen=True):
    """What opening a log came to; worth a line in the node's log unless `is_clean`."""

    is_clean: bool
    """Closed in order, opened without a scan."""

    start_offset: Offset
    end_offset: Offset
    durable_offset: Offset
    scanned_bytes: int
    cut_bytes: int
    """Bytes above the recovery point that were removed."""

    cut_reason: str
    """Why the first of them was not believed; empty if nothing was cut."""

    damaged: tuple[DamagedRange, ...]


class Contents(Struct):
    """The parts of an opened log."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    places: Places
    damaged: DamagedRanges
    report: Recovered
    compacted_offset: int
    """Below it the log is known to have been compacted."""
