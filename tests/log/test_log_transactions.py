"""Transactions in one log: how far everything is decided, what was aborted, and which markers are taken."""

import msgspec
import pytest
from crc32c import crc32c

from ropewalk.base.errors import (
    InvalidTransactionState,
    OutOfOrderSequence,
    ProducerFenced,
    RopewalkError,
    StorageFailed,
    TransactionCoordinatorFenced,
)
from ropewalk.base.ids import Offset
from ropewalk.base.ports import read_whole, write_atomically
from ropewalk.log import aborted as aborted_room
from ropewalk.log import transactions
from ropewalk.log.aborted import ABORTED_SUFFIX
from ropewalk.log.log import Log
from ropewalk.log.snapshot import read_snapshot
from ropewalk.log.transactions import Transactions
from ropewalk.records.batch import decode_header
from ropewalk.runtime.memory_disk import MemoryDisk
from tests.log.given import (
    DIRECTORY,
    Producer,
    a_disk,
    append,
    batch,
    close,
    open_log,
    read_all,
    settings,
    sync,
    truncate,
)
from tests.log.transacted import aborted, end, stable, transacted, write


def test_an_open_transaction_holds_readers_back() -> None:
    log = open_log(a_disk())
    append(log)
    assert write(log) == 1
    append(log)
    assert stable(log) == 1
    end(log)
    assert stable(log) == 4


def test_of_several_the_first_record_counts() -> None:
    log = open_log(a_disk())
    write(log, producer=1)
    write(log, producer=2)
    end(log, producer=1)
    assert stable(log) == 1
    write(log, producer=1)
    end(log, producer=2)
    assert stable(log) == 3


def test_a_marker_counts_when_the_high_watermark_has_passed_it() -> None:
    log = open_log(a_disk())
    append(log)
    write(log)
    append(log)
    end(log)
    assert stable(log, 0) == 0
    assert stable(log, 3) == 1
    assert stable(log, 4) == 4


def test_one_that_ended_within_another_is_held_back_with_it() -> None:
    log = open_log(a_disk())
    write(log, producer=1)
    write(log, producer=2)
    end(log, producer=2)
    end(log, producer=1)
    assert stable(log, 3) == 0
    assert stable(log, 4) == 4


def test_a_marker_without_records_before_it_leaves_no_trace() -> None:
    log = open_log(a_disk())
    end(log, committed=False)
    assert stable(log, 0) == 0
    assert stable(log) == 1
    assert aborted(log) == []


def test_aborted_ones_are_told_of_where_their_records_are() -> None:
    log = open_log(a_disk())
    write(log, producer=1, count=2)
    write(log, producer=2, count=2)
    end(log, producer=1, committed=False)
    write(log, producer=3)
    end(log, producer=3)
    end(log, producer=2, committed=False)
    assert aborted(log) == [(1, 0, 4), (2, 2, 7)]
    assert aborted(log, 5) == [(2, 2, 7)]
    assert aborted(log, 0, 2) == [(1, 0, 4)]
    assert aborted(log, 8) == []


def test_in_a_transaction_a_producer_writes_nothing_else() -> None:
    log = open_log(a_disk())
    write(log, sequence=0)
    with pytest.raises(InvalidTransactionState):
        append(log, batch(producer=Producer(7, 0, 1)))
    end(log)
    append(log, batch(producer=Producer(7, 0, 1)))


def test_after_a_marker_has_raised_the_epoch_sequences_begin_anew() -> None:
    log = open_log(a_disk())
    write(log, epoch=0, sequence=0)
    end(log, epoch=1, version=2)
    with pytest.raises(OutOfOrderSequence):
        write(log, epoch=1, sequence=1)
    with pytest.raises(ProducerFenced):
        write(log, epoch=0, sequence=1)
    write(log, epoch=1, sequence=0)


@pytest.mark.parametrize(
    ("version", "is_open", "epoch", "expected"),
    [
        (0, True, 4, ProducerFenced),
        (0, True, 5, "written"),
        (0, True, 6, "written"),
        (0, False, 4, ProducerFenced),
        (0, False, 5, "written"),
        (0, False, 6, "written"),
        (1, True, 5, "written"),
        (2, True, 4, ProducerFenced),
        (2, True, 5, ProducerFenced),
        (2, True, 6, "written"),
        (2, False, 4, ProducerFenced),
        (2, False, 5, "found"),
        (2, False, 6, "written"),
    ],
)
def test_which_markers_end_a_transaction(
    version: int, is_open: bool, epoch: int, expected: str | type[RopewalkError]
) -> None:
    """KIP-1228, and KAFKA-19999 for the one that came before."""
    log = open_log(a_disk())
    write(log, epoch=4)
    end(log, epoch=5, version=2)
    if is_open:
        write(log, epoch=5)
    before = log.end_offset
    if isinstance(expected, str):
        is_written = end(log, epoch=epoch, version=version) is not None
        assert ("written" if is_written else "found") == expected
        assert log.end_offset == before + int(is_written)
        assert not log.producers.open_transactions()
    else:
        with pytest.raises(expected):
            end(log, epoch=epoch, version=version)
        assert log.end_offset == before
        assert bool(log.producers.open_transactions()) == is_open


