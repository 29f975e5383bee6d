"""Look-ups by time agree with reading everything."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import Offset
from ropewalk.base.ports import read_whole
from ropewalk.log.log import TimedOffset
from ropewalk.records.batch import decode_header, stamp_append_time, stamp_crc
from tests.log.given import DIRECTORY, a_disk, append, batch, close, open_log, settings

BATCHES = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=25)


def answer(found: TimedOffset | None) -> tuple[int, int] | None:
    return None if found is None else (found.offset, found.timestamp)


@hypothesis_settings(max_examples=150, deadline=None)
@given(batches=BATCHES, data=st.data())
def test_a_time_is_found_to_the_record(batches: list[list[int]], data: st.DataObject) -> None:
    disk = a_disk()
    chosen = settings(segment_bytes=700, index_interval_bytes=150)
    log = open_log(disk, chosen)
    times: list[int] = []
    for timestamps in batches:
        append(log, batch([b"v"] * len(timestamps), timestamps=timestamps))
        times += timestamps
    match data.draw(st.sampled_from(["as it is", "closed", "killed", "without index"])):
        case "closed":
            close(log)
            log = open_log(disk, chosen, recovery_point=len(times), clean=True)
        case "killed":
            log = open_log(disk, chosen)
        case "without index":
            close(log)
            for name in disk.list(DIRECTORY):
                if name.endswith(".index"):
                    disk.remove(f"{DIRECTORY}/{name}")
            log = open_log(disk, chosen, recovery_point=len(times), clean=True)
    start = data.draw(st.integers(0, len(times)))
    limit = data.draw(st.integers(start, len(times)))
    log.trimming.take_removal(start_offset_durable=Offset(start))
    wanted = data.draw(st.integers(0, 61))
    visible = list(enumerate(times))[start:limit]
    expected = next(((offset, time) for offset, time in visible if time >= wanted), None)
    assert answer(log.offset_for_timestamp(wanted, limit_offset=Offset(limit))) == expected
    boundaries = [0]
    for timestamps in batches:
        boundaries.append(boundaries[-1] + len(timestamps))
    limit = data.draw(st.sampled_from([boundary for boundary in boundaries if boundary >= start]))
    visible = list(enumerate(times))[start:limit]
    largest = max(visible, key=lambda pair: (pair[1], -pair[0]), default=None)
    assert answer(log.offset_of_max_timestamp(limit_offset=Offset(limit))) == largest


def test_a_broker_stamped_batch_has_one_time_for_all_its_records() -> None:
    log = open_log(a_disk())
    made = batch([b"a", b"b"], timestamps=[5, 6])
    stamp_append_time(made, 900)
    append(log, made, epoch=3)
    found = log.offset_for_timestamp(7, limit_offset=Offset(2))
    assert found is not None
    assert (found.offset, found.timestamp, found.leader_epoch) == (0, 900, 3)


def test_a_stamped_batch_that_claims_countless_records_is_looked_up_at_once() -> None:
    """A plain topic does not open what it is sent, so the claim may be a lie."""
    log = open_log(a_disk())
    made = batch([b"a"], timestamps=[5])
    made[57:61] = made[23:27] = (2**31 - 2).to_bytes(4, "big")
    made[60] += 1
    stamp_append_time(made, 900)
    append(log, made)
    log.trimming.take_removal(start_offset_durable=Offset(3))
    end = Offset(2**31 - 1)
    assert answer(log.offset_for_timestamp(7, limit_offset=end)) == (3, 900)
    assert answer(log.offset_of_max_timestamp(limit_offset=end)) == (3, 900)


def test_a_header_that_claims_a_later_time_than_its_records_have_is_not_believed() -> None:
    log = open_log(a_disk())
    made = batch([b"a"], timestamps=[5])
    stamp_append_time(made, 900)
    made[22] &= 0xF7  # the header keeps the time and loses the mark that it is the records' time too
    stamp_crc(made)
    assert (decode_header(made).max_timestamp, decode_header(made).uses_append_time) == (900, False)
    append(log, made)
    append(log, batch([b"b"], timestamps=[50]))
    assert answer(log.offset_for_timestamp(6, limit_offset=Offset(2))) == (1, 50)
    assert log.offset_for_timestamp(51, limit_offset=Offset(2)) is None


def test_damage_that_may_hold_the_answer_is_an_error() -> None:
    disk = a_disk()
    log = open_log(disk)
    for timestamp in (1, 2, 3):
        append(log, batch([b"v"], timestamps=[timestamp]))
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(read_whole(disk, path))
    data[len(data) // 3 + 65] ^= 1
    file = disk.open(path)
    file.truncate(0)
    file.append(data)
    found = log.offset_for_timestamp(1, limit_offset=Offset(3))
    assert found is not None
    assert found.offset == 0
    with pytest.raises(StorageFailed, match="offset 1"):
        log.offset_for_timestamp(2, limit_offset=Offset(3))
