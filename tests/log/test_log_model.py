"""A list of batches as the oracle: whatever is done to a log, it answers as the list does."""

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ropewalk.base.errors import OffsetOutOfRange
from ropewalk.base.ids import Offset
from ropewalk.records.batch import BatchHeader, decode_header
from tests.log.given import (
    Producer,
    a_disk,
    append,
    batch,
    batches_in,
    close,
    fetch,
    open_log,
    read_all,
    settings,
    sync,
)

SETTINGS = settings(
    segment_bytes=900, retention_bytes=2500, index_interval_bytes=200, snapshot_interval_bytes=600
)


class LogAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = a_disk()
        self.log = open_log(self.disk, SETTINGS, index_bytes_max=64)
        self.batches: list[bytes] = []
        self.start = 0
        self.sequence = 0
        self.last: tuple[memoryview, int] | None = None
        self.epoch = 0

    def header(self, index: int) -> BatchHeader:
        return decode_header(self.batches[index])

    @property
    def end(self) -> int:
        return self.header(-1).end_offset if self.batches else 0

    @rule(values=st.lists(st.binary(max_size=120), min_size=1, max_size=4))
    def append(self, values: list[bytes]) -> None:
        made = batch(values)
        appended = append(self.log, made, epoch=self.epoch)
        assert (appended.base_offset, appended.duplicate) == (self.end, False)
        self.batches.append(bytes(made))

    @rule(count=st.integers(1, 3))
    def append_as_idempotent_producer(self, count: int) -> None:
        made = batch([b"once"] * count, producer=Producer(sequence=self.sequence))
        appended = append(self.log, made, epoch=self.epoch)
        assert (appended.base_offset, appended.duplicate) == (self.end, False)
        self.batches.append(bytes(made))
        self.sequence += count
        self.last = (made, appended.base_offset)

    @precondition(lambda self: self.last is not None)
    @rule()
    def retry(self) -> None:
        assert self.last is not None
        made, base_offset = self.last
        appended = append(self.log, memoryview(bytearray(made)), epoch=self.epoch)
        assert (appended.base_offset, appended.duplicate) == (base_offset, True)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule()
    def synced(self) -> None:
        sync(self.log)
        assert not self.log.dirty

    @rule()
    def snapshot(self) -> None:
        self.write_snapshot()

    def write_snapshot(self, *, force: bool = False) -> None:
        write = self.log.maintenance.take_snapshot(1000, force=force, before_deleting=force)
        if write is not None:
            write.run()
            self.log.maintenance.on_snapshot(write)

    @rule(clean=st.booleans())
    def stop_and_start(self, clean: bool) -> None:
        if clean:
            close(self.log)
        self.log = open_log(
            self.disk,
            SETTINGS,
            recovery_point=self.log.recovery_point,
            start_offset=self.log.start_offset,
            clean=clean,
            index_bytes_max=64,
        )
        assert self.log.recovered.is_clean == clean
        assert self.log.recovered.cut_bytes == 0

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end))
        self.log.trimming.plan_start(Offset(offset), limit_offset=self.log.end_offset)
        self.start = max(self.start, offset)
        self.remove_files()

    @rule()
    def retain(self) -> None:
        moved = self.log.trimming.plan_retention(limit_offset=self.log.end_offset, now_ms=1000)
        self.start = max(self.start, self.log.trimming.planned_start_offset)
        self.remove_files()
        assert not moved or self.log.size_bytes >= SETTINGS.retention_bytes or self.start == self.end

    def remove_files(self) -> None:
        if self.log.trimming.forgets:
            self.write_snapshot(force=True)
            sync(self.log)
        removal = self.log.trimming.take_removal(start_offset_durable=self.log.trimming.planned_start_offset)
        if removal is not None:
            removal.run()

    @rule(data=st.data(), bytes_max=st.integers(1, 1500))
    def read(self, data: st.DataObject, bytes_max: int) -> None:
        offset = data.draw(st.integers(0, self.end + 1))
        boundaries = [0, *(decode_header(one).end_offset for one in self.batches)]
        limit = data.draw(st.sampled_from(boundaries))
        if not self.start <= offset <= self.end:
            try:
                fetch(self.log, offset, limit=limit)
            except OffsetOutOfRange:
                return
            raise AssertionError("an offset out of range was answered")
        answer = batches_in(fetch(self.log, offset, limit=limit, bytes_max=bytes_max))
        expected = [
            one
            for one in self.batches
            if decode_header(one).end_offset > offset and decode_header(one).end_offset <= limit
        ]
        if offset >= limit:
            assert answer == []
        else:
            assert answer == expected[: len(answer)]
            assert answer
            assert len(answer) == 1 or sum(map(len, answer)) <= bytes_max

    @invariant()
    def the_ends_agree(self) -> None:
        assert self.log.start_offset == self.start
        assert self.log.end_offset == self.end
        assert self.log.durable_offset <= self.log.end_offset

    def teardown(self) -> None:
        expected = [one for one in self.batches if decode_header(one).end_offset > self.start]
        assert read_all(self.log) == expected
        epochs = {decode_header(one).leader_epoch: decode_header(one).end_offset for one in expected}
        for epoch, end_offset in epochs.items():
            found = self.log.end_offset_for_epoch(epoch)
            assert found is not None
            assert (found.leader_epoch, found.end_offset) == (epoch, end_offset)


LogAgainstList.TestCase.settings = hypothesis_settings(
    max_examples=120, stateful_step_count=40, deadline=None
)
test_a_log_answers_as_a_list_of_batches_does = LogAgainstList.TestCase
