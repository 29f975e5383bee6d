"""What a pass of compaction does to a log, case by case."""

from collections.abc import Sequence

import pytest

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import Offset
from ropewalk.log.cleanable import Progress, decide_compaction
from ropewalk.log.log import Log
from ropewalk.log.segment import Segment
from ropewalk.log.settings import LogSettings
from ropewalk.records.batch import DELETE_HORIZON, HEADER_BYTES, decode_header, stamp_append_time
from ropewalk.records.codec import Codec
from ropewalk.runtime.memory_disk import MemoryDisk
from tests.log.given import (
    DIRECTORY,
    Producer,
    a_disk,
    append,
    batches_in,
    close,
    fetch,
    open_log,
    read_all,
    settings,
    spoil,
    sync,
)
from tests.log.keyed import compact, keyed, records_of

SMALL = settings(segment_bytes=400, index_interval_bytes=100, compacts=True)
NOW_MS = 5000


def a_log(batches: Sequence[memoryview], chosen: LogSettings = SMALL) -> tuple[MemoryDisk, Log]:
    """The batches, and one more that closes their last segment."""
    disk = a_disk()
    log = open_log(disk, chosen)
    for made in batches:
        append(log, made)
    append(log, keyed([(b"end", b"x" * 300)]))
    sync(log)
    return disk, log


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(log)]


def versions(count: int, *, codec: Codec = Codec.NONE) -> list[memoryview]:
    """Batches of a changing key and one that is never written again."""
    return [
        keyed([(b"k", b"%050d" % number), (b"only-%d" % number, b"v" * 20)], codec=codec)
        for number in range(count)
    ]


@pytest.mark.parametrize("codec", Codec)
def test_the_last_value_of_every_key_stays_where_it_was(codec: Codec) -> None:
    _, log = a_log(versions(20, codec=codec))
    before = read_all(log)
    size_bytes = log.size_bytes
    assert compact(log, NOW_MS) is not None
    assert contents(log) == [
        *((2 * number + 1, b"only-%d" % number, b"v" * 20) for number in range(19)),
        (38, b"k", b"%050d" % 19),
        (39, b"only-19", b"v" * 20),
        (40, b"end", b"x" * 300),
    ]
    assert log.size_bytes < size_bytes
    after = read_all(log)
    assert [decode_header(one).codec for one in after] == [decode_header(one).codec for one in before]
    assert [decode_header(one).end_offset for one in after] == [
        decode_header(one).end_offset for one in before
    ]
    assert after[-2:] == before[-2:]  # what loses nothing is not touched


def test_batches_that_are_gone_leave_one_empty_batch_that_takes_up_their_offsets() -> None:
    disk, log = a_log([keyed([(b"k", b"v" * 50)]) for _ in range(30)])
    assert compact(log, NOW_MS) is not None
    headers = [decode_header(one) for one in read_all(log)]
    assert [(h.base_offset, h.end_offset, h.record_count) for h in headers] == [
        (0, 29, 0),
        (29, 30, 1),
        (30, 31, 1),
    ]
    assert headers[0].size_bytes == HEADER_BYTES
    assert log.segment_count == 2  # what is left of twelve segments fits one
    assert sorted(name for name in disk.list(DIRECTORY) if name.endswith((".log", ".swap", ".cleaned"))) == [
        f"{0:020d}.log",
        f"{30:020d}.log",
    ]
    for offset in (0, 7, 28):
        assert [decode_header(one).base_offset for one in batches_in(fetch(log, offset))][:2] == [0, 29]


