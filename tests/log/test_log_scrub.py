"""The scrub finds rot in closed segments, within its budget, and what it found is refused."""

import pytest

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ports import read_whole
from ropewalk.log.log import Log
from tests.log.given import (
    DIRECTORY,
    a_disk,
    append_many,
    batches_in,
    fetch,
    open_log,
    read_all,
    settings,
    spoil,
)

SMALL = settings(segment_bytes=1000)


def scrub_all(log: Log, bytes_max: int) -> list[int]:
    """Runs a whole pass; answers how many bytes each step looked at."""
    steps = []
    while (scrub := log.maintenance.take_scrub(bytes_max)) is not None:
        scrub.run()
        log.maintenance.on_scrubbed(scrub)
        steps.append(scrub.scrubbed_bytes)
    return steps


@pytest.mark.parametrize("bytes_max", [1, 400, 10_000])
def test_a_pass_reads_every_closed_segment_once_within_its_budget(bytes_max: int) -> None:
    log = open_log(a_disk(), SMALL)
    append_many(log, 30)
    batch_bytes = len(read_all(log)[0])
    closed_bytes = log.size_bytes - log._segments.active.size_bytes
    for _ in range(2):
        steps = scrub_all(log, bytes_max)
        assert sum(steps) == closed_bytes
        assert all(0 < step < bytes_max + batch_bytes for step in steps)
    assert log.damaged == ()


@pytest.mark.parametrize("bytes_max", [1, 400, 10_000])
def test_rot_is_found_before_a_reader_meets_it(bytes_max: int) -> None:
    disk = a_disk()
    log = open_log(disk, SMALL)
    append_many(log, 30)
    batches = read_all(log)
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(read_whole(disk, path))
    data[2 * len(batches[0]) + 80] ^= 4
    file = disk.open(path)
    file.truncate(0)
    file.append(data)
    scrub_all(log, bytes_max)
    assert [(damaged.start_offset, damaged.end_offset) for damaged in log.damaged] == [(4, 6)]
    with pytest.raises(StorageFailed, match="4 to 6"):
        fetch(log, 5)
    assert batches_in(fetch(log, 0)) == batches[:2]
    assert read_all(log, start=6) == batches[3:]


@pytest.mark.parametrize("bytes_max", [1, 400, 10_000])
def test_a_bad_sector_is_the_segments_misfortune_and_nobody_elses(
    bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = a_disk()
    log = open_log(disk, SMALL)
    append_many(log, 30)
    batches = read_all(log)
    broken = log._segments.closed[1]
    spoil(monkeypatch, disk, broken.path)
    scrub_all(log, bytes_max)
    assert [(damaged.start_offset, damaged.end_offset) for damaged in log.damaged] == [
        (broken.base_offset, broken.end_offset)
    ]
    with pytest.raises(StorageFailed, match="damaged"):
        fetch(log, broken.base_offset)
    assert read_all(log, start=broken.end_offset) == batches[broken.end_offset // 2 :]


def test_a_segment_removed_during_a_pass_is_done() -> None:
    disk = a_disk()
    log = open_log(disk, SMALL, files_max=1)
    append_many(log, 30)
    scrub = log.maintenance.take_scrub(1)
    assert scrub is not None
    log.trimming.plan_start(log.end_offset, limit_offset=log.end_offset)
    removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
    assert removal is not None
    removal.run()
    scrub.run()
    log.maintenance.on_scrubbed(scrub)
    assert scrub_all(log, 1000) == []
    assert log.damaged == ()
