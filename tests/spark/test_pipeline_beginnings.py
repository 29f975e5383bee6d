"""Where a transform begins: from its checkpoint, at the beginning, or where its output says. Never twice, never not at all."""

from collections.abc import Generator, Iterator
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

pytest.importorskip("pyspark")

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.options import EARLIEST
from ropewalk.spark.pipelines.beginnings import (
    Begin,
    Continue,
    Definition,
    Kept,
    Resume,
    decide,
    with_newcomers,
)
from ropewalk.spark.pipelines.covered import ranges_between
from ropewalk.spark.pipelines.query_shape import Shape
from ropewalk.spark.ranges import Offsets, Progress, from_json, to_json
from ropewalk.spark.refusals import ReplayDiffers, WrongUse
from ropewalk.spark.sink import marker as markers
from ropewalk.spark.sink.marker import Decision, Marker, Ranges, digest_of, succeeding
from ropewalk.spark.sink.recovery import Resumption, released, resumption

DEFINITION = Definition(
    sql="SELECT value FROM orders",
    output="topic big",
    key="",
    mode="append",
    tasks=3,
    views={"orders": "orders"},
    fields="",
    watermark="",
)
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
KEPT = Kept(DEFINITION, to_json({FIRST: 7}))


def test_a_checkpoint_goes_on_from_where_its_query_began() -> None:
    decided = decide(DEFINITION, KEPT, has_progress=True, resumption=None, shape=Shape.WITH_STATE)
    assert decided == Continue(Progress({FIRST: 7}))


def test_what_was_written_down_before_there_were_formats_goes_on() -> None:
    """With the fingerprint that its batches have: one that was half written is finished as it is."""
    before = {
        name: getattr(DEFINITION, name)
        for name in ("sql", "output", "key", "mode", "tasks", "views", "fields", "watermark")
    }
    text = msgspec.json.encode(
        {"definition": {**before, "fields": "n int"}, "beginning": {"orders": {"0": 7}}}
    )
    kept = msgspec.json.decode(text, type=Kept)
    assert msgspec.json.encode(DEFINITION, order="deterministic") == msgspec.json.encode(before)
    asked = replace(DEFINITION, fields="n int", bad_rows="dead_letters")
    decided = decide(asked, kept, has_progress=True, resumption=None, shape=Shape.WITH_STATE)
    assert decided == Continue(Progress({FIRST: 7}))
    with pytest.raises(WrongUse, match="made with another bad_rows"):
        decide(
            replace(asked, bad_rows="null"),
            replace(kept, definition=asked),
            has_progress=True,
            resumption=None,
            shape=Shape.WITH_STATE,
        )


def test_a_first_start_begins_as_the_job_says() -> None:
    for kept in (None, KEPT):  # what was written down and never used does not count
        decided = decide(DEFINITION, kept, has_progress=False, resumption=None, shape=Shape.ROW_BY_ROW)
        assert decided == Begin()


def test_a_lost_checkpoint_goes_on_where_the_output_ends() -> None:
    found = Resumption({FIRST: (3, 9)}, {FIRST: 9})
    decided = decide(DEFINITION, None, has_progress=False, resumption=found, shape=Shape.ROW_BY_ROW)
    assert decided == Resume({FIRST: (3, 9)}, {FIRST: 9})


def test_state_that_is_lost_is_not_made_up() -> None:
    found = Resumption(None, {FIRST: 9})
    with pytest.raises(ReplayDiffers, match="another name for the job, and an output that is empty"):
        decide(DEFINITION, None, has_progress=False, resumption=found, shape=Shape.WITH_STATE)


@pytest.mark.parametrize("shape", Shape)
def test_a_checkpoint_of_another_definition_is_refused(shape: Shape) -> None:
    changed = replace(DEFINITION, sql="SELECT key FROM orders", tasks=5)
    with pytest.raises(WrongUse, match="another sql, tasks") as refused:
        decide(changed, KEPT, has_progress=True, resumption=None, shape=shape)
    assert ("remove the checkpoint" in str(refused.value)) is (shape is Shape.ROW_BY_ROW)
    assert changed.fingerprint() != DEFINITION.fingerprint()


def test_a_checkpoint_of_another_program_is_refused() -> None:
    with pytest.raises(WrongUse, match="another program"):
        decide(DEFINITION, None, has_progress=True, resumption=None, shape=Shape.ROW_BY_ROW)


