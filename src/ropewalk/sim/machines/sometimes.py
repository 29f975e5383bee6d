"""Things that must happen in some run, or the runs prove less than they seem to.

A simulator that never tears a write finds no bug in recovery. Whoever makes one of these things happen
counts it; a set of runs in which one of them never happened has failed.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

EXPECTED: Final = (
    # Clients.
    "a write was acknowledged",
    "a write's outcome stayed unknown",
    "a write was definitely refused",
    "an idempotent batch was sent again",
    "an idempotent batch sent again had been written already",
    "a consumer read records",
    "a consumer was refused damaged records",
    "a consumer read from the start again",
    "records were deleted",
    "a topic was created under fire",
    "a topic was deleted",
    "a topic was made again",
    # Groups.
    "a rebalance was finished",
    "a member's commit was acknowledged",
    "a commit's outcome stayed unknown",
    "a commit of a stale member was refused",
    "a committed offset expired",
    "a member left",
    "a static member came back",
    "a leader was told not to assign",
    "a session expired",
    "a shard was replayed",
    # Housekeeping.
    "a record was gone that a later one of its key superseded",
    "a tombstone was gone after its time",
    "records expired",
    "the power failed in a compaction",
    "the disk ran full in a compaction",
    "a sync failed in a compaction",
    # Processes.
    "the power failed",
    "the power failed within an operation",
    "the power failed while the node was starting",
    "the node was killed",
    "the node was stopped in order",
    "the node died of a failed sync",
    "the node started on a page cache that lies",
    # Disks.
    "a write was torn",
    "unsynced blocks were lost before later ones",
    "unsynced content was lost and its size was not",
    "unsynced names were lost",
    "a rename was lost",
    "a truncation was undone",
    "a sync failed",
    "a sync failed for want of room",
    "a sync failed while the node was stopping",
    "a sync failed that nobody waited for",
    "write-back failed in the background",
    "a write met a full disk",
    "a disk stayed full",
    "a full disk was emptied by deleting a topic",
    "a full disk was emptied by deleting records",
    "a full disk was emptied by retention",
    "there was room again on a full disk",
    "a full disk was read from",
    "a node started with a full disk",
    "a write was short",
    "the disk stalled",
    "durable bytes rotted",
    "a file that can be rebuilt rotted",
    "cached pages were evicted",
    "a segment was closed",
    # Networks and clocks.
    "a connection was reset",
    "a direction was cut",
    "a host was cut off",
    "a connection went silent",
    "the clock jumped forward",
    "the clock jumped back",
    "the clock jumped by days",
)

EXPECTED_OF_KERNEL_SYNCS: Final = (
    "files were synced without a thread",
    "several files were synced without a thread",
    "the kernel took a part of the syncs",
)
"""Of runs in which the machines sync without threads; there they come on top of what a run expects otherwise."""


class Sometimes:
    def __init__(self, expected: Sequence[str] = EXPECTED) -> None:
        self.counts: Counter[str] = Counter()
        self._expected = frozenset((*expected, *EXPECTED_OF_KERNEL_SYNCS))

    def note(self, what: str) -> None:
        assert what in self._expected, what
        self.counts[what] += 1


def never(counts: Counter[str], expected: Sequence[str] = EXPECTED) -> list[str]:
    """What should have happened and did not."""
    return [what for what in expected if not counts[what]]
