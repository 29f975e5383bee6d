"""Crash images made by hand: what is cut, what is kept, what is refused."""

from collections.abc import Callable

import pytest
from typing_extensions import Buffer

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.base.ports import read_whole
from ropewalk.log.index import Columns, encode_chunk
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings
from ropewalk.records.batch import stamp
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
)

SMALL_SEGMENTS = settings(segment_bytes=1000, index_interval_bytes=200)
FIRST = f"{DIRECTORY}/{0:020d}.log"
FIRST_INDEX = f"{DIRECTORY}/{0:020d}.index"


def rewrite(disk: MemoryDisk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.append(data)


def flip(disk: MemoryDisk, path: str, position: int) -> None:
    data = bytearray(read_whole(disk, path))
    data[position] ^= 0x40
    rewrite(disk, path, bytes(data))


def ten_batches(disk: MemoryDisk) -> list[bytes]:
    """Twenty offsets in one segment; batch n begins at offset 2n."""
    log = open_log(disk)
    append_many(log, 10)
    return read_all(log)


def position_of(batches: list[bytes], number: int) -> int:
    return sum(map(len, batches[:number]))


BODY, BASE_OFFSET, LENGTH, EPOCH, MAGIC = 70, 7, 11, 15, 16


@pytest.mark.parametrize("where", [BODY, BASE_OFFSET, LENGTH, EPOCH, MAGIC])
def test_above_the_recovery_point_the_first_bad_batch_and_all_after_it_are_cut(where: int) -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    flip(disk, FIRST, position_of(batches, 6) + where)
    log = open_log(disk, recovery_point=8, leader_epoch_max=0)
    assert read_all(log) == batches[:6]
    assert (log.end_offset, log.durable_offset, log.damaged) == (12, 8, ())
    assert log.recovered.cut_bytes == sum(map(len, batches[6:]))
    assert "offset 12" in log.recovered.cut_reason
    assert disk.open(FIRST).size() == position_of(batches, 6)


@pytest.mark.parametrize("where", [BODY, BASE_OFFSET, LENGTH, EPOCH, MAGIC])
def test_below_the_recovery_point_nothing_is_cut_and_the_range_is_refused(where: int) -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    flip(disk, FIRST, position_of(batches, 6) + where)
    log = open_log(disk, recovery_point=20, leader_epoch_max=0)
    assert (log.end_offset, log.recovered.cut_bytes) == (20, 0)
    assert disk.open(FIRST).size() == position_of(batches, 10)
    assert batches_in(fetch(log, 0)) == batches[:6]
    for offset in (12, 13):
        with pytest.raises(StorageFailed):
            fetch(log, offset)
    assert batches_in(fetch(log, 14)) == batches[7:]
    assert batches_in(fetch(log, 0)) == batches[:6]
    assert [(damaged.start_offset, damaged.end_offset) for damaged in log.damaged] == [(12, 14)]


@pytest.mark.parametrize("size_bytes", [1, 12, 60, 61, 100])
def test_a_torn_tail_is_cut(size_bytes: int) -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    disk.open(FIRST).truncate(position_of(batches, 9) + size_bytes)
    log = open_log(disk)
    assert read_all(log) == batches[:9]
    assert log.recovered.cut_bytes == size_bytes
    append(log, batch([b"goes on"]))
    assert open_log(disk).end_offset == 19


def test_zeros_after_the_last_batch_are_cut() -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    disk.open(FIRST).append(bytes(5000))
    log = open_log(disk, recovery_point=20)
    assert read_all(log) == batches
    assert log.recovered.cut_bytes == 5000


@pytest.mark.parametrize(
    ("base_offset", "epoch"),
    [
        pytest.param(18, 0, id="an offset again"),
        pytest.param(22, 0, id="an offset left out"),
        pytest.param(20, -1, id="an older leader epoch"),
    ],
)
def test_an_intact_batch_that_does_not_continue_the_log_is_cut(base_offset: int, epoch: int) -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    stray = batch([b"stray"])
    stamp(stray, base_offset=Offset(base_offset), leader_epoch=LeaderEpoch(epoch))
    disk.open(FIRST).append(stray)
    log = open_log(disk, recovery_point=10)
    assert read_all(log) == batches
    assert log.recovered.cut_bytes == len(stray)


def test_durable_data_that_is_gone_is_refused_and_its_offsets_are_not_given_again() -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    disk.open(FIRST).truncate(position_of(batches, 4))
    log = open_log(disk, recovery_point=16)
    assert (log.end_offset, log.durable_offset) == (16, 16)
    assert batches_in(fetch(log, 0)) == batches[:4]
    for offset in (8, 15):
        with pytest.raises(StorageFailed):
            fetch(log, offset)
    made = batch([b"goes on"])
    assert append(log, made).base_offset == 16
    assert batches_in(fetch(log, 16)) == [bytes(made)]
    sync(log)
    for clean in (False, True):
        again = open_log(disk, recovery_point=17, clean=clean)
        assert batches_in(fetch(again, 16)) == [bytes(made)]
        with pytest.raises(StorageFailed):
            fetch(again, 8)
        close(again)


def test_damage_that_spans_the_recovery_point_ends_the_log_there() -> None:
    disk = a_disk()
    batches = ten_batches(disk)
    data = bytearray(read_whole(disk, FIRST))
    data[position_of(batches, 4) : position_of(batches, 8)] = bytes(
        position_of(batches, 8) - position_of(batches, 4)
    )
    rewrite(disk, FIRST, bytes(data))
    log = open_log(disk, recovery_point=12)
    assert (log.start_offset, log.end_offset) == (0, 12)
    assert [(damaged.start_offset, damaged.end_offset) for damaged in log.damaged] == [(8, 12)]
    assert append(log).base_offset == 12


@pytest.mark.parametrize("following_count", [0, 1])
def test_a_batch_inside_a_record_does_not_come_to_light_when_the_outer_one_rots(following_count: int) -> None:
    disk = a_disk()
    log = open_log(disk)
    inner = batch([b"inner"])
    stamp(inner, base_offset=Offset(3), leader_epoch=LeaderEpoch(0))
    append_many(log, 1)
    append(log, batch([bytes(inner), b"x", b"y", b"z"]))
    append_many(log, following_count)
    batches = read_all(log)
    flip(disk, FIRST, position_of(batches, 2) - 3)
    log = open_log(disk, recovery_point=6 + 2 * following_count)
    for offset in (2, 3, 4, 5):
        with pytest.raises(StorageFailed):
            fetch(log, offset)
    assert batches_in(fetch(log, 6)) == batches[2:]


def test_durable_data_that_a_snapshot_speaks_of_and_that_is_gone_is_refused() -> None:
    disk = a_disk()
    log = open_log(disk)
    append_many(log, 10)
    batches = read_all(log)
    close(log)
    disk.open(FIRST).truncate(position_of(batches, 4))
    for clean in (True, False):
        log = open_log(disk, recovery_point=20, clean=clean)
        assert log.end_offset == 20
        assert batches_in(fetch(log, 0)) == batches[:4]
        with pytest.raises(StorageFailed):
            fetch(log, 8)


def test_what_stands_under_the_name_of_a_new_segment_is_not_kept() -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=320))
    append_many(log, 2)
    disk.open(f"{DIRECTORY}/{4:020d}.log", create=True).append(b"left by nobody knows whom")
    append_many(log, 2)
    assert len(read_all(log)) == 4
    assert open_log(disk, settings(segment_bytes=320)).recovered.cut_bytes == 0


