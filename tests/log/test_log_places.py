"""Places: a log knows where the state of every owner begins, and keeps it, however it comes to know."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import OffsetOutOfRange
from ropewalk.base.ids import Offset
from ropewalk.base.limits import PLACES_PER_OWNER_MAX
from ropewalk.log.log import Log
from ropewalk.log.places import Place, Places, SavedOwner
from ropewalk.log.segment import path_of
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import Snapshot, read_snapshot
from ropewalk.records.batch import decode_header
from ropewalk.records.control import BEGINS_HERE, NOT_WHOLE, OWNER_GONE, StateKey
from tests.log.given import (
    DIRECTORY,
    a_disk,
    append_many,
    close,
    open_log,
    read_all,
    settings,
    sync,
    truncate,
)
from tests.log.keyed import compact
from tests.log.stateful import OTHER, OWNER, OWNERS, last_places, wish_start, write, write_whole


@pytest.mark.parametrize(
    ("noted", "high_watermark", "left"),
    [
        pytest.param([(BEGINS_HERE, 5)], 0, [Place(5, 5)], id="in one piece"),
        pytest.param([(3, 5)], 0, [Place(3, 5)], id="in pieces"),
        pytest.param([(NOT_WHOLE, 5)], 0, [], id="a delta"),
        pytest.param([(9, 5)], 0, [], id="one that begins behind itself"),
        pytest.param([(3, 5), (7, 9)], 9, [Place(3, 5), Place(7, 9)], id="may yet be cut"),
        pytest.param([(3, 5), (7, 9)], 10, [Place(7, 9)], id="cannot be cut"),
        pytest.param([(OWNER_GONE, 5)], 0, [], id="nobody knew it"),
        pytest.param([(3, 5), (OWNER_GONE, 9)], 9, [Place(3, 5), Place(OWNER_GONE, 9)], id="may come back"),
        pytest.param([(3, 5), (OWNER_GONE, 9)], 10, [], id="gone for good"),
        pytest.param([(3, 5), (OWNER_GONE, 9), (11, 12)], 10, [Place(11, 12)], id="came back"),
    ],
)
def test_what_is_kept_of_an_owner(
    noted: list[tuple[int, int]], high_watermark: int, left: list[Place]
) -> None:
    places = Places()
    for snapshot_start, base_offset in noted:
        places.note(StateKey(OWNER, snapshot_start), base_offset)
    places.settle(high_watermark)
    assert places.save() == ([SavedOwner(OWNER, left)] if left else [])


def test_many_unsettled_places_are_bounded_and_the_first_holds() -> None:
    places = Places()
    for offset in range(100):
        places.note(StateKey(OWNER, BEGINS_HERE), offset)
    (saved,) = places.save()
    assert len(saved.places) == PLACES_PER_OWNER_MAX
    assert (places.held_from(), places.last_of(OWNER)) == (0, Place(99, 99))


def test_deletion_stops_at_the_place_and_says_who_holds_it_up() -> None:
    log = open_log(a_disk(), settings(segment_bytes=300))
    append_many(log, 5)
    place = write_whole(log, piece_count=3)
    append_many(log, 5)
    later = write_whole(log, OTHER)
    sync(log)
    assert log.trimming.held_up_by() == ()
    assert wish_start(log, log.end_offset) == place.start_offset
    assert log.trimming.held_up_by() == (OWNER, OTHER)
    write_whole(log)
    sync(log)
    assert wish_start(log, log.end_offset) == later.start_offset
    assert log.trimming.held_up_by() == (OWNER, OTHER)


def test_deletion_within_what_is_free_is_held_up_by_nobody() -> None:
    log = open_log(a_disk())
    append_many(log, 5)
    write_whole(log)
    sync(log)
    assert wish_start(log, 7) == 7
    assert log.trimming.held_up_by() == ()
    with pytest.raises(OffsetOutOfRange):
        log.trimming.plan_start(Offset(8), limit_offset=Offset(7))


def test_a_place_that_may_be_cut_does_not_let_go_of_the_one_before() -> None:
    log = open_log(a_disk())
    append_many(log, 2)
    earlier = write_whole(log)
    append_many(log, 2)
    high_watermark = log.end_offset
    later = write_whole(log)
    sync(log)
    assert wish_start(log, high_watermark, high_watermark=high_watermark) == earlier.start_offset
    assert log.places.last_of(OWNER) == later
    truncate(log, high_watermark)
    assert log.places.last_of(OWNER) == earlier


def test_a_place_that_is_not_durable_does_not_let_go_of_the_one_before() -> None:
    log = open_log(a_disk())
    earlier = write_whole(log)
    sync(log)
    write_whole(log)
    assert wish_start(log, 1) == earlier.start_offset


def test_what_the_cluster_has_decided_is_not_held_up() -> None:
    log = open_log(a_disk())
    write_whole(log)
    append_many(log, 2)
    sync(log)
    log.trimming.plan_start(Offset(3), limit_offset=Offset(3), is_decided=True)
    log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
    assert (log.start_offset, log.places.last_of(OWNER)) == (3, None)


def test_an_owner_that_has_gone_holds_nothing_up() -> None:
    log = open_log(a_disk())
    write_whole(log)
    append_many(log, 2)
    write(log, start=OWNER_GONE)
    sync(log)
    assert log.places.last_of(OWNER) is None
    assert wish_start(log, log.end_offset) == log.end_offset
    assert len(log.places) == 0


@pytest.mark.parametrize(
    "chosen",
    [settings(segment_bytes=300, retention_bytes=0), settings(segment_bytes=300, retention_ms=1)],
    ids=["size", "age"],
)
def test_retention_keeps_what_owners_need(chosen: LogSettings) -> None:
    log = open_log(a_disk(), chosen)
    append_many(log, 10)
    place = write_whole(log, piece_count=2)
    append_many(log, 10)
    sync(log)
    assert log.trimming.plan_retention(limit_offset=log.end_offset, now_ms=10_000)
    assert 0 < log.trimming.planned_start_offset <= place.start_offset
    assert log.trimming.held_up_by() == (OWNER,)
    write_whole(log)
    sync(log)
    log.trimming.plan_retention(limit_offset=log.end_offset, now_ms=10_000)
    assert log.trimming.planned_start_offset > place.whole_offset


def test_a_log_that_begins_again_knows_no_places() -> None:
    log = open_log(a_disk())
    write_whole(log)
    log.trimming.plan_restart(Offset(50))
    cut = log.trimming.take_restart(Offset(50), now_ms=1000)
    cut.run()
    log.trimming.on_cut(cut)
    assert (log.start_offset, len(log.places)) == (50, 0)


def test_a_rotten_state_batch_does_not_let_go_of_the_place_before() -> None:
    disk = a_disk()
    log = open_log(disk)
    earlier = write_whole(log)
    position = log.size_bytes
    write_whole(log)
    append_many(log, 1)
    sync(log)
    file = disk.open(path_of(DIRECTORY, 0, ".log"))
    data = bytearray(file.read(0, file.size()))
    data[position + 80] ^= 1
    file.truncate(0)
    file.append(memoryview(data))
    reopened = open_log(disk, recovery_point=log.end_offset)
    assert reopened.places.last_of(OWNER) == earlier


def test_a_snapshot_of_before_has_no_places() -> None:
    disk = a_disk()
    log = open_log(disk)
    append_many(log, 3)
    close(log)
    written = read_snapshot(disk, DIRECTORY, log.end_offset)
    assert written is not None
    fields = msgspec.to_builtins(written)
    del fields["places"]
    assert msgspec.convert(fields, Snapshot) == written


def test_compaction_keeps_state_as_it_is() -> None:
    log = open_log(a_disk(), settings(segment_bytes=300, compacts=True))
    append_many(log, 5)
    write(log)
    place = write_whole(log, piece_count=2)
    append_many(log, 8)
    sync(log)
    batch_count = len(read_all(log))
    before = [one for one in read_all(log) if decode_header(one).is_control]
    compact(log, now_ms=10_000)
    assert len(read_all(log)) < batch_count
    assert [one for one in read_all(log) if decode_header(one).is_control] == before
    assert log.places.last_of(OWNER) == place


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("records"), st.integers(1, 3)),
        st.tuples(st.just("delta"), st.sampled_from(OWNERS)),
        st.tuples(st.just("snapshot"), st.sampled_from(OWNERS), st.integers(1, 3)),
        st.tuples(st.just("gone"), st.sampled_from(OWNERS)),
        st.tuples(st.just("snapshot of the log")),
    ),
    max_size=30,
)


def tell(log: Log, step: tuple[object, ...]) -> None:
    match step:
        case ("records", int(count)):
            append_many(log, count)
        case ("delta", bytes(owner)):
            write(log, OWNERS[owner[0]])
        case ("snapshot", bytes(owner), int(piece_count)):
            write_whole(log, OWNERS[owner[0]], piece_count=piece_count)
        case ("gone", bytes(owner)):
            write(log, OWNERS[owner[0]], start=OWNER_GONE)
        case _:
            sync(log)
            snapshot = log.maintenance.take_snapshot(1000, force=True)
            if snapshot is not None:
                snapshot.run()
                log.maintenance.on_snapshot(snapshot)


def saved(log: Log) -> list[SavedOwner]:
    return sorted(log.places.save(), key=lambda each: each.owner)


def a_copy(log: Log) -> Log:
    copy = open_log(a_disk(), settings(segment_bytes=400))
    for one in read_all(log):
        copy.append_as_follower(memoryview(bytearray(one)), decode_header(one), now_ms=1000)
    return copy


@given(steps=STEPS, clean=st.booleans(), synced=st.booleans())
def test_leader_follower_and_recovery_derive_the_same_places(
    steps: list[tuple[object, ...]], clean: bool, synced: bool
) -> None:
    disk = a_disk()
    log = open_log(disk, settings(segment_bytes=400))
    for step in steps:
        tell(log, step)
    assert saved(a_copy(log)) == saved(log)
    sync(log)
    if clean:
        close(log)
    recovered = open_log(
        disk,
        settings(segment_bytes=400),
        recovery_point=log.end_offset if synced or clean else 0,
        clean=clean,
    )
    assert saved(recovered) == saved(log)


@given(steps=STEPS, share=st.floats(0, 1), high_watermark_share=st.floats(0, 1))
def test_a_cut_leaves_the_places_of_a_log_that_was_never_longer(
    steps: list[tuple[object, ...]], share: float, high_watermark_share: float
) -> None:
    log = open_log(a_disk(), settings(segment_bytes=400))
    for step in steps:
        tell(log, step)
    sync(log)
    offset = int(log.end_offset * share)
    high_watermark = int(offset * high_watermark_share)
    wish_start(log, 0, high_watermark=high_watermark)
    truncate(log, offset)
    again = a_copy(log)
    assert last_places(log) == last_places(again)
    for each in (log, again):
        each.places.settle(high_watermark)
    assert saved(log) == saved(again)
