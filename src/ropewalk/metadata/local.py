"""The metadata log at home in a directory of one controller node: `log` and `snapshot`.

`Committed` is said only after the frame has been synced. Writes that fail or come up short are cut back before
anybody hears of them. Reading back at start-up:

    a whole frame is taken, acknowledged or not, and synced before anything is built upon it;
    damage with nothing whole behind it is an append that a crash interrupted before it was acknowledged: it is cut;
    damage with a whole frame or commit mark behind it, and records missing in between, hits facts that were
    acknowledged: the node refuses to start and names file and position, because going on would delete topics;
    damage with no record missing hit a commit mark, which a power cut may have lost: it is stepped over.

On a disk that is full nothing can be made. What deletes may use the whole reserve, and everything else a part of it: a controller has to
say that it has taken over, and who is in sync.

A snapshot is switched in first and the log trimmed after it. A crash between the two leaves frames that the
snapshot covers already; they are skipped. Everything in the log is also held in memory: it is trimmed at
`METADATA_LOG_BYTES_MAX`, and tailing it then needs no disk.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import CorruptMetadata, DiskFull, StorageFailed
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import METADATA_LOG_BYTES_MAX
from ropewalk.base.ports import Disk, File, Pool, read_whole, write_atomically
from ropewalk.base.reserve import NoReserve, Purpose, Reserve, is_no_room
from ropewalk.metadata.frames import Frame, encode_frame, find_frame
from ropewalk.metadata.levels import unreadable
from ropewalk.metadata.log import AppendOutcome, Committed, Holder, Raced, Snapshot, Unknown
from ropewalk.metadata.records import (
    BrokerSettingsChanged,
    ClientQuotasChanged,
    MetadataRecord,
    PartitionCreated,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    ScramCredentialRemoved,
    ScramCredentialSet,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
    decode_records,
    encode_records,
)
from ropewalk.metadata.snapshots import decode_snapshot, encode_snapshot
from ropewalk.runtime.bell import NO_WAIT_S, Bell

_CHANGES: Final = (
    TopicSettingsChanged,
    BrokerSettingsChanged,
    ClientQuotasChanged,
    QueueChanged,
    ScramCredentialSet,
    ScramCredentialRemoved,
)
_NOTHING: Final = Snapshot(epoch=0, end_offset=0, facts=())


class Recovery(Struct, frozen=True):
    """What start-up found, for one line in the node's journal."""

    end_offset: int
    cut_bytes: int
    """Bytes of an unacknowledged append that were removed; 0 after a clean stop."""