@pytest.mark.parametrize("version", [0, 2])
def test_a_coordinator_that_was_succeeded_ends_nothing(version: int) -> None:
    log = open_log(a_disk())
    write(log)
    end(log, epoch=1, coordinator=3)
    write(log, epoch=1)
    with pytest.raises(TransactionCoordinatorFenced):
        end(log, epoch=2, coordinator=2, version=version)
    assert stable(log) == 2
    end(log, epoch=2, coordinator=3, version=version)


def test_a_marker_of_a_forgotten_producer_is_taken() -> None:
    log = open_log(a_disk())
    assert end(log, epoch=9, version=2) is not None
    assert [(each.producer_id, each.epoch) for each in log.producers.active()] == [(7, 9)]


def test_whoever_has_a_transaction_open_is_not_forgotten() -> None:
    disk = a_disk()
    chosen = settings(producer_expiry_ms=1000)
    log = open_log(disk, chosen)
    write(log, producer=7, sequence=0, now_ms=1000)
    write(log, producer=8, sequence=0, now_ms=1000)
    end(log, producer=8, now_ms=1000)
    close(log, now_ms=10_000)
    again = open_log(disk, chosen, recovery_point=3, clean=True, now_ms=20_000)
    assert [each.producer_id for each in again.producers.active()] == [7]
    with pytest.raises(OutOfOrderSequence):
        write(again, sequence=5)


@pytest.mark.parametrize("how", ["closed", "snapshot", "whole"])
def test_transactions_are_as_before_after_a_start(how: str) -> None:
    disk = a_disk()
    log = open_log(disk)
    write(log, producer=1, epoch=2)
    write(log, producer=2)
    end(log, producer=2, committed=False, coordinator=6)
    write(log, producer=3)
    end(log, producer=3)
    if how == "snapshot":
        sync(log)
        snapshot = log.maintenance.take_snapshot(1000, force=True)
        assert snapshot is not None
        snapshot.run()
    write(log, producer=3)
    if how == "closed":
        close(log)
    else:
        sync(log)
    again = open_log(disk, recovery_point=6, clean=how == "closed")
    assert [
        (each.producer_id, each.producer_epoch, each.first_offset)
        for each in again.producers.open_transactions()
    ] == [
        (1, 2, 0),
        (3, 0, 5),
    ]
    assert aborted(again) == [(2, 1, 2)]
    assert stable(again) == 0
    end(again, producer=1, epoch=2)
    assert stable(again, 5) == 0
    assert stable(again) == 5
    with pytest.raises(TransactionCoordinatorFenced):
        end(again, producer=2, coordinator=5)


def test_a_cut_takes_a_marker_back() -> None:
    log = open_log(a_disk())
    write(log)
    end(log, committed=False)
    truncate(log, 1)
    assert aborted(log) == []
    assert stable(log) == 0
    end(log, committed=True)
    assert stable(log) == 2
    assert aborted(log) == []


def test_a_follower_knows_what_its_leader_knows() -> None:
    leader, follower = open_log(a_disk()), open_log(a_disk())
    write(leader, producer=1)
    write(leader, producer=2)
    end(leader, producer=1, committed=False, coordinator=4)
    write(leader, producer=3)
    end(leader, producer=3)
    for one in read_all(leader):
        follower.append_as_follower(memoryview(one), decode_header(one), now_ms=1000)
    assert follower.producers.open_transactions() == leader.producers.open_transactions()
    assert aborted(follower) == aborted(leader) == [(1, 0, 2)]
    assert [stable(follower, at) for at in (2, 5)] == [stable(leader, at) for at in (2, 5)] == [0, 1]
    with pytest.raises(TransactionCoordinatorFenced):
        end(follower, producer=1, epoch=1, coordinator=3)


def test_very_many_that_ended_above_the_high_watermark_hold_nobody_back_too_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "UNSETTLED_TRANSACTIONS_MAX", 8)
    exact, coarse = open_log(a_disk()), Transactions()
    for number in range(50):
        write(exact, producer=number)
        coarse.write(decode_header(transacted(producer=number)), number * 2, 1000)
        end(exact, producer=number)
        coarse.end(number, committed=True, marker_offset=number * 2 + 1)
    assert len(coarse.save().unsettled) <= 9
    before = 0
    for high_watermark in range(101):
        found = coarse.stable_offset(high_watermark)
        assert before <= found <= stable(exact, high_watermark)
        before = found
    assert before == 100