def test_a_tombstone_stays_for_its_time_and_says_until_when() -> None:
    _, log = a_log(
        [keyed([(b"k", b"v" * 80)], timestamp=77), keyed([(b"k", None), (b"l", b"w" * 200)], timestamp=99)]
    )
    assert compact(log, NOW_MS) is not None
    assert contents(log)[:2] == [(1, b"k", None), (2, b"l", b"w" * 200)]
    batch = read_all(log)[1]
    header = decode_header(batch)
    assert header.attributes & DELETE_HORIZON
    assert (header.delete_horizon_ms, header.base_timestamp, header.max_timestamp) == (6000, 6000, 100)
    assert [record.timestamp for record in records_of(log)][:2] == [99, 100]
    assert compact(log, 5999) is None
    assert compact(log, 6000) is not None  # though nothing was written since
    assert contents(log)[:1] == [(2, b"l", b"w" * 200)]


def test_the_horizon_counts_from_the_first_pass_not_from_the_last() -> None:
    _, log = a_log([keyed([(b"k", None), (b"l", b"w" * 200)])])
    compact(log, NOW_MS)
    for number in range(4):
        append(log, keyed([(b"other-%d" % number, b"x" * 250)]))
    sync(log)
    assert compact(log, 5900) is not None
    assert contents(log)[0] == (0, b"k", None)
    assert compact(log, 6000) is not None
    assert contents(log)[0] == (1, b"l", b"w" * 200)


def test_a_control_batch_that_is_no_marker_stays_and_makes_nothing_superfluous() -> None:
    made = keyed([(b"k", b"v" * 200)], is_control=True)
    _, log = a_log([keyed([(b"k", b"first" * 40)]), *(memoryview(bytearray(made)) for _ in range(2))])
    before = read_all(log)
    compact(log, NOW_MS)
    assert read_all(log) == before


def test_records_without_a_key_go() -> None:
    _, log = a_log([keyed([(None, b"v" * 200), (b"k", b"w")]), keyed([(None, b"v" * 200)])])
    compact(log, NOW_MS)
    assert contents(log) == [(1, b"k", b"w"), (3, b"end", b"x" * 300)]


def test_a_batch_that_cannot_be_opened_stays() -> None:
    broken = keyed([(b"k", b"v" * 200)])
    broken[HEADER_BYTES] = 2  # its record claims one byte
    stamp_append_time(broken, 1000)  # which renews the CRC
    _, log = a_log([broken, keyed([(b"k", b"w" * 200)]), keyed([(b"k", b"w" * 200)])])
    compact(log, NOW_MS)
    left = [decode_header(one) for one in read_all(log)]
    assert [(header.base_offset, header.record_count) for header in left] == [(0, 1), (1, 0), (2, 1), (3, 1)]


@pytest.mark.parametrize("keep_snapshots", [True, False])
def test_a_retry_is_told_after_its_records_are_gone(keep_snapshots: bool) -> None:
    made = [keyed([(b"k", b"v" * 100)], producer=Producer(sequence=number)) for number in range(9)]
    sent = [bytearray(one) for one in made]
    disk, log = a_log([*made, keyed([(b"k", b"last" * 40)])])
    compact(log, NOW_MS)
    assert [decode_header(one).base_sequence for one in read_all(log)][:6] == [-1, 4, 5, 6, 7, 8]
    for name in disk.list(DIRECTORY):
        if name.endswith(".snapshot") and not keep_snapshots:
            disk.remove(f"{DIRECTORY}/{name}")
    log = open_log(disk, SMALL, recovery_point=log.recovery_point)
    for number in (4, 8):
        appended = append(log, memoryview(sent[number]))
        assert (appended.base_offset, appended.duplicate) == (number, True)
    assert not append(log, keyed([(b"k", b"v")], producer=Producer(sequence=9))).duplicate


