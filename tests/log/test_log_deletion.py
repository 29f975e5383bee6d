"""Deleting: retention, DeleteRecords, and when files may go."""

import pytest

from ropewalk.base.errors import OffsetOutOfRange
from ropewalk.base.ids import Offset
from ropewalk.log.retention import Decision, decide_retention
from ropewalk.log.segment import Segment
from ropewalk.log.settings import LogSettings
from tests.log.given import (
    DIRECTORY,
    Producer,
    a_disk,
    append,
    append_many,
    batch,
    delete_records,
    fetch,
    open_log,
    read_all,
    settings,
    sync,
)


def segments(*summaries: tuple[int, int]) -> list[Segment]:
    """Segments of ten offsets each, by size and largest timestamp; the last is the active one."""
    made = []
    for number, (size_bytes, max_timestamp) in enumerate(summaries):
        segment = Segment(DIRECTORY, 10 * number, size_bytes=size_bytes)
        segment.end_offset = 10 * number + 10
        segment.max_timestamp = max_timestamp
        made.append(segment)
    return made


BY_TIME = settings(retention_ms=100)
BY_SIZE = settings(retention_bytes=250)
THREE = ((100, 0), (100, 50), (100, 90))


@pytest.mark.parametrize(
    ("made", "chosen", "now_ms", "limit", "expected"),
    [
        pytest.param(THREE, settings(), 10**6, 30, Decision(0, False), id="no retention"),
        pytest.param(THREE, BY_TIME, 100, 30, Decision(0, False), id="as old as allowed"),
        pytest.param(THREE, BY_TIME, 101, 30, Decision(10, False), id="the first is too old"),
        pytest.param(THREE, BY_TIME, 151, 30, Decision(20, False), id="all closed ones are"),
        pytest.param(THREE, BY_TIME, 191, 30, Decision(30, True), id="the active one too"),
        pytest.param(
            THREE, BY_TIME, 191, 29, Decision(20, False), id="the active one reaches beyond the limit"
        ),
        pytest.param(THREE, BY_TIME, 191, 15, Decision(10, False), id="the second reaches beyond the limit"),
        pytest.param(
            ((100, 90), (100, 0), (1, 0)), BY_TIME, 150, 30, Decision(0, False), id="only a prefix goes"
        ),
        pytest.param(((100, -1), (100, 0), (1, 0)), BY_TIME, 150, 30, Decision(0, False), id="no timestamps"),
        pytest.param(
            ((100, 0), (0, -1)), BY_TIME, 150, 20, Decision(10, False), id="an empty active one stays"
        ),
        pytest.param(THREE, BY_SIZE, 0, 30, Decision(0, False), id="too large by less than a segment"),
        pytest.param(((100, 0), (100, 0), (150, 0)), BY_SIZE, 0, 30, Decision(10, False), id="by a segment"),
        pytest.param(
            ((100, 0), (100, 0), (900, 0)), BY_SIZE, 0, 30, Decision(20, False), id="never the active one"
        ),
        pytest.param(
            ((100, 0), (100, 0), (900, 0)), BY_SIZE, 0, 10, Decision(10, False), id="not beyond the limit"
        ),
    ],
)
def test_what_is_kept(
    made: tuple[tuple[int, int], ...], chosen: LogSettings, now_ms: int, limit: int, expected: Decision
) -> None:
    decision = decide_retention(segments(*made), chosen, start_offset=0, limit_offset=limit, now_ms=now_ms)
    assert decision == expected


def test_what_a_lost_segment_held_is_not_given_up_beyond_the_limit() -> None:
    left = segments(*THREE)[1:]
    decisions = [
        decide_retention(left, BY_TIME, start_offset=0, limit_offset=limit, now_ms=50) for limit in (5, 10)
    ]
    assert decisions == [Decision(0, False), Decision(10, False)]


