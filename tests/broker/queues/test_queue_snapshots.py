"""When a queue writes a snapshot: as seldom as the next leader's time allows."""

from typing import cast

import pytest

from ropewalk.base.ids import Offset
from ropewalk.base.limits import (
    QUEUE_SNAPSHOT_DELTA_BYTES,
    QUEUE_SNAPSHOT_DELTA_SHARE,
    QUEUE_SNAPSHOT_LOG_BYTES,
    QUEUE_SNAPSHOT_LOG_FACTOR,
)
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues.loading import Loaded
from ropewalk.broker.queues.snapshots import SnapshotSchedule
from ropewalk.queues.state import QueueState

MIB = 1 << 20


class GrowingPartition:
    """What the schedule asks of one."""

    appended_bytes = 0


def schedule(partition: GrowingPartition) -> SnapshotSchedule:
    return SnapshotSchedule(cast(Partition, partition))  # it asks for nothing else


@pytest.mark.parametrize(
    ("snapshot_bytes", "delta_bytes_max"),
    [
        (0, QUEUE_SNAPSHOT_DELTA_BYTES),
        (MIB, QUEUE_SNAPSHOT_DELTA_BYTES),
        (32 * MIB, 32 * MIB // QUEUE_SNAPSHOT_DELTA_SHARE),
    ],
)
def test_deltas_that_take_long_to_read_bring_a_snapshot_though_the_log_has_hardly_grown(
    snapshot_bytes: int, delta_bytes_max: int
) -> None:
    written = schedule(GrowingPartition())
    written.on_written(snapshot_bytes)
    seen = []
    for size_bytes in (delta_bytes_max - 1, 1):
        written.on_delta(size_bytes)
        seen.append(written.is_due)
    written.on_written(snapshot_bytes)
    assert [*seen, written.is_due] == [False, True, False]


def test_a_new_leader_counts_what_it_has_read() -> None:
    taken_over = schedule(GrowingPartition())
    state = QueueState(0)
    taken_over.begin(Loaded(state, Offset(9), 3 * MIB, MIB, QUEUE_SNAPSHOT_DELTA_BYTES - 1, False, ()))
    assert not taken_over.is_due
    taken_over.on_delta(1)
    assert taken_over.is_due


@pytest.mark.parametrize("snapshot_bytes", [0, 16 * MIB])
def test_a_log_that_grows_brings_a_snapshot(snapshot_bytes: int) -> None:
    partition = GrowingPartition()
    written = schedule(partition)
    written.on_written(snapshot_bytes)
    partition.appended_bytes = max(QUEUE_SNAPSHOT_LOG_BYTES, QUEUE_SNAPSHOT_LOG_FACTOR * snapshot_bytes) - 1
    assert not written.is_due
    partition.appended_bytes += 1
    assert written.is_due
