"""The small parts: open files, index chunks, trust, leader epochs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import Offset
from ropewalk.log.descriptors import Descriptors
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.index import Columns, IndexCache, decode_chunks, encode_chunk
from ropewalk.log.log import Log
from ropewalk.log.storage import Storage
from ropewalk.log.trust import Trust
from ropewalk.runtime.memory_disk import MemoryDisk, MemoryFile
from tests.log.given import a_disk, append, append_many, open_log, read_all, settings, sync


class CountingDisk(MemoryDisk):
    can_sync_everything = True

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.make_directory("/d")

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.opened.append(path[-1])
        return super().open(path, create=create)


def descriptors(count_max: int) -> tuple[Descriptors, CountingDisk]:
    disk = CountingDisk()
    for name in "abcd":
        disk.open(f"/d/{name}", create=True)
    disk.opened.clear()
    return Descriptors(disk, count_max), disk


def test_the_least_recently_used_file_is_closed() -> None:
    files, disk = descriptors(2)
    for name in "abacab":
        files.get(f"/d/{name}")
    assert disk.opened == ["a", "b", "c", "b"]
    assert len(files) == 2


def test_a_file_with_unsynced_bytes_stays_open_until_it_is_synced() -> None:
    files, disk = descriptors(2)
    for name in "ab":
        files.pin(f"/d/{name}")
    for name in "cdab":
        files.get(f"/d/{name}")
    assert disk.opened == ["a", "b", "c", "d"]
    files.unpin("/d/a")
    files.unpin("/d/b")
    assert len(files) == 2
    assert files.peek("/d/c") is None


def test_files_with_unsynced_bytes_stay_within_the_limit_and_those_closed_are_remembered() -> None:
    files, _ = descriptors(2)
    for name in "abcd":
        files.pin(f"/d/{name}")
        assert len(files) <= 2
    assert [name for name in "abcd" if files.was_given_up(f"/d/{name}")] == ["a", "b"]
    assert files.is_crowded
    for name in "abcd":
        files.unpin(f"/d/{name}")
    assert not any(files.was_given_up(f"/d/{name}") for name in "abcd")
    assert not files.is_crowded


def test_a_file_that_cannot_be_opened_by_its_path_yet_is_never_closed() -> None:
    files, _ = descriptors(1)
    moving = files.get("/d/a")
    files.hold("/d/b", moving)
    for name in "cd":
        files.pin(f"/d/{name}")
    assert files.peek("/d/b") is moving


def test_where_everything_cannot_be_synced_no_file_with_unsynced_bytes_is_closed() -> None:
    files, disk = descriptors(2)
    disk.can_sync_everything = False
    for name in "abcd":
        files.pin(f"/d/{name}")
    assert len(files) == 4
    assert not any(files.was_given_up(f"/d/{name}") for name in "abcd")


def test_logs_that_nobody_syncs_hold_no_more_descriptors_than_may_be_open() -> None:
    disk, log_count = MemoryDisk(), 40
    storage = Storage(disk, files_max=4)
    logs = []
    for number in range(log_count):
        disk.make_directory(f"/t-{number}")
        log = Log.open(
            storage,
            f"/t-{number}",
            settings(),
            recovery_point=Offset(0),
            start_offset=Offset(0),
            clean=False,
            now_ms=0,
        )
        append(log)
        logs.append(log)
    assert len(storage.files) <= 4
    assert [log.sync_targets().has_reopened for log in logs].count(True) == log_count - 4
    for log in logs:
        sync(log)
    append(logs[0])
    assert not logs[0].sync_targets().has_reopened


def test_a_log_works_with_a_single_descriptor() -> None:
    log = open_log(a_disk(), settings(segment_bytes=320), files_max=1)
    append_many(log, 10)
    assert len(read_all(log)) == 10
    sync(log)
    assert len(log._storage.files) == 1
    assert len(read_all(log)) == 10


def columns(entries: list[tuple[int, int, int]]) -> Columns:
    made = Columns()
    for entry in entries:
        made.add(*entry)
    return made


def listed(made: Columns) -> list[tuple[int, int, int]]:
    return list(zip(made.offsets, made.positions, made.timestamps, strict=True))


ENTRIES = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 99), st.integers(0, 5)), min_size=1, max_size=30
)


@given(steps=ENTRIES, cut=st.integers(0, 29), damaged_at=st.integers(0, 2**31))
def test_chunks_are_read_up_to_the_first_that_is_wrong(
    steps: list[tuple[int, int, int]], cut: int, damaged_at: int
) -> None:
    entries, offset, position, timestamp = [], 0, 0, 0
    for by_offset, by_position, by_time in steps:
        offset, position, timestamp = offset + by_offset, position + by_position, timestamp + by_time
        entries.append((offset, position, timestamp))
    parts = [part for part in (entries[:cut], entries[cut:]) if part]
    chunks = [encode_chunk(columns(part), 77) for part in parts]
    data = b"".join(chunks)
    found, valid_bytes = decode_chunks(data, 77)
    assert (listed(found), valid_bytes) == (entries, len(data))
    assert decode_chunks(data, 78)[1] == 0
    spoilt = bytearray(data)
    at = damaged_at % len(data)
    spoilt[at] ^= 0x10
    found, valid_bytes = decode_chunks(spoilt, 77)
    intact = chunks[:1] if len(chunks) == 2 and at >= len(chunks[0]) else []
    assert valid_bytes == sum(map(len, intact))
    assert listed(found) == (parts[0] if intact else [])


def test_loaded_indexes_are_bounded_in_bytes() -> None:
    cache = IndexCache(5 * 16)
    one = columns([(number, number, 0) for number in range(3)])
    cache.put("a", one)
    cache.put("b", columns([(0, 0, 0)]))
    assert cache.get("a") is one
    cache.extend("a", columns([(9, 9, 9)]))
    assert cache.get("a") is one
    assert cache.get("b") is not None
    cache.put("c", columns([(0, 0, 0)]))
    assert cache.get("a") is None
    assert cache.get("c") is not None


def test_memory_of_a_reopened_partition_is_small() -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=1000))
    append_many(log, 100)
    log = open_log(disk, settings(segment_bytes=1000))
    assert all(len(segment.index.pending) == 0 for segment in log._segments.closed)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(100, 120, True), (99, 120, False), (20, 40, True), (25, 30, True), (19, 40, False), (20, 41, False)],
)
def test_trust_covers_what_was_written_or_verified(start: int, end: int, expected: bool) -> None:
    trust = Trust(written_from=100)
    trust.add(20, 30, trust.generation)
    trust.add(30, 40, trust.generation)
    assert trust.covers(start, end) == expected


def test_what_was_verified_up_to_what_was_written_is_one_stretch() -> None:
    trust = Trust(written_from=100)
    trust.add(0, 50, trust.generation)
    trust.add(40, 100, trust.generation)
    assert trust.covers(0, 500)


def test_trust_that_was_withdrawn_is_not_given_back_by_an_earlier_read() -> None:
    trust = Trust(written_from=0)
    before = trust.generation
    trust.withdraw(100)
    trust.add(0, 100, before)
    assert not trust.covers(0, 100)
    assert trust.covers(100, 120)


EPOCHS = [(1, 0), (3, 10), (4, 25)]


@pytest.mark.parametrize(
    ("asked", "expected"), [(0, None), (1, (1, 10)), (2, (1, 10)), (3, (3, 25)), (4, (4, 30)), (9, (4, 30))]
)
def test_the_end_of_an_epoch(asked: int, expected: tuple[int, int] | None) -> None:
    found = LeaderEpochs(EPOCHS).end_of(asked, log_end_offset=30)
    assert (None if found is None else (found.leader_epoch, found.end_offset)) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, EPOCHS),
        (5, [(1, 5), (3, 10), (4, 25)]),
        (10, EPOCHS[1:]),
        (24, [(3, 24), (4, 25)]),
        (99, [(4, 99)]),
    ],
)
def test_epochs_of_a_log_that_begins_later(start: int, expected: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs(EPOCHS)
    assert epochs.from_offset(start).entries() == expected
    assert epochs.entries() == EPOCHS