def test_files_go_only_up_to_the_start_that_is_durable() -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=320))
    append_many(log, 8)
    log.trimming.plan_start(Offset(9), limit_offset=Offset(16))
    assert log.trimming.take_removal(start_offset_durable=Offset(3)) is None
    removal = log.trimming.take_removal(start_offset_durable=Offset(4))
    assert removal is not None
    assert disk.exists(f"{DIRECTORY}/{0:020d}.log")
    removal.run()
    assert [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")] == [4, 8, 12]
    removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
    assert removal is not None
    removal.run()
    assert [int(name[:20]) for name in disk.list(DIRECTORY)] == [8, 8, 12]
    with pytest.raises(OffsetOutOfRange):
        fetch(log, 8)
    assert len(read_all(log)) == 4  # the batch in which the log starts is given whole


def test_records_cannot_be_deleted_beyond_the_limit_and_never_come_back() -> None:
    log = open_log(a_disk())
    append_many(log, 4)
    for offset in (-1, 7, 9):
        with pytest.raises(OffsetOutOfRange):
            log.trimming.plan_start(Offset(offset), limit_offset=Offset(6))
    log.trimming.plan_start(Offset(5), limit_offset=Offset(6))
    log.trimming.plan_start(Offset(2), limit_offset=Offset(6))
    assert log.trimming.planned_start_offset == 5


def test_nobody_is_told_of_a_start_before_it_is_durable() -> None:
    log = open_log(a_disk())
    append_many(log, 4)
    log.trimming.plan_start(Offset(5), limit_offset=Offset(6))
    assert log.start_offset == 0
    fetch(log, 0)
    assert log.trimming.take_removal(start_offset_durable=Offset(5)) is None
    assert log.start_offset == 5
    with pytest.raises(OffsetOutOfRange):
        fetch(log, 4)


def test_a_log_whose_last_record_expired_is_empty_and_goes_on_at_its_end() -> None:
    log = open_log(a_disk(), settings(retention_ms=100))
    append(log, batch([b"x"], timestamps=[50]))
    assert not log.trimming.plan_retention(limit_offset=Offset(1), now_ms=150)
    assert log.trimming.plan_retention(limit_offset=Offset(1), now_ms=151)
    assert log.trimming.planned_start_offset == 1
    removal = log.trimming.take_removal(start_offset_durable=Offset(1))
    assert removal is not None
    assert (log.start_offset, log.end_offset) == (1, 1)
    assert log.size_bytes == 0
    assert append(log).base_offset == 1


def test_a_reader_of_a_segment_that_is_removed_finishes_or_hears_that_it_is_gone() -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=320), files_max=1)
    append_many(log, 8)
    opened = log.locate(Offset(0), limit_offset=Offset(16), bytes_max=1)
    unopened = log.locate(Offset(2), limit_offset=Offset(16), bytes_max=1)
    assert opened is not None
    assert unopened is not None
    first = opened.read()
    log.trimming.plan_start(Offset(8), limit_offset=Offset(16))
    removal = log.trimming.take_removal(start_offset_durable=Offset(8))
    assert removal is not None
    removal.run()
    assert opened.read() == first
    with pytest.raises(OffsetOutOfRange):
        unopened.read()
    log.on_read(opened)


def a_batch_of_somebody() -> memoryview:
    return batch([b"x" * 100, b"y" * 100], producer=Producer(id=7))


def test_a_retry_of_what_was_deleted_is_known_after_a_crash() -> None:
    disk, chosen = a_disk(), settings(segment_bytes=320)
    log = open_log(disk, chosen)
    first = append(log, a_batch_of_somebody())
    append_many(log, 6)
    delete_records(log, 8)
    assert next(int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")) > 0
    log = open_log(disk, chosen, recovery_point=log.recovery_point, start_offset=log.start_offset)
    again = append(log, a_batch_of_somebody())
    assert (again.base_offset, again.duplicate) == (first.base_offset, True)


def test_a_retry_of_what_was_deleted_is_known_though_the_deletion_was_cut_short() -> None:
    """The start is durable, and neither has a snapshot been written nor a file been removed."""
    disk, chosen = a_disk(), settings(segment_bytes=320)
    log = open_log(disk, chosen)
    append(log, a_batch_of_somebody())
    append_many(log, 6)
    sync(log)
    log = open_log(disk, chosen, recovery_point=log.recovery_point, start_offset=8)
    assert next(int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")) > 0
    assert (log.start_offset, log.damaged) == (8, ())
    assert append(log, a_batch_of_somebody()).duplicate


def test_a_snapshot_that_tells_of_the_producers_is_not_written_again_for_a_deletion() -> None:
    log = open_log(a_disk(), settings(segment_bytes=320))
    append(log, a_batch_of_somebody())
    append_many(log, 6)
    log.trimming.plan_start(Offset(2), limit_offset=log.end_offset)
    assert log.trimming.forgets
    delete_records(log, 2)
    append_many(log, 1)
    sync(log)
    log.trimming.plan_start(Offset(4), limit_offset=log.end_offset)
    assert not log.trimming.forgets, "the one that was written for the first"


def test_where_nobody_is_known_nobody_is_forgotten() -> None:
    log = open_log(a_disk(), settings(segment_bytes=320))
    append_many(log, 6)
    log.trimming.plan_start(Offset(8), limit_offset=log.end_offset)
    assert not log.trimming.forgets
