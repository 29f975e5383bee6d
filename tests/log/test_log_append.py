"""Writing: rolls, refusals, disks that refuse, and what must be synced before it counts."""

import errno

import pytest
from typing_extensions import Buffer

from ropewalk.base.errors import (
    BatchExceedsSegment,
    CorruptBatch,
    FencedEpoch,
    OffsetOutOfRange,
    OutOfOrderSequence,
    ProducerFenced,
    StorageFailed,
)
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log import writer as writer_module
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings
from ropewalk.records.batch import decode_header, stamp
from ropewalk.runtime.memory_disk import MemoryDisk, MemoryFile
from tests.log.given import (
    DIRECTORY,
    Producer,
    a_disk,
    append,
    append_many,
    batch,
    batches_in,
    close,
    fetch,
    open_log,
    read_all,
    settings,
    sync,
    truncate,
)


class Fault:
    """What goes wrong with the next writes."""

    def __init__(self) -> None:
        self.taken_bytes: int | None = None
        self.raises: int | None = None
        self.truncate_raises = False
        self.create_raises = False


class FaultyFile(MemoryFile):
    __slots__ = ("fault",)

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def append(self, data: Buffer) -> int:
        if self.fault.taken_bytes is not None:
            data = memoryview(data)[: self.fault.taken_bytes]
        taken = super().append(data)
        if self.fault.raises is not None:
            raise OSError(self.fault.raises, "No space left on device")
        return taken

    def truncate(self, size: int) -> None:
        if self.fault.truncate_raises:
            raise OSError(errno.EIO, "Input/output error")
        super().truncate(size)


class FaultyDisk(MemoryDisk):
    def __init__(self) -> None:
        super().__init__()
        self.fault = Fault()
        self.make_directory(DIRECTORY)

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        if not self.exists(path) and create and path.endswith(".log"):
            if self.fault.create_raises:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.put(path, FaultyFile(self.fault))
        return super().open(path, create=create)


@pytest.mark.parametrize("taken_bytes", [0, 1, 40, 61, 70])
@pytest.mark.parametrize("raises", [None, errno.ENOSPC])
def test_what_a_failed_write_left_is_cut_before_the_next(taken_bytes: int, raises: int | None) -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    append_many(log, 3)
    before = read_all(log)
    disk.fault.taken_bytes, disk.fault.raises = taken_bytes, raises
    with pytest.raises(StorageFailed):
        append(log, batch([b"refused"], producer=Producer(sequence=5)))
    assert (log.end_offset, read_all(log)) == (6, before)
    disk.fault.taken_bytes = disk.fault.raises = None
    made = batch([b"accepted"], producer=Producer(sequence=5))
    assert append(log, made).base_offset == 6
    assert read_all(log) == [*before, bytes(made)]
    assert read_all(open_log(disk)) == [*before, bytes(made)]


def test_a_cut_is_synced_although_all_that_is_left_was_durable_before() -> None:
    """Or a power cut would bring back the rest of the failed write, at the end of a segment that is closed by then."""
    disk = FaultyDisk()
    log = open_log(disk, settings(segment_ms=1000))
    append(log, now_ms=1000)
    sync(log)
    disk.fault.taken_bytes = 40
    with pytest.raises(StorageFailed):
        append(log, now_ms=1000)
    disk.fault.taken_bytes = None
    append(log, now_ms=5000)
    assert len(log.sync_targets().files) == 2
    sync(log)
    append(log, now_ms=5000)
    assert len(log.sync_targets().files) == 1


def test_a_log_that_cannot_cut_back_refuses_writes_until_it_is_opened_again() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    append_many(log, 3)
    before = read_all(log)
    disk.fault.taken_bytes, disk.fault.truncate_raises = 30, True
    with pytest.raises(StorageFailed):
        append(log)
    disk.fault.taken_bytes, disk.fault.truncate_raises = None, False
    with pytest.raises(StorageFailed, match="until the node is started again"):
        append(log)
    assert read_all(log) == before
    log = open_log(disk)
    assert append(log).base_offset == 6


def test_a_segment_that_cannot_be_made_refuses_the_write_and_nothing_else() -> None:
    disk = FaultyDisk()
    log = open_log(disk, settings(segment_bytes=400))
    append_many(log, 2)
    disk.fault.create_raises = True
    with pytest.raises(StorageFailed, match="No space left"):
        append_many(log, 1)
    assert (log.end_offset, log.segment_count) == (4, 1)
    disk.fault.create_raises = False
    append_many(log, 1)
    assert (log.end_offset, log.segment_count) == (6, 2)


