"""When a partition of a queue writes a snapshot of its state.

when the log has grown by 64 MiB since the last one, or by eight times its size if that is more
when the deltas since the last one have 256 KiB, or a sixteenth of its size if that is more: they take longer to read than it does
when somebody wants it: deletion of records is held up by the place of the last one, or somebody else is to lead
at the start of its life, which the host sees to
"""

from ropewalk.base.limits import (
    QUEUE_SNAPSHOT_DELTA_BYTES,
    QUEUE_SNAPSHOT_DELTA_SHARE,
    QUEUE_SNAPSHOT_LOG_BYTES,
    QUEUE_SNAPSHOT_LOG_FACTOR,
)
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues.loading import Loaded


class SnapshotSchedule:
    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._counted_from_bytes = 0
        """Of the partition's own count: what was appended since is what the log has grown by."""
        self._size_bytes = 0
        self._delta_bytes = 0
        """Written since the last one."""
        self._is_wanted = False
        self._seen_bytes = 0
        self.has_written = False
        """Whether any state was written since the last snapshot."""

    @property
    def grown_bytes(self) -> int:
        return self._partition.appended_bytes - self._counted_from_bytes

    @property
    def is_due(self) -> bool:
        return (
            self._is_wanted
            or self._delta_bytes
            >= max(QUEUE_SNAPSHOT_DELTA_BYTES, self._size_bytes // QUEUE_SNAPSHOT_DELTA_SHARE)
            or self.grown_bytes >= max(QUEUE_SNAPSHOT_LOG_BYTES, QUEUE_SNAPSHOT_LOG_FACTOR * self._size_bytes)
        )

    @property
    def is_cheap(self) -> bool:
        """Whether it would be a small part of what was written since the last."""
        return self.grown_bytes >= QUEUE_SNAPSHOT_LOG_FACTOR * self._size_bytes

    def is_quiet(self) -> bool:
        """Whether nothing was appended since this was asked last."""
        before, self._seen_bytes = self._seen_bytes, self._partition.appended_bytes
        return before == self._seen_bytes

    def want(self) -> None:
        self._is_wanted = True

    def begin(self, loaded: Loaded) -> None:
        self._counted_from_bytes = self._partition.appended_bytes - loaded.read_bytes
        self._size_bytes = loaded.snapshot_bytes
        self._delta_bytes = loaded.delta_bytes
        self.has_written = not loaded.is_new and loaded.read_bytes > 0
        self._is_wanted = False

    def on_delta(self, size_bytes: int) -> None:
        self._delta_bytes += size_bytes
        self.has_written = True

    def on_written(self, size_bytes: int) -> None:
        self._counted_from_bytes = self._partition.appended_bytes
        self._size_bytes = size_bytes
        self._delta_bytes = 0
        self._is_wanted = False
        self.has_written = False