def test_keys_that_do_not_fit_take_several_passes() -> None:
    _, log = a_log([keyed([(b"%d" % (number % 7), b"v" * 50)]) for number in range(60)])
    ends = []
    while (
        compaction := log.maintenance.take_compaction(limit_offset=log.end_offset, now_ms=NOW_MS, keys_max=3)
    ) is not None:
        while not compaction.is_over:
            compaction.run(1 << 20)
            if compaction.replacement is not None:
                replacement = compaction.replacement
                assert log.maintenance.install(replacement)
                replacement.run()
                log.maintenance.on_installed(replacement)
                compaction.replacement = None
        log.maintenance.on_compacted(compaction)
        ends.append(compaction.compacted_offset)
    assert ends == sorted(set(ends))
    assert len(ends) > 10
    assert [record.offset for record in records_of(log)] == [*range(53, 61)]


def test_the_active_segment_and_what_is_above_the_limit_are_left_alone() -> None:
    _, log = a_log([keyed([(b"k", b"v" * 100)]) for _ in range(12)])  # two batches to a segment
    assert compact(log, NOW_MS, limit=5) is not None
    assert [record.offset for record in records_of(log)] == [3, *range(4, 13)]
    append(log, keyed([(b"k", b"v" * 310)]))  # not durable, so not the last of its key for sure
    assert compact(log, NOW_MS) is not None
    assert [record.offset for record in records_of(log)] == [11, 12, 13]


def segment(base: int, end: int, *, size_bytes: int, max_timestamp: int, opened_at_ms: int = 0) -> Segment:
    made = Segment(DIRECTORY, base, size_bytes=size_bytes)
    made.end_offset, made.max_timestamp, made.opened_at_ms = end, max_timestamp, opened_at_ms
    return made


SEGMENTS = [
    segment(0, 10, size_bytes=100, max_timestamp=10, opened_at_ms=5),
    segment(10, 20, size_bytes=100, max_timestamp=20, opened_at_ms=15),
    segment(20, 30, size_bytes=200, max_timestamp=30, opened_at_ms=25),
    segment(30, 40, size_bytes=100, max_timestamp=40, opened_at_ms=35),
]


@pytest.mark.parametrize(
    ("chosen", "progress", "limit", "now_ms", "count"),
    [
        pytest.param(settings(), Progress(0), 40, 100, 3, id="all but the active segment"),
        pytest.param(settings(), Progress(0), 29, 100, 2, id="nothing that reaches beyond the limit"),
        pytest.param(settings(), Progress(0), 9, 100, 0, id="a limit in the first segment"),
        pytest.param(settings(), Progress(30), 40, 100, 0, id="all is compacted"),
        pytest.param(settings(), Progress(30, 101), 40, 100, 0, id="tombstones that must stay"),
        pytest.param(settings(), Progress(30, 100), 40, 100, 3, id="tombstones that may go"),
        pytest.param(settings(min_cleanable_dirty_ratio=0.5), Progress(20), 40, 100, 3, id="half is dirty"),
        pytest.param(
            settings(min_cleanable_dirty_ratio=0.51), Progress(20), 40, 100, 0, id="less is dirty than wanted"
        ),
        pytest.param(settings(min_compaction_lag_ms=80), Progress(0), 40, 100, 2, id="one is too young"),
        pytest.param(settings(min_compaction_lag_ms=91), Progress(0), 40, 100, 0, id="all are too young"),
        pytest.param(
            settings(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=75),
            Progress(20),
            40,
            100,
            3,
            id="overdue",
        ),
        pytest.param(
            settings(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=76),
            Progress(20),
            40,
            100,
            0,
            id="not yet",
        ),
    ],
)
def test_when_a_pass_is_due_and_how_far_it_goes(
    chosen: LogSettings, progress: Progress, limit: int, now_ms: int, count: int
) -> None:
    found = decide_compaction(SEGMENTS, chosen, progress, limit_offset=limit, now_ms=now_ms)
    assert list(found) == SEGMENTS[:count]


def test_a_log_that_is_not_to_be_compacted_is_not() -> None:
    _, log = a_log(versions(20), settings(segment_bytes=400))
    assert compact(log, NOW_MS) is None