def segment_bases(log: Log) -> list[int]:
    names = log._storage.disk.list(DIRECTORY)
    return [int(name[:20]) for name in names if name.endswith(".log")]


@pytest.mark.parametrize(
    ("chosen", "times_ms", "bases"),
    [
        pytest.param(settings(segment_bytes=320), [0, 0, 0, 0, 0], [0, 4, 8], id="by size"),
        pytest.param(
            settings(segment_ms=100), [0, 99, 100, 150, 250], [0, 4, 8], id="by time since the first"
        ),
        pytest.param(
            settings(segment_ms=100), [500, 100, 150, 599, 600], [0, 8], id="a clock that jumps back"
        ),
        pytest.param(settings(), [0, 0, 0, 0, 0], [0], id="not at all"),
    ],
)
def test_segments_roll(chosen: LogSettings, times_ms: list[int], bases: list[int]) -> None:
    log = open_log(a_disk(), chosen)
    for now_ms in times_ms:
        append_many(log, 1, now_ms=now_ms)
    assert segment_bases(log) == bases
    assert len(read_all(log)) == 5


def test_a_segment_rolls_before_its_offsets_outgrow_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RELATIVE_OFFSET_MAX", 5)
    log = open_log(a_disk())
    append_many(log, 5)
    assert segment_bases(log) == [0, 4, 8]


def test_time_rolls_a_segment_to_which_nothing_is_appended() -> None:
    log = open_log(a_disk(), settings(segment_ms=100))
    log.roll_if_due(1_000_000)
    append_many(log, 1, now_ms=0)
    log.roll_if_due(99)
    assert segment_bases(log) == [0]
    log.roll_if_due(100)
    assert segment_bases(log) == [0, 2]


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = open_log(a_disk(), settings(segment_bytes=200))
    for _ in range(2):
        with pytest.raises(BatchExceedsSegment, match="200"):
            append(log, batch([bytes(200)]))
        append(log, batch([bytes(100)]))
    assert log.end_offset == 2


def test_batches_are_stamped_with_offset_and_epoch() -> None:
    log = open_log(a_disk())
    append(log, batch([b"a", b"b"]), epoch=3)
    made = batch([b"c"])
    append(log, made, epoch=4)
    assert (decode_header(made).base_offset, decode_header(made).leader_epoch) == (2, 4)
    assert batches_in(fetch(log, 2)) == [bytes(made)]
    assert log.leader_epoch_latest == 4


def test_an_epoch_that_is_over_cannot_write() -> None:
    log = open_log(a_disk())
    append(log, epoch=3)
    with pytest.raises(FencedEpoch, match="3"):
        append(log, epoch=2)
    assert log.end_offset == 1


def test_a_duplicate_is_answered_with_its_first_offsets_and_not_written() -> None:
    log = open_log(a_disk())
    append_many(log, 2)
    for sequence in range(5):
        append(log, batch([b"x"], producer=Producer(sequence=sequence)))
    again = append(log, batch([b"x"], producer=Producer(sequence=0)))
    assert (again.base_offset, again.end_offset, again.duplicate, log.end_offset) == (4, 5, True, 9)
    append(log, batch([b"x"], producer=Producer(sequence=5)))
    with pytest.raises(OutOfOrderSequence):
        append(log, batch([b"x"], producer=Producer(sequence=0)))
    with pytest.raises(OutOfOrderSequence):
        append(log, batch([b"x"], producer=Producer(sequence=7)))
    append(log, batch([b"x"], producer=Producer(epoch=1, sequence=0)))
    with pytest.raises(ProducerFenced):
        append(log, batch([b"x"], producer=Producer(epoch=0, sequence=6)))


def test_a_write_counts_as_durable_only_with_every_file_and_name_before_it() -> None:
    log = open_log(a_disk(), settings(segment_bytes=320))
    append_many(log, 1)
    first = log.sync_targets()
    assert (first.end_offset, len(first.files), first.directories) == (2, 1, (DIRECTORY,))
    append_many(log, 2)  # fills the first segment and begins another while the sync runs
    log.on_synced(first.end_offset)
    assert (log.durable_offset, log.dirty) == (2, True)
    second = log.sync_targets()
    assert (second.end_offset, len(second.files), second.directories) == (6, 2, (DIRECTORY,))
    log.on_synced(second.end_offset)
    log.on_synced(first.end_offset)
    assert (log.durable_offset, log.dirty) == (6, False)
    append_many(log, 1)
    third = log.sync_targets()
    assert (len(third.files), third.directories) == (1, ())