def test_the_marker_of_a_forgotten_producer_says_nothing_about_its_sequences() -> None:
    log = open_log(a_disk())
    end(log, epoch=3)
    write(log, epoch=3, sequence=40)
    with pytest.raises(OutOfOrderSequence):
        write(log, epoch=3, sequence=50)


def many_aborted(disk: MemoryDisk, count: int = 10) -> Log:
    """A log whose aborted transactions have left memory, at their markers' offsets 1, 3, …"""
    log = open_log(disk, settings(segment_bytes=400))
    for producer in range(count):
        write(log, producer=producer)
        end(log, producer=producer, committed=False)
    sync(log)
    snapshot = log.maintenance.take_snapshot(1000, force=True)
    assert snapshot is not None
    snapshot.run()
    log.maintenance.on_snapshot(snapshot)
    return log


def files(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(DIRECTORY) if name.endswith(ABORTED_SUFFIX)]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aborted_room, "ABORTED_CHUNK_COUNT", 4)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("harm", ["rotten", "missing", "another"])
def test_a_list_of_aborted_transactions_that_was_harmed_is_made_anew(harm: str) -> None:
    disk = a_disk()
    log = many_aborted(disk)
    expected = aborted(log)
    first, second = [f"{DIRECTORY}/{name}" for name in files(disk)]
    stored = read_whole(disk, second)
    match harm:
        case "rotten":
            write_atomically(disk, second, stored[:-1] + bytes([stored[-1] ^ 1]))
        case "missing":
            disk.remove(second)
        case _:
            write_atomically(disk, second, read_whole(disk, first))
    with pytest.raises(StorageFailed):
        aborted(log)
    assert aborted(log, 0, 4) == expected[:2], "what lies elsewhere is told"
    again = open_log(disk, settings(segment_bytes=400), recovery_point=20)
    assert aborted(again) == expected


@pytest.mark.usefixtures("small_chunks")
def test_what_ended_below_the_start_of_the_log_is_forgotten_with_its_file() -> None:
    disk = a_disk()
    log = many_aborted(disk)
    assert len(files(disk)) == 2
    log.trimming.plan_start(Offset(9), limit_offset=log.end_offset)
    removal = log.trimming.take_removal(start_offset_durable=Offset(9))
    assert removal is not None
    removal.run()
    assert len(files(disk)) == 1
    assert aborted(log) == [(producer, producer * 2, producer * 2 + 1) for producer in range(4, 10)]
    again = open_log(disk, settings(segment_bytes=400), recovery_point=20, start_offset=9)
    assert aborted(again) == aborted(log)


@pytest.mark.usefixtures("small_chunks")
def test_what_was_cut_off_is_not_told_of_again() -> None:
    disk = a_disk()
    log = many_aborted(disk)
    truncate(log, 10)
    assert [last for _, _, last in aborted(log)] == [1, 3, 5, 7, 9]
    write(log, producer=50)
    end(log, producer=50, committed=False)
    assert aborted(log)[-1] == (50, 10, 11)
    close(log)
    assert aborted(open_log(disk, settings(segment_bytes=400), recovery_point=12, clean=True)) == aborted(log)


def test_a_snapshot_from_before_there_were_transactions_is_read() -> None:
    disk = a_disk()
    old = {
        "end_offset": 3,
        "epochs": [[0, 0]],
        "producers": [[7, 2, 1000, False, [[0, 0, 1, 2]]]],
        "closed": [],
        "tail": [0, 100, 1000, 1000],
        "compacted_offset": 0,
    }
    payload = msgspec.msgpack.encode(old)
    path = f"{DIRECTORY}/{3:020d}.snapshot"
    write_atomically(disk, path, b"RWS1" + crc32c(payload).to_bytes(4, "little") + payload)
    snapshot = read_snapshot(disk, DIRECTORY, 3)
    assert snapshot is not None
    assert [(each.producer_id, each.epoch, each.coordinator_epoch) for each in snapshot.producers] == [
        (7, 2, -1)
    ]
    assert snapshot.transactions.open == []


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_of_a_producer_whose_batches_are_all_deleted_only_a_snapshot_tells(has_snapshot: bool) -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=400))
    for producer in range(10):
        write(log, producer=producer)
        end(log, producer=producer)
    sync(log)
    if has_snapshot:
        snapshot = log.maintenance.take_snapshot(1000, force=True)
        assert snapshot is not None
        snapshot.run()
        log.maintenance.on_snapshot(snapshot)
    log.trimming.plan_start(Offset(18), limit_offset=log.end_offset)
    removal = log.trimming.take_removal(start_offset_durable=Offset(18))
    assert removal is not None
    removal.run()
    assert log.producers.knows(0), "whoever runs forgets nobody"
    again = open_log(disk, settings(segment_bytes=400), recovery_point=20, start_offset=18)
    assert again.producers.knows(9), "its batches are in the log"
    assert again.producers.knows(0) == has_snapshot