def test_what_was_compacted_is_known_after_a_restart() -> None:
    disk, log = a_log(versions(20))
    compact(log, NOW_MS)
    close(log)
    log = open_log(disk, SMALL, clean=True)
    assert log.recovered.is_clean
    assert log.recovered.scanned_bytes == 0
    assert compact(log, NOW_MS) is None


def test_times_lead_to_records_that_are_left() -> None:
    made = [keyed([(b"k", b"v" * 100), (b"k", b"v" * 100)], timestamp=100 * number) for number in range(10)]
    for one in made[4:]:
        stamp_append_time(one, decode_header(one).max_timestamp)
    _, log = a_log([*made, keyed([(b"k", b"z" * 100), (b"l", b"z" * 100)], timestamp=500)])
    compact(log, NOW_MS)
    assert [(record.offset, record.timestamp) for record in records_of(log)] == [
        (20, 500),
        (21, 501),
        (22, 1000),
    ]
    end_offset = log.end_offset
    for timestamp, offset in ((0, 20), (501, 21), (901, 22)):
        found = log.offset_for_timestamp(timestamp, limit_offset=end_offset)
        assert found is not None
        assert found.offset == offset
    assert log.offset_for_timestamp(501, limit_offset=Offset(21)) is None
    largest = log.offset_of_max_timestamp(limit_offset=Offset(22))
    assert largest is not None
    assert (largest.offset, largest.timestamp) == (21, 501)


def test_a_time_stamped_by_the_broker_does_not_lead_to_a_record_that_is_gone() -> None:
    made = keyed([(b"k", b"v" * 100), (b"l", b"v" * 100)])
    stamp_append_time(made, 700)
    _, log = a_log([made, keyed([(b"k", b"v" * 200)])])
    compact(log, NOW_MS)
    found = log.offset_for_timestamp(700, limit_offset=log.end_offset)
    assert found is not None
    assert found.offset == 1


def test_readers_of_a_segment_that_was_replaced_finish() -> None:
    _, log = a_log(versions(20))
    before = read_all(log)
    spans = [
        span
        for offset in range(0, 40, 2)
        if (span := log.locate(Offset(offset), limit_offset=log.end_offset, bytes_max=1)) is not None
    ]
    compact(log, NOW_MS)
    assert [bytes(span.read()) for span in spans] == before[:20]
    for span in spans:
        log.on_read(span)
    assert log.damaged == ()
    assert len(records_of(log)) == 22


def flip(disk: MemoryDisk, path: str, position: int) -> None:
    file = disk.open(path)
    data = bytearray(file.read(0, file.size()))
    data[position] ^= 0x10
    file.truncate(0)
    file.append(bytes(data))


def test_rot_in_a_compacted_segment_is_refused_and_all_around_it_is_served() -> None:
    disk, log = a_log(versions(6), settings(segment_bytes=700, compacts=True))
    compact(log, NOW_MS)
    batches = read_all(log)
    path = f"{DIRECTORY}/{0:020d}.log"
    position = 0
    for number, one in enumerate(batches[:3]):
        for where in (5, 13, 22, 60, 70):
            flip(disk, path, position + where)
            rotten = open_log(disk, recovery_point=log.recovery_point, leader_epoch_max=0)
            base_offset = decode_header(one).base_offset
            with pytest.raises(StorageFailed):
                fetch(rotten, base_offset)
            for other in batches[:number] + batches[number + 1 :]:
                assert batches_in(fetch(rotten, decode_header(other).base_offset, bytes_max=1)) == [other]
            flip(disk, path, position + where)
        position += len(one)


@pytest.mark.parametrize("base_offset", [0, 4, 8])
@pytest.mark.parametrize("where", [5, 13, 90], ids=["offset", "leader epoch", "record"])
def test_rotten_bytes_are_never_given_a_valid_checksum(base_offset: int, where: int) -> None:
    disk, log = a_log(versions(20))
    before = [name for name in disk.list(DIRECTORY) if name.endswith(".log")]
    flip(disk, f"{DIRECTORY}/{base_offset:020d}.log", where)
    compaction = compact(log, NOW_MS)
    assert compaction is not None
    assert not compaction.is_complete
    assert len(log.damaged) == 1
    assert [name for name in disk.list(DIRECTORY) if name.endswith((".log", ".cleaned"))] == before
    assert compact(log, NOW_MS) is None  # what cannot be read might be the last of its key