def test_a_segment_begun_while_a_sync_ran_up_to_its_first_offset_still_needs_its_name_synced() -> None:
    log = open_log(a_disk(), settings(segment_bytes=320))
    append_many(log, 2)
    running = log.sync_targets()
    append_many(log, 1)
    log.on_synced(running.end_offset)
    assert log.sync_targets().directories == (DIRECTORY,)


def test_a_follower_takes_what_continues_its_log_and_nothing_else() -> None:
    log = open_log(a_disk())

    def follow(base_offset: int, epoch: int) -> None:
        made = batch([b"x", b"y"], producer=Producer(sequence=base_offset))
        stamp(made, base_offset=Offset(base_offset), leader_epoch=LeaderEpoch(epoch))
        log.append_as_follower(made, decode_header(made), now_ms=0)

    follow(0, 1)
    follow(2, 3)
    for base_offset, epoch in ((2, 3), (5, 3), (4, 2)):
        with pytest.raises(CorruptBatch):
            follow(base_offset, epoch)
    assert (log.end_offset, log.leader_epoch_latest, len(read_all(log))) == (4, 3, 2)
    assert append(log, batch([b"x", b"y"], producer=Producer(sequence=2)), epoch=3).duplicate


@pytest.mark.parametrize(
    ("offset", "end_offset"), [(0, 0), (1, 0), (7, 6), (8, 8), (12, 12), (19, 18), (20, 20)]
)
def test_truncation_cuts_whole_batches_and_forgets_what_they_said(offset: int, end_offset: int) -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=400, index_interval_bytes=100))
    for number in range(10):
        append(log, batch([b"v" * 50, b"w"], producer=Producer(sequence=2 * number)), epoch=number)
    before = read_all(log)
    close(log)
    log = open_log(disk, log.settings, recovery_point=20, clean=True)
    truncate(log, offset)
    assert (log.end_offset, read_all(log)) == (end_offset, before[: end_offset // 2])
    assert log.leader_epoch_latest == end_offset // 2 - 1
    made = batch([b"v" * 50, b"other"], producer=Producer(sequence=end_offset))
    assert append(log, made, epoch=20).base_offset == end_offset
    sync(log)
    again = open_log(disk, log.settings, recovery_point=log.recovery_point)
    assert read_all(again) == [*before[: end_offset // 2], bytes(made)]


@pytest.mark.parametrize("offset", [-1, 7, 100])
def test_offsets_outside_the_log_are_refused(offset: int) -> None:
    log = open_log(a_disk())
    append_many(log, 3)
    with pytest.raises(OffsetOutOfRange):
        fetch(log, offset)
    with pytest.raises(OffsetOutOfRange):
        log.check_offset(Offset(offset))


def test_nothing_is_located_at_or_above_the_limit() -> None:
    log = open_log(a_disk())
    append_many(log, 3)
    assert fetch(log, 6) == b""
    assert fetch(log, 4, limit=4) == b""
    assert fetch(log, 5, limit=2) == b""


def test_a_closed_or_deleted_log_refuses_writes() -> None:
    log = open_log(a_disk())
    append_many(log, 1)
    close(log)
    with pytest.raises(StorageFailed, match="closed"):
        append(log)
    log.forget()
    with pytest.raises(StorageFailed, match="deleted"):
        append(log)


def test_a_segment_that_nothing_was_written_to_is_not_rolled() -> None:
    """Its successor would have the same name, and removing the one would remove the other."""
    disk = FaultyDisk()
    log = open_log(disk, settings(segment_ms=1000))
    disk.fault.raises = errno.ENOSPC
    with pytest.raises(StorageFailed):
        append(log, now_ms=1000)
    disk.fault.raises = None
    append(log, now_ms=6000)
    assert log.segment_count == 1
    assert len(read_all(log)) == 1


@pytest.mark.parametrize("bytes_max", [0, -1, -(2**31)])
def test_a_span_is_never_smaller_than_nothing(bytes_max: int) -> None:
    """Readers count by its size, and where no index is in memory it is what they asked for."""
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=320))
    append_many(log, 8)
    close(log)
    log = open_log(disk, settings(segment_bytes=320), recovery_point=int(log.end_offset), clean=True)
    span = log.locate(Offset(0), limit_offset=log.end_offset, bytes_max=bytes_max)
    assert span is not None
    assert span.size_bytes >= 0
    assert len(batches_in(bytes(span.read()))) == 1
