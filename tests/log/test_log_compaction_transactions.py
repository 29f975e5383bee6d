"""What compaction leaves of transactions: no aborted record, and markers for as long as somebody may need them."""

from ropewalk.log.log import Log
from ropewalk.records.batch import BatchHeader, decode_header
from tests.log.given import a_disk, append, open_log, read_all, settings, sync
from tests.log.keyed import compact, keyed, records_of
from tests.log.transacted import aborted, end, stable, write

SMALL = settings(segment_bytes=400, compacts=True, delete_retention_ms=1000, producer_expiry_ms=10_000)
NOW_MS = 5000


def a_log() -> Log:
    return open_log(a_disk(), SMALL)


def finish(log: Log) -> None:
    """Close the last segment with something that stays, and let all be durable."""
    append(log, keyed([(b"end", b"x" * 250)]))
    append(log, keyed([(b"end of all", b"x" * 250)]))
    sync(log)


def keys(log: Log) -> list[bytes | None]:
    """Of all records but markers, whose keys are four bytes."""
    return [record.key for record in records_of(log) if record.key is None or len(record.key) != 4]


def markers(log: Log) -> list[BatchHeader]:
    headers = [decode_header(one) for one in read_all(log)]
    return [header for header in headers if header.is_control]


def test_records_of_aborted_transactions_go_and_make_nothing_superfluous() -> None:
    log = a_log()
    append(log, keyed([(b"k", b"before")]))
    write(log, producer=1, key=b"k")
    end(log, producer=1, committed=False)
    finish(log)
    compact(log, NOW_MS)
    assert keys(log) == [b"k", b"end", b"end of all"]
    assert aborted(log) == []


def test_records_of_committed_transactions_count_as_any_others() -> None:
    log = a_log()
    append(log, keyed([(b"k", b"before")]))
    write(log, producer=1, key=b"k")
    write(log, producer=1, key=b"l")
    end(log, producer=1)
    append(log, keyed([(b"l", b"after")]))
    finish(log)
    compact(log, NOW_MS)
    assert [record.offset for record in records_of(log) if record.key == b"k"] == [1]
    assert [record.offset for record in records_of(log) if record.key == b"l"] == [4]


def test_nothing_undecided_is_compacted() -> None:
    log = a_log()
    append(log, keyed([(b"k", b"v" * 300)]))
    append(log, keyed([(b"k", b"v" * 300)]))
    write(log, producer=1, key=b"k")
    finish(log)
    before = read_all(log)
    compact(log, NOW_MS, limit=stable(log))
    assert len(read_all(log)) == len(before)
    assert [record.offset for record in records_of(log) if record.key == b"k"] == [1, 2]


def test_a_marker_stays_while_its_transaction_has_records() -> None:
    log = a_log()
    write(log, producer=1, key=b"k", now_ms=0)
    end(log, producer=1, now_ms=0)
    finish(log)
    for now_ms in (20_000, 40_000, 60_000):
        take_snapshot(log, now_ms)
        append(log, keyed([(b"%d" % now_ms, b"x" * 250)]))
        sync(log)
        compact(log, now_ms)
    assert [header.base_offset for header in markers(log)] == [1]
    assert b"k" in keys(log)


def take_snapshot(log: Log, now_ms: int) -> None:
    """And forget who has been silent for long."""
    snapshot = log.maintenance.take_snapshot(now_ms, force=True)
    assert snapshot is not None
    snapshot.run()
    log.maintenance.on_snapshot(snapshot)


def test_a_marker_goes_when_its_time_is_over_and_its_producer_forgotten() -> None:
    log = a_log()
    write(log, producer=1, key=b"k", now_ms=0)
    end(log, producer=1, committed=False, now_ms=0)
    finish(log)
    compact(log, 5000)
    assert [header.delete_horizon_ms for header in markers(log)] == [None], "its producer is remembered"
    take_snapshot(log, 20_000)
    append(log, keyed([(b"another", b"x" * 250)]))
    sync(log)
    compact(log, 20_000)
    assert [header.delete_horizon_ms for header in markers(log)] == [21_000]
    assert compact(log, 20_999) is None
    compact(log, 21_000)
    assert markers(log) == []
    assert stable(log) == log.end_offset


def test_an_emptied_batch_begins_no_transaction() -> None:
    """Its producer is remembered by it, though its records and, one day, its marker are gone."""
    disk = a_disk()
    log = open_log(disk, SMALL)
    write(log, producer=1, key=b"k", sequence=0)
    end(log, producer=1, committed=False)
    finish(log)
    compact(log, NOW_MS)
    again = open_log(disk, SMALL, recovery_point=log.durable_offset)
    assert again.producers.open_transactions() == ()
    headers = [decode_header(one) for one in read_all(again)]
    assert [(header.producer_id, header.record_count, header.is_transactional) for header in headers][:1] == [
        (1, 0, False)
    ]


def test_readers_of_a_compacted_segment_hear_of_nothing_that_it_lost() -> None:
    """Not even before its file has its name. What is saved then would not be true of the files."""
    log = a_log()
    write(log, producer=1, key=b"k")
    end(log, producer=1, committed=False)
    finish(log)
    compaction = log.maintenance.take_compaction(limit_offset=log.end_offset, now_ms=NOW_MS)
    assert compaction is not None
    while compaction.replacement is None:
        compaction.run(1 << 20)
    assert aborted(log) == [(1, 0, 1)]
    replacement = compaction.replacement
    assert log.maintenance.install(replacement)
    assert aborted(log) == []
    assert log.maintenance.take_snapshot(NOW_MS, force=True) is None
    replacement.run()
    log.maintenance.on_installed(replacement)
    assert aborted(log) == []
    assert log.maintenance.take_snapshot(NOW_MS, force=True) is not None