def test_a_bad_sector_ends_the_pass_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, log = a_log(versions(20))
    spoil(monkeypatch, disk, f"{DIRECTORY}/{4:020d}.log")
    compaction = compact(log, NOW_MS)
    assert compaction is not None
    assert not compaction.is_complete
    assert [damaged.start_offset for damaged in log.damaged] == [4]
    assert compact(log, NOW_MS) is None


def test_a_segment_deleted_under_a_pass_ends_it_and_nothing_is_installed() -> None:
    disk, log = a_log(versions(20))
    compaction = log.maintenance.take_compaction(limit_offset=log.end_offset, now_ms=NOW_MS)
    assert compaction is not None
    while compaction.replacement is None:
        compaction.run(1 << 20)
    log.trimming.plan_start(Offset(8), limit_offset=log.end_offset)
    removal = log.trimming.take_removal(start_offset_durable=Offset(8))
    assert removal is not None
    removal.run()
    assert not log.maintenance.install(compaction.replacement)
    compaction.abandon()
    log.maintenance.on_compacted(compaction)
    assert not [name for name in disk.list(DIRECTORY) if name.endswith(".cleaned")]
    assert compact(log, NOW_MS) is not None
    assert [record.offset for record in records_of(log)][-3:] == [38, 39, 40]


def test_a_segment_is_not_removed_while_its_file_is_being_named() -> None:
    disk, log = a_log(versions(20))
    compaction = log.maintenance.take_compaction(limit_offset=log.end_offset, now_ms=NOW_MS)
    assert compaction is not None
    while compaction.replacement is None:
        compaction.run(1 << 20)
    replacement = compaction.replacement
    assert log.maintenance.install(replacement)
    log.trimming.plan_start(log.end_offset, limit_offset=log.end_offset)
    assert log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset) is None
    replacement.run()
    log.maintenance.on_installed(replacement)
    removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
    assert removal is not None
    removal.run()
    assert [name for name in disk.list(DIRECTORY) if name.endswith(".log")] == [f"{40:020d}.log"]


def test_what_holds_no_records_is_never_a_segment_of_its_own_before_others() -> None:
    log = open_log(a_disk(), SMALL)
    for epoch, key in enumerate((b"k", b"k", b"l", b"k", b"end")):  # one to a segment
        append(log, keyed([(key, b"v" * 310)]), epoch=epoch)
    sync(log)
    compact(log, NOW_MS)
    headers = [decode_header(one) for one in batches_in(fetch(log, 0))]
    assert [(header.base_offset, header.record_count) for header in headers] == [(0, 0), (1, 0), (2, 1)]
    assert log.segment_count == 3


def test_a_log_knows_below_where_deletions_were_removed_from_it() -> None:
    disk, log = a_log([keyed([(b"k", b"v" * 80)]), keyed([(b"k", None), (b"l", b"w" * 200)])])
    assert (log.erasures.end_offset, log.erasures.count) == (0, 0)
    assert compact(log, NOW_MS) is not None  # the value goes, the deletion stays
    assert (log.erasures.end_offset, log.erasures.count) == (0, 0)
    assert compact(log, 6000) is not None
    assert (log.erasures.end_offset, log.erasures.count) == (2, 1)
    append(log, keyed([(b"k", b"again")]))
    sync(log)
    assert log.erasures.end_offset == 2
    again = open_log(disk, SMALL, recovery_point=log.end_offset)
    assert again.erasures.end_offset == log.end_offset  # nobody remembers what a former process removed
