"""What the tests of the log room start from: batches, logs on a memory disk, and reading everything back."""

from collections.abc import Sequence
from errno import EIO
from os import strerror

import pytest
from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId
from ropewalk.base.ports import Disk
from ropewalk.log.log import Appended, Log
from ropewalk.log.settings import LAG_UNLIMITED_MS, UNLIMITED, LogSettings
from ropewalk.log.storage import Storage
from ropewalk.records.batch import decode_header, iterate, verify_crc
from ropewalk.records.record import Record, build, decode_records
from ropewalk.runtime.memory_disk import MemoryDisk, MemoryFile

DIRECTORY = "/data/orders-0"
TOPIC_ID = TopicId(bytes(range(16)))
BYTES_MAX = 1 << 20


def settings(
    *,
    segment_bytes: int = 1 << 30,
    segment_ms: int = 1 << 40,
    retention_bytes: int = UNLIMITED,
    retention_ms: int = UNLIMITED,
    index_interval_bytes: int = 256,
    snapshot_interval_bytes: int = 1 << 30,
    producer_expiry_ms: int = 1 << 40,
    compacts: bool = False,
    delete_retention_ms: int = 1000,
    min_compaction_lag_ms: int = 0,
    max_compaction_lag_ms: int = LAG_UNLIMITED_MS,
    min_cleanable_dirty_ratio: float = 0.0,
) -> LogSettings:
    return LogSettings(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        retention_bytes=retention_bytes,
        retention_ms=retention_ms,
        index_interval_bytes=index_interval_bytes,
        snapshot_interval_bytes=snapshot_interval_bytes,
        producer_expiry_ms=producer_expiry_ms,
        compacts=compacts,
        delete_retention_ms=delete_retention_ms,
        min_compaction_lag_ms=min_compaction_lag_ms,
        max_compaction_lag_ms=max_compaction_lag_ms,
        min_cleanable_dirty_ratio=min_cleanable_dirty_ratio,
    )


class Producer(Struct, frozen=True):
    id: int = 7
    epoch: int = 0
    sequence: int = 0


def batch(
    values: Sequence[bytes] = (b"value",),
    *,
    timestamps: Sequence[int] = (1000,),
    producer: Producer | None = None,
) -> memoryview:
    records = [
        Record(timestamp=timestamps[min(index, len(timestamps) - 1)], value=value)
        for index, value in enumerate(values)
    ]
    if producer is None:
        return memoryview(build(records))
    return memoryview(
        build(
            records,
            producer_id=ProducerId(producer.id),
            producer_epoch=ProducerEpoch(producer.epoch),
            base_sequence=producer.sequence,
        )
    )


def append(log: Log, made: memoryview | None = None, *, epoch: int = 0, now_ms: int = 1000) -> Appended:
    made = batch() if made is None else made
    return log.append(made, decode_header(made), leader_epoch=LeaderEpoch(epoch), now_ms=now_ms)


def append_many(log: Log, count: int, *, now_ms: int = 1000) -> None:
    """Batches of two records of 40 bytes that say which they are."""
    for _ in range(count):
        name = b"%039d" % log.end_offset
        append(log, batch([b"a" + name, b"b" + name]), now_ms=now_ms)


def sync(log: Log) -> None:
    targets = log.sync_targets()
    for file in targets.files:
        file.sync()
    for directory in targets.directories:
        log._storage.disk.sync_directory(directory)
    log.on_synced(targets.end_offset)


def a_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    return disk


def open_log(
    disk: Disk,
    chosen: LogSettings | None = None,
    *,
    recovery_point: int = 0,
    start_offset: int = 0,
    clean: bool = False,
    now_ms: int = 1000,
    files_max: int = 64,
    index_bytes_max: int = 1 << 20,
    leader_epoch_max: int = 1000,
) -> Log:
    return Log.open(
        Storage(disk, files_max=files_max, index_bytes_max=index_bytes_max),
        DIRECTORY,
        chosen or settings(),
        recovery_point=Offset(recovery_point),
        start_offset=Offset(start_offset),
        clean=clean,
        now_ms=now_ms,
        leader_epoch_max=LeaderEpoch(leader_epoch_max),
    )


def close(log: Log, now_ms: int = 1000) -> None:
    sync(log)
    write = log.close(now_ms)
    if write is not None:
        write.run()
        log.maintenance.on_snapshot(write)


def delete_records(log: Log, offset: int, now_ms: int = 1000) -> None:
    """As a broker does it, up to the removal of files."""
    log.trimming.plan_start(Offset(offset), limit_offset=log.end_offset)
    if log.trimming.forgets:
        write = log.maintenance.take_snapshot(now_ms, force=True, before_deleting=True)
        if write is not None:
            write.run()
            log.maintenance.on_snapshot(write)
        sync(log)
    removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
    if removal is not None:
        removal.run()


def truncate(log: Log, offset: int, now_ms: int = 1000) -> None:
    """Cut the log back to the batch that contains `offset`, planned or not."""
    if offset < log.end_offset:
        cut = log.trimming.take_cut(Offset(offset), now_ms=now_ms)
        cut.run()
        log.trimming.on_cut(cut)


def fetch(log: Log, offset: int, *, limit: int | None = None, bytes_max: int = BYTES_MAX) -> bytes:
    """As a broker does it: cached if possible, else as the disk pool would; empty if there is nothing."""
    span = log.locate(
        Offset(offset), limit_offset=log.end_offset if limit is None else Offset(limit), bytes_max=bytes_max
    )
    if span is None:
        return b""
    data = span.read_cached()
    if data is None:
        data = span.read()
        log.on_read(span)
    return bytes(data)


def batches_in(data: bytes) -> list[bytes]:
    """Cuts what was fetched into batches; they must be whole and intact."""
    cut = [data[position : position + header.size_bytes] for position, header in iterate(data)]
    assert b"".join(cut) == data
    assert all(verify_crc(memoryview(one)) for one in cut)
    return cut


def read_all(log: Log, *, start: int | None = None, bytes_max: int = BYTES_MAX) -> list[bytes]:
    offset = int(log.start_offset) if start is None else start
    found: list[bytes] = []
    while offset < log.end_offset:
        data = batches_in(fetch(log, offset, bytes_max=bytes_max))
        assert data
        assert decode_header(data[0]).end_offset > offset
        found += data
        offset = decode_header(data[-1]).end_offset
    return found


def values_of(data: bytes) -> list[bytes | None]:
    return [record.value for one in batches_in(data) for record in decode_records(one)]


def spoil(patching: pytest.MonkeyPatch, disk: Disk, path: str) -> None:
    """From now on the file cannot be read: its sectors are bad."""
    bad, healthy = disk.open(path), MemoryFile.read

    def read(file: MemoryFile, position: int, size: int) -> bytes:
        if file is bad:
            raise OSError(EIO, strerror(EIO))
        return healthy(file, position, size)

    patching.setattr(MemoryFile, "read", read)