def rolled(disk: MemoryDisk, count: int = 20) -> tuple[Log, list[bytes]]:
    log = open_log(disk, SMALL_SEGMENTS)
    append_many(log, count)
    return log, read_all(log)


def logs_in(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(DIRECTORY) if name.endswith(".log")]


def test_a_gap_between_segments_above_the_recovery_point_ends_the_log() -> None:
    disk = a_disk()
    _, batches = rolled(disk)
    names = logs_in(disk)
    assert len(names) >= 4
    disk.remove(f"{DIRECTORY}/{names[1]}")
    log = open_log(disk, SMALL_SEGMENTS)
    assert log.end_offset == int(names[1][:20])
    assert read_all(log) == batches[: log.end_offset // 2]
    assert logs_in(disk) == names[:1]


def test_a_segment_lost_below_the_recovery_point_is_a_damaged_range() -> None:
    disk = a_disk()
    _, batches = rolled(disk)
    names = logs_in(disk)
    disk.remove(f"{DIRECTORY}/{names[1]}")
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=40)
    with pytest.raises(StorageFailed):
        fetch(log, int(names[1][:20]))
    after = int(names[2][:20])
    assert read_all(log, start=after) == batches[after // 2 :]


def test_a_first_segment_lost_before_anything_was_durable_leaves_an_empty_log() -> None:
    disk = a_disk()
    rolled(disk)
    disk.remove(FIRST)
    log = open_log(disk, SMALL_SEGMENTS)
    assert (log.start_offset, log.end_offset, log.damaged) == (0, 0, ())
    assert logs_in(disk) == [f"{0:020d}.log"]


def remove_indexes(disk: MemoryDisk) -> None:
    for name in disk.list(DIRECTORY):
        if name.endswith(".index"):
            disk.remove(f"{DIRECTORY}/{name}")


def damage_indexes(disk: MemoryDisk) -> None:
    for name in disk.list(DIRECTORY):
        if name.endswith(".index"):
            flip(disk, f"{DIRECTORY}/{name}", 20)


def lengthen_indexes(disk: MemoryDisk) -> None:
    """Entries for what the log does not hold, in chunks that are whole."""
    for name in disk.list(DIRECTORY):
        if name.endswith(".index"):
            columns = Columns()
            for number in range(20):
                columns.add(1000 + number, 5000 + 100 * number, 1000)
            disk.open(f"{DIRECTORY}/{name}").append(encode_chunk(columns, int(name[:20])))


def replace_indexes(disk: MemoryDisk) -> None:
    """Whole chunks, for the right segment, with positions at which no batch begins."""
    for name in disk.list(DIRECTORY):
        if name.endswith(".index"):
            columns = Columns()
            for number in range(8):
                columns.add(2 * number + 1, 90 * number + 13, 1000)
            rewrite(disk, f"{DIRECTORY}/{name}", encode_chunk(columns, int(name[:20])))


def shift_indexes(disk: MemoryDisk) -> None:
    """Whole chunks whose positions are batches, but of other offsets."""
    for name in disk.list(DIRECTORY):
        if name.endswith(".index"):
            size = (len(read_whole(disk, FIRST)) // 5) if disk.exists(FIRST) else 200
            columns = Columns()
            for number in range(4):
                columns.add(2 * number, size * (number + 1), 1000)
            rewrite(disk, f"{DIRECTORY}/{name}", encode_chunk(columns, int(name[:20])))


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize(
    "spoil", [remove_indexes, damage_indexes, lengthen_indexes, replace_indexes, shift_indexes]
)
def test_an_index_is_never_believed_over_the_log(spoil: Callable[[MemoryDisk], None], clean: bool) -> None:
    disk = a_disk()
    log, batches = rolled(disk)
    close(log)
    spoil(disk)
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=40, clean=clean)
    for bytes_max in (1, 500, 5000):
        assert read_all(log, bytes_max=bytes_max) == batches
    for number, one in enumerate(batches):
        assert batches_in(fetch(log, 2 * number + 1, bytes_max=1)) == [one]
    assert log.damaged == ()
    found = log.offset_for_timestamp(1000, limit_offset=log.end_offset)
    assert found is not None
    assert found.offset == 0


@pytest.mark.parametrize("wrong", [(3, 400), (4, 400), (4, 300)])
def test_a_loaded_index_is_checked_even_where_the_bytes_are_trusted(wrong: tuple[int, int]) -> None:
    disk = a_disk()
    log, batches = rolled(disk)
    close(log)
    size = len(batches[0])
    columns = Columns()
    columns.add(0, 0, 1000)
    columns.add(*wrong, 1000)
    columns.add(8, 4 * size, 1000)
    rewrite(disk, FIRST_INDEX, encode_chunk(columns, 0))
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=40, clean=True)
    # Loads the index, whose first entry is right.
    assert batches_in(fetch(log, 0, bytes_max=1)) == batches[:1]
    while (scrub := log.maintenance.take_scrub(10_000)) is not None:
        scrub.run()
        log.maintenance.on_scrubbed(scrub)
    for offset in (0, wrong[0], 7):
        for bytes_max in (1, wrong[1], 10_000):
            span = log.locate(Offset(offset), limit_offset=log.end_offset, bytes_max=bytes_max)
            assert span is not None
            data = span.read_cached()
            if data is not None:
                found = batches_in(bytes(data))
                assert found == batches[offset // 2 : offset // 2 + len(found)]
    assert read_all(log, bytes_max=wrong[1]) == batches
    assert log.damaged == ()


def test_a_spoilt_index_of_a_closed_segment_is_written_anew() -> None:
    disk = a_disk()
    log, _ = rolled(disk)
    close(log)
    before = read_whole(disk, FIRST_INDEX)
    damage_indexes(disk)
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=40, clean=True)
    read_all(log)
    assert read_whole(disk, FIRST_INDEX) == before


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("spoilt", ["none", "missing", "damaged"])
def test_producers_are_known_again_with_or_without_a_snapshot(spoilt: str, clean: bool) -> None:
    disk = a_disk()
    log = open_log(disk, SMALL_SEGMENTS)
    for number in range(12):
        append(log, batch([b"v" * 90], producer=Producer(sequence=number)))
        append(log, batch([b"v"], producer=Producer(id=100 + number)))
        write = log.maintenance.take_snapshot(1000, force=number % 5 == 0)
        if write is not None:
            write.run()
            log.maintenance.on_snapshot(write)
    close(log)
    for name in disk.list(DIRECTORY):
        if name.endswith(".snapshot"):
            if spoilt == "missing":
                disk.remove(f"{DIRECTORY}/{name}")
            elif spoilt == "damaged":
                flip(disk, f"{DIRECTORY}/{name}", 30)
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=log.end_offset, clean=clean)
    assert log.recovered.is_clean == (clean and spoilt == "none")
    retried = append(log, batch([b"v" * 90], producer=Producer(sequence=8)))
    assert (retried.base_offset, retried.duplicate) == (16, True)
    assert append(log, batch([b"v"], producer=Producer(id=100))).duplicate
    assert append(log, batch([b"v" * 90], producer=Producer(sequence=12))).base_offset == 24