class LocalMetadataLog:
    """A `MetadataLog` in a file. Open it in a pool; after that only the event loop touches it."""

    def __init__(self, disk: Disk, pool: Pool, directory: str, reserve: Reserve | None = None) -> None:
        """`disk` and `pool` carry out what blocks. Without a `reserve` nothing is kept back. Use `open`."""
        self._disk = disk
        self._reserve = reserve or NoReserve(disk)
        self._pool = pool
        self._path = f"{directory}/log"
        self._snapshot_path = f"{directory}/snapshot"
        self._directory = directory
        self._file: File
        self._size_bytes = 0
        self._snapshot = _NOTHING
        self._records: list[MetadataRecord] = []
        self._records_offset = 0
        self._epoch = 0
        self._broken: str | None = None
        self._is_busy = False
        self._holder: Holder | None = None
        self._bell = Bell()
        self.log_bytes_max = METADATA_LOG_BYTES_MAX
        self.recovery: Recovery

    @classmethod
    def open(
        cls, disk: Disk, pool: Pool, directory: str, reserve: Reserve | None = None
    ) -> "LocalMetadataLog":
        """Blocks. Raises `CorruptMetadata` if acknowledged facts cannot be read back, `UnreadableMetadata` if a newer version wrote them."""
        log = cls(disk, pool, directory, reserve)
        disk.make_directory(directory)
        disk.sync_directory(directory.rpartition("/")[0])
        log._load_snapshot()
        log._load_frames()
        log._begin_epoch()
        return log

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def holder(self) -> Holder | None:
        return self._holder

    @property
    def parted(self) -> None:
        """The file is in nobody else's hands while it is open."""
        return

    @property
    def trouble(self) -> str | None:
        return None if self._is_busy else self._broken

    @property
    def unheard(self) -> str | None:
        return None  # nobody else appends to it

    @property
    def end_offset(self) -> int:
        return self._records_offset + len(self._records)

    @property
    def snapshot_due(self) -> bool:
        return self._size_bytes > self.log_bytes_max and not self._reserve.is_full

    async def run(self) -> None:
        """Nobody else appends: there is nothing to hear."""
        await asyncio.get_running_loop().create_future()

    async def take_over(self, node_id: NodeId, *, expected_epoch: int) -> int | None:
        """The directory is locked, so there is nobody to take over from but oneself."""
        if expected_epoch != (self._holder.epoch if self._holder is not None else 0):
            return None
        self._epoch += 1
        self._holder = Holder(node_id, self._epoch)
        self._bell.ring()
        return self._epoch

    async def append(
        self, records: Sequence[MetadataRecord], *, expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        assert records, "an append without records would read as a commit mark"
        if (expected_epoch, expected_end_offset) != (self._epoch, self.end_offset):
            return Raced(self._epoch, self.end_offset)
        if self._broken is not None:
            return Unknown(self._broken)
        purpose = _purpose_of(records)
        if purpose is None and self._reserve.is_full:
            raise DiskFull(
                f"{self._path}: the disk is full; topics can be deleted, and nothing can be made until there is room"
            )
        frame = encode_frame(
            epoch=self._epoch,
            base_offset=self.end_offset,
            record_count=len(records),
            payload=encode_records(records),
        )
        end_offset = self.end_offset + len(records)
        # Whoever waits may be cancelled while the disk is busy. What is in the file is then not what
        # is in memory, so nothing more is appended until the log has been opened again.
        self._broken = f"{self._path}: an append was abandoned half way"
        self._is_busy = True
        try:
            self._size_bytes = await self._pool.run(self._write, frame, end_offset, purpose)
        except StorageFailed:
            self._broken = None
            raise
        finally:
            self._is_busy = False
        self._disk.syncs.check()
        self._broken = None
        self._records.extend(records)
        self._bell.ring()
        return Committed(end_offset)

    async def snapshot(self) -> Snapshot:
        return self._snapshot

    async def tail(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        return self.heard(start_offset)

    def heard(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        assert start_offset <= self.end_offset, f"{start_offset} is beyond the end at {self.end_offset}"
        if start_offset < self._records_offset:
            return None
        return tuple(self._records[start_offset - self._records_offset :])

    async def news(self, *, end_offset: int, holder_epoch: int, timeout_ms: float) -> None:
        if end_offset >= self.end_offset and holder_epoch == (self._holder.epoch if self._holder else 0):
            await self._bell.wait(timeout_ms)
        else:
            await asyncio.sleep(NO_WAIT_S)

    async def write_snapshot(self, snapshot: Snapshot) -> None:
        assert snapshot.end_offset == self.end_offset, "a snapshot stands for every record there is"
        await self._switch_to(snapshot)

    async def adopt(self, snapshot: Snapshot, *, node_id: NodeId, reign: str) -> None:  # noqa: ARG002  its facts say so
        assert snapshot.end_offset >= self.end_offset, "what is here is a beginning of what comes"
        self._epoch = max(self._epoch, snapshot.epoch)
        self._holder = Holder(node_id, self._epoch)
        await self._switch_to(snapshot)

    def close(self) -> None:
        """The file is closed with the last reference to it."""

    async def _switch_to(self, snapshot: Snapshot) -> None:
        self._broken = f"{self._path}: a snapshot was abandoned half way"
        self._is_busy = True
        try:
            self._file = await self._pool.run(self._trim, snapshot)
        except StorageFailed:
            self._broken = None
            raise
        finally:
            self._is_busy = False
        self._broken = None
        # Whoever is on its way through the records goes on with them: to begin anew with a snapshot of tens of thousands of partitions
        # would hold its loop for long. Those before the last snapshot are for nobody any more.
        del self._records[: self._snapshot.end_offset - self._records_offset]
        self._records_offset, self._snapshot = self._snapshot.end_offset, snapshot
        self._size_bytes = self._file.size()

    def _write(self, frame: bytes, end_offset: int, purpose: Purpose | None) -> int:
        """Runs in the pool. Returns the size of the file."""
        start = self._file.size()
        file = self._file if purpose is None else self._reserve.file_for(self._file, purpose)
        self._append_whole(file, frame, start)
        self._file.sync()
        end = start + len(frame)
        return end + self._append_mark(end_offset, end)

    def _append_mark(self, end_offset: int, start: int) -> int:
        """Leave evidence that everything before `start` was acknowledged. Returns the bytes it took."""
        mark = self._mark(end_offset)
        try:
            self._append_whole(self._file, mark, start)
        except StorageFailed:
            return 0  # The facts are safe; the evidence comes with the next append.
        return len(mark)

    def _mark(self, end_offset: int) -> bytes:
        return encode_frame(epoch=self._epoch, base_offset=end_offset, record_count=0, payload=b"")

    def _append_whole(self, file: File, data: bytes, start: int) -> None:
        """All of `data` at `start`, or nothing of it and `StorageFailed`."""
        try:
            taken = file.append(data)
        except OSError as error:
            file.truncate(start)
            if is_no_room(error):
                self._reserve.on_no_room()
            raise StorageFailed(f"{self._path}: cannot write {len(data)} bytes: {error.strerror}") from error
        if taken < len(data):
            file.truncate(start)
            self._reserve.on_no_room()
            raise StorageFailed(f"{self._path}: {taken} of {len(data)} bytes were written; is the disk full?")

    def _trim(self, snapshot: Snapshot) -> File:
        """Runs in the pool. With a full disk nothing is lost: the log stays as it is, whatever the snapshot covers."""
        try:
            write_atomically(self._disk, self._snapshot_path, encode_snapshot(snapshot))
            write_atomically(self._disk, self._path, self._mark(snapshot.end_offset))
        except OSError as error:
            if not is_no_room(error):
                raise
            raise StorageFailed(f"{self._directory}: no room for a snapshot: {error.strerror}") from error
        return self._disk.open(self._path)

    def _load_snapshot(self) -> None:
        if self._disk.exists(self._snapshot_path):
            self._snapshot = decode_snapshot(self._snapshot_path, read_whole(self._disk, self._snapshot_path))
        self._epoch = self._snapshot.epoch
        self._records_offset = self._snapshot.end_offset

    def _load_frames(self) -> None:
        self._file = self._disk.open(self._path, create=True)
        self._file.hear_former_errors()
        self._file.drop_cached()
        data = self._file.read(0, self._file.size())
        position = 0
        while (frame := find_frame(data, position)) is not None:
            if frame.base_offset > self.end_offset:
                raise CorruptMetadata(
                    f"{self._path} is damaged between bytes {position} and {frame.position}: records "
                    f"{self.end_offset} to {frame.base_offset - 1} are missing; stop every node of the cluster and "
                    "restore the metadata directory from a backup"
                )
            self._take(frame)
            self._epoch = max(self._epoch, frame.epoch)
            position = frame.end_position
        if position < len(data):
            self._file.truncate(position)
        self._size_bytes = position
        self.recovery = Recovery(self.end_offset, len(data) - position)

    def _begin_epoch(self) -> None:
        """Make durable what was read: it may be only in the page cache of a process that was killed.

        If that process ended because a sync failed, the kernel believes the pages to be on disk. Only writing
        them again makes that true.
        """
        data = self._file.read(0, self._size_bytes)
        self._reserve.file_for(self._file, Purpose.GOING_ON).rewrite(0, data)
        self._epoch += 1
        self._size_bytes += self._append_mark(self.end_offset, self._size_bytes)
        self._file.sync()
        self._disk.sync_directory(self._directory)

    def _take(self, frame: Frame) -> None:
        """Add a frame's records, unless it is a mark or the snapshot covers them already."""
        if frame.record_count == 0 or frame.end_offset <= self._records_offset:
            return
        if frame.base_offset != self.end_offset:
            raise CorruptMetadata(
                f"{self._path}: record {frame.base_offset} at byte {frame.position} is there twice, "
                f"expected {self.end_offset}; log and snapshot do not belong together"
            )
        try:
            records = decode_records(frame.payload)
        except ValueError as error:
            raise unreadable(frame.payload, error) from error
        assert len(records) == frame.record_count, f"{self._path}: a frame at {frame.position} counts wrongly"
        self._records.extend(records)


def _purpose_of(records: Sequence[MetadataRecord]) -> Purpose | None:
    """What the reserve may be used for; None where something is made."""
    if any(isinstance(record, TopicCreated | PartitionCreated | QueueCreated) for record in records):
        return None
    if any(isinstance(record, TopicDeleted | QueueDeleted) for record in records):
        return Purpose.DELETING
    if any(isinstance(record, _CHANGES) for record in records):
        return Purpose.CHANGING
    return Purpose.GOING_ON
