"""A directory that holds partitions, and who makes durable what happens there."""

from collections.abc import Callable, Coroutine, Iterator

from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.partitions.checkpoint_saving import CheckpointSaving
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.broker.partitions.room import Room
from ropewalk.log.directory import DataDirectory


class Home:
    def __init__(self, directory: DataDirectory, pool: Pool, clock: Clock) -> None:
        self.directory = directory
        self.room = Room(directory, pool)
        self.commits = GroupCommit(directory.storage.disk, pool, clock)
        self.log_starts = CheckpointSaving(directory.take_log_starts, pool)
        self.recovery_points = CheckpointSaving(directory.take_recovery_points, pool)
        self.high_watermarks = CheckpointSaving(directory.take_high_watermarks, pool)
        self.unsynced = CheckpointSaving(directory.take_unsynced, pool)

    def works(self) -> Iterator[tuple[str, Callable[[], Coroutine[object, object, None]]]]:
        """What must run while anything is written here, by name."""
        if self.directory.storage.reserve.is_kept:
            yield "room on the disk", self.room.run
        yield "group commit", self.commits.run
        yield "log starts", self.log_starts.run
        yield "recovery points", self.recovery_points.run
        yield "high watermarks", self.high_watermarks.run
        yield "marks of the page cache", self.unsynced.run

    def stop(self) -> None:
        """Send away whoever still waits; call after the works have been cancelled."""
        for saving in (self.log_starts, self.recovery_points, self.high_watermarks, self.unsynced):
            saving.stop()