def test_a_snapshot_above_the_recovery_point_is_not_believed_and_removed() -> None:
    disk = a_disk()
    log = open_log(disk)
    append(log, batch([b"kept"], producer=Producer(sequence=0)))
    kept_bytes = disk.open(FIRST).size()
    append(log, batch([b"lost"], producer=Producer(sequence=1)))
    write = log.maintenance.take_snapshot(1000, force=True)
    assert write is not None
    write.run()
    disk.open(FIRST).truncate(kept_bytes)
    log = open_log(disk, recovery_point=1)
    assert [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")] == []
    again = append(log, batch([b"lost"], producer=Producer(sequence=1)))
    assert (again.base_offset, again.duplicate) == (1, False)


def test_a_clean_start_reads_no_log() -> None:
    disk = a_disk()
    log, batches = rolled(disk)
    close(log)
    again = open_log(disk, SMALL_SEGMENTS, recovery_point=40, clean=True)
    assert (again.recovered.is_clean, again.recovered.scanned_bytes) == (True, 0)
    assert (again.end_offset, again.durable_offset, again.size_bytes) == (40, 40, log.size_bytes)
    assert read_all(again) == batches


def test_a_log_that_is_not_as_it_was_left_is_recovered_although_the_node_stopped_in_order() -> None:
    disk = a_disk()
    log, batches = rolled(disk)
    close(log)
    name = logs_in(disk)[-1]
    disk.open(f"{DIRECTORY}/{name}").append(b"dirt")
    again = open_log(disk, SMALL_SEGMENTS, recovery_point=40, clean=True)
    assert not again.recovered.is_clean
    assert again.recovered.cut_bytes == 4
    assert read_all(again) == batches


def test_what_recovery_accepts_above_the_recovery_point_must_be_synced_before_it_counts() -> None:
    disk = a_disk()
    log, _ = rolled(disk)
    again = open_log(disk, SMALL_SEGMENTS, recovery_point=10)
    assert (again.durable_offset, again.dirty) == (10, True)
    targets = again.sync_targets()
    assert targets.directories == (DIRECTORY,)
    bases = [int(name[:20]) for name in logs_in(disk)]
    assert len(targets.files) == len([base for base in [*bases[1:], 40] if base > 10])
    assert log.end_offset == targets.end_offset


def test_files_of_deleted_segments_that_came_back_are_removed() -> None:
    disk = a_disk()
    _, batches = rolled(disk)
    names = logs_in(disk)
    start = int(names[2][:20]) + 1
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=40, start_offset=start)
    assert logs_in(disk) == names[2:]
    assert log.start_offset == start
    assert read_all(log) == batches[start // 2 :]


def test_a_start_behind_what_was_found_is_where_the_log_goes_on() -> None:
    disk = a_disk()
    ten_batches(disk)
    log = open_log(disk, start_offset=50)
    assert (log.start_offset, log.end_offset, log.damaged) == (50, 50, ())
    assert append(log).base_offset == 50
    assert open_log(disk, start_offset=50).end_offset == 51


@pytest.mark.parametrize("recovery_point", [2, 8, 20], ids=["below it", "in it", "above it"])
@pytest.mark.parametrize("remains", [b"\0" * 40, b"half a batch", None], ids=["zeros", "a part", "a batch"])
def test_what_a_failed_write_left_in_a_closed_segment_does_not_hide_the_next_one(
    recovery_point: int, remains: bytes | None
) -> None:
    disk = a_disk()
    log = open_log(disk, SMALL_SEGMENTS)
    append_many(log, 10)
    batches = read_all(log)
    assert log.segment_count > 1
    left = bytes(batch()) if remains is None else remains
    disk.open(FIRST).append(left)
    log = open_log(disk, SMALL_SEGMENTS, recovery_point=recovery_point)
    assert read_all(log) == batches
    assert (log.end_offset, log.damaged) == (20, ())


def test_what_is_accepted_above_the_recovery_point_is_written_again() -> None:
    rewritten: list[tuple[int, int]] = []

    class Noting(MemoryDisk):
        def open(self, path: str, *, create: bool = False) -> MemoryFile:
            file = super().open(path, create=create)
            return file if path != FIRST else NotingFile(file)

    class NotingFile(MemoryFile):
        def __init__(self, file: MemoryFile) -> None:
            super().__init__()
            self._content = file._content

        def rewrite(self, position: int, data: Buffer) -> None:
            rewritten.append((position, len(memoryview(data))))

    disk = Noting()
    disk.make_directory(DIRECTORY)
    batches = ten_batches(disk)
    open_log(disk, recovery_point=8)
    assert rewritten == [(position_of(batches, 4), sum(map(len, batches[4:])))]
    rewritten.clear()
    open_log(disk, LogSettings(rewrites_tail=False), recovery_point=8)
    assert rewritten == []