def test_partitions_that_are_new_are_read_from_their_start() -> None:
    assert with_newcomers({FIRST: 9}, [FIRST, SECOND]) == {FIRST: 9, SECOND: EARLIEST}


class Died(Exception):
    """The whole job, wherever it was."""


class Job:
    """A job in the hands of Spark: batches one after the other, each written by all tasks before the next begins."""

    def __init__(self, random: Random, task_count: int) -> None:
        self.random = random
        self.log: Offsets = {FIRST: 0}
        self.query_count = 0
        self.markers: list[Marker | None] = [None] * task_count
        self.written: list[list[Ranges]] = [[] for _ in self.markers]
        self.lose_checkpoint()

    def lose_checkpoint(self) -> None:
        self.kept: Kept | None = None
        self.query: str | None = None
        self.offsets: list[Offsets] = []
        self.committed_count = 0

    def produce(self) -> None:
        if self.random.random() < 0.2:
            self.log.setdefault(SECOND, 0)
        for partition in self.log:
            self.log[partition] += self.random.randrange(8)

    def run(self, *, dies: bool) -> None:
        for _ in self._steps():
            if dies and self.random.random() < 0.15:
                raise Died

    def _steps(self) -> Iterator[None]:
        beginning = yield from self._begin()
        if self.query is None:
            self.query_count += 1
            self.query = f"query {self.query_count}"
        while True:
            number = self.committed_count
            if len(self.offsets) == number:  # else it is tried again, with the bounds that it had
                reached = self.offsets[-1] if self.offsets else beginning
                if all(max(reached.get(each, 0), 0) == end for each, end in self.log.items()):
                    return
                self.offsets.append(self._some_of(reached))
                yield
            start = self.offsets[number - 1] if number else beginning
            yield from self._write(
                self.query, number, ranges_between(Progress(start), Progress(self.offsets[number]))
            )
            self.committed_count += 1
            yield

    def _begin(self) -> Generator[None, None, Offsets]:
        decided = decide(
            DEFINITION,
            self.kept,
            has_progress=bool(self.offsets),
            resumption=None if self.offsets else resumption(self.markers),
            shape=Shape.ROW_BY_ROW,
        )
        match decided:
            case Continue(began):
                return began.offsets
            case Begin():
                beginning = dict.fromkeys(self.log, 0)
            case Resume(unfinished, reached):
                for task, marker in enumerate(released(self.markers)):
                    self.markers[task] = marker
                    yield
                if unfinished is not None:
                    self.query_count += 1
                    yield from self._write(f"resumed {self.query_count}", 0, unfinished)
                beginning = with_newcomers(reached, self.log)
        self.kept = Kept(DEFINITION, to_json(beginning))
        yield
        return from_json(self.kept.beginning)

    def _some_of(self, reached: Offsets) -> Offsets:
        """At least one record more, of what is there."""
        end = {
            each: self.random.randint(max(reached.get(each, 0), 0), last) for each, last in self.log.items()
        }
        moved = any(offset > max(reached.get(each, 0), 0) for each, offset in end.items())
        return end if moved else dict(self.log)

    def _write(self, query: str, number: int, ranges: Ranges) -> Iterator[None]:
        tasks = list(range(len(self.markers)))
        self.random.shuffle(tasks)
        for task in tasks:
            offered = Marker(query, number, len(tasks), digest_of(ranges, DEFINITION.fingerprint()), ranges)
            if markers.decide(self.markers[task], offered) is Decision.WRITE:
                self.markers[task] = succeeding(self.markers[task], offered)
                self.written[task].append(ranges)
            yield


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_whatever_dies_and_is_lost_every_task_writes_every_record_once(
    random: Random, task_count: int
) -> None:
    job = Job(random, task_count)
    for _ in range(random.randrange(1, 12)):
        job.produce()
        try:
            job.run(dies=True)
        except Died:
            if random.random() < 0.5:
                job.lose_checkpoint()
    job.produce()
    job.run(dies=False)
    for written in job.written:
        for partition, end in job.log.items():
            read = [
                offset
                for ranges in written
                if partition in ranges
                for offset in range(max(ranges[partition][0], 0), ranges[partition][1])
            ]
            assert read == list(range(end))
