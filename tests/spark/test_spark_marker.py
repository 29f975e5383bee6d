"""Whatever dies, and whoever tries again: rows of a task are there once."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.refusals import DataLost, MarkerLost, ReplayDiffers, WrongUse
from ropewalk.spark.sink.marker import (
    MARKER_BYTES_MAX,
    Decision,
    Marker,
    Ranges,
    decide,
    digest_of,
    from_text,
    parse_ids,
    parse_ranges,
    ranges_to_text,
    succeeding,
    to_text,
)
from ropewalk.spark.sink.recovery import Resumption, in_topics, released, resumption

ORDERS = TopicPartition("orders", 0)
OTHERS = TopicPartition("orders", 1)
ELSEWHERE = TopicPartition("returns", 0)


def read(start: int, end: int) -> Ranges:
    return {ORDERS: (start, end)}


def marker(
    query: str, batch: int, ranges: Ranges | None = None, *, tasks: int = 2, digest: str | None = "d"
) -> Marker:
    return Marker(query, batch, tasks, digest if ranges is None else digest_of(ranges), ranges)


@pytest.mark.parametrize(
    ("stored", "offered", "decision"),
    [
        (None, marker("q", 0), Decision.WRITE),
        (marker("q", 4), marker("q", 5), Decision.WRITE),
        (marker("q", 4), marker("q", 4), Decision.SKIP),
        (marker("q", 4), marker("q", 4, digest=None), Decision.READ_FIRST),
        (marker("q", 4), marker("q", 5, digest=None), Decision.WRITE),
        (marker("q", 4, read(0, 9)), marker("q", 4, read(0, 9)), Decision.SKIP),
        (marker("q", 4, read(0, 9)), marker("q", 5, read(9, 12)), Decision.WRITE),
        # The checkpoint is lost: another query, batches counted from 0.
        (marker("q", 4, read(5, 9)), marker("r", 0, read(9, 12)), Decision.WRITE),
        (marker("q", 4, read(5, 9)), marker("r", 0, read(5, 9)), Decision.SKIP),
        # A partition came into being meanwhile.
        (marker("q", 4, read(5, 9)), marker("q", 5, {ORDERS: (9, 9), OTHERS: (-2, 3)}), Decision.WRITE),
        # The same, once with the partition that has nothing and once without.
        (marker("q", 4, {ORDERS: (5, 9), OTHERS: (3, 3)}), marker("r", 0, read(5, 9)), Decision.SKIP),
        # "From the start" is 0.
        (marker("q", 0, read(-2, 9)), marker("r", 0, read(0, 9)), Decision.SKIP),
    ],
)  # fmt: skip
def test_decisions(stored: Marker | None, offered: Marker, decision: Decision) -> None:
    assert decide(stored, offered) is decision


@pytest.mark.parametrize(
    ("stored", "offered", "told"),
    [
        (marker("q", 4), marker("q", 4, digest="e"), "other rows"),
        (marker("q", 4, read(0, 9)), marker("q", 4, read(0, 8)), r'other offsets.*"orders":\{"0":9\}'),
        (marker("q", 4), marker("q", 3), "batch 4 is written already"),
        (marker("q", 4), marker("q", 6), "missing"),
        (marker("q", 4, read(0, 9)), marker("q", 5, read(8, 12)), "written twice"),
        (marker("q", 4, read(0, 9)), marker("q", 5, read(10, 12)), "written never"),
        (marker("q", 4, tasks=2), marker("q", 5, tasks=3), "tasks=2"),
        (marker("q", 4), marker("r", 0), "belongs to query q"),
        (marker("q", 4, read(5, 9)), marker("r", 0, read(5, 8)), r'startingOffsets=\{"orders":\{"0":9\}\}'),
        (marker("q", 4, read(5, 9)), marker("r", 0, read(0, 9)), "written twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused_and_where_to_go_on_is_said(
    stored: Marker, offered: Marker, told: str
) -> None:
    with pytest.raises(ReplayDiffers, match=told):
        decide(stored, offered)


def test_a_marker_that_is_gone_is_not_a_beginning() -> None:
    with pytest.raises(MarkerLost, match=r'made anew.*startingOffsets=\{"orders":\{"0":7\}\}'):
        decide(None, marker("q", 3, read(7, 9)))


@pytest.mark.parametrize(
    ("first", "offered", "told"),
    [
        (marker("q", 0, tasks=2), marker("q", 0, tasks=3), "tasks=2"),
        (marker("q", 0, tasks=2), marker("q", 0, tasks=1), "tasks=2"),
        (marker("q", 0, read(0, 9)), marker("r", 0, read(9, 12)), "would be missing"),
        (marker("q", 0, read(0, 9)), marker("r", 0, read(0, 5)), "written twice"),
        (marker("q", 0), marker("r", 0), "belongs to query q"),
    ],
)  # fmt: skip
def test_a_task_without_a_marker_goes_by_whoever_was_first(first: Marker, offered: Marker, told: str) -> None:
    """In its first batch a sink may have been stopped when some tasks had written."""
    with pytest.raises(ReplayDiffers, match=told):
        decide(None, offered, first)
    assert decide(None, first, first) is Decision.WRITE
    assert decide(None, marker("r", 0, read(0, 9)), marker("q", 0, read(0, 9))) is Decision.WRITE


def test_another_computation_over_the_same_ranges_is_another_batch() -> None:
    stored = Marker("q", 3, 2, digest_of(read(0, 9), "select a"), read(0, 9))
    with pytest.raises(ReplayDiffers, match="computed in another way"):
        decide(stored, Marker("q", 3, 2, digest_of(read(0, 9), "select b"), read(0, 9)))
    assert (
        decide(stored, Marker("q", 4, 2, digest_of(read(9, 12), "select b"), read(9, 12))) is Decision.WRITE
    )


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.sampled_from(["orders", "ü"]), st.integers(0, 400)),
        st.tuples(st.integers(-2, 10**12), st.integers(0, 10**6)).map(
            lambda pair: (pair[0], pair[0] + pair[1])
        ),
        min_size=1,
        max_size=300,
    )
)
@settings(max_examples=60, deadline=None)
def test_a_marker_survives_being_written_down(ranges: Ranges) -> None:
    written = Marker("q-1", 3, 4, "abc", ranges)
    text = to_text(written)
    assert len(text.encode()) <= MARKER_BYTES_MAX
    assert from_text(text) in (written, Marker("q-1", 3, 4, "abc", None))
    if len(ranges) < 100:
        assert from_text(text) == written
    assert parse_ranges(ranges_to_text(ranges)) == ranges


@pytest.mark.parametrize(
    "text", ["", "7", "[]", '{"query": "q"}', '{"query":"q","batch":1,"tasks":2,"digest":"d","packed":"!"}']
)
def test_what_no_sink_wrote_is_no_marker(text: str) -> None:
    with pytest.raises(ReplayDiffers, match="another name"):
        from_text(text)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"t": [1]}', '{"t": {"0": 4}}', '{"t": {"x": [1, 2]}}'])
def test_ranges_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(WrongUse, match="ranges"):
        parse_ranges(text)


class _Died(Exception):
    pass


class _Cluster:
    """What a broker promises: a transaction's rows and marker count together, and only in the newest epoch of its id."""

    def __init__(self, tasks: int) -> None:
        self.epochs = [0] * tasks
        self.markers: list[Marker | None] = [None] * tasks
        self.rows: list[list[int]] = [[] for _ in range(tasks)]

    def commit(self, task: int, epoch: int, rows: list[int], written: Marker) -> None:
        if self.epochs[task] != epoch:
            raise _Died("fenced")
        self.rows[task] += rows
        self.markers[task] = written


class _Query:
    """Spark as far as it matters: batches one after the other, each task tried until it succeeds, progress kept in a checkpoint.

    A row is its offset, and comes to the task that its offset is for, in every attempt.
    """

    def __init__(
        self, cluster: _Cluster, tasks: int, end: int, draw: Callable[[st.SearchStrategy[int]], int]
    ) -> None:
        self.cluster, self.tasks, self.end, self.draw = cluster, tasks, end, draw
        self.query = 0
        self.batches: list[Ranges] = []
        self.committed = 0
        self.first = 0
        self.zombies: list[tuple[str, Callable[[], None]]] = []

    def run(self) -> None:
        deaths_left = 12
        while True:
            try:
                self._go_on(deaths_left)
                return
            except _Died:
                deaths_left -= 1
                if self.draw(st.integers(0, 3)) == 0:
                    self._lose_checkpoint()

    def _lose_checkpoint(self) -> None:
        self.query += 1
        self.batches, self.committed = [], 0
        resumed = resumption(self.cluster.markers)
        if resumed is not None:
            for task, marker in enumerate(released(self.cluster.markers)):
                self.cluster.epochs[task] += 1
                self.cluster.markers[task] = marker
        self.first = 0
        known = [each.formers for each in self.cluster.markers if each is not None]
        # Who has never written anything cannot be told from a stranger; `recovery.py` says so.
        self.zombies = [zombie for zombie in self.zombies if known and zombie[0] in known[0]]
        if resumed is not None:
            self.first = resumed.ends[ORDERS]
            if resumed.unfinished is not None:
                self.first = max(resumed.unfinished[ORDERS][0], 0)
                self.batches = [resumed.unfinished]

    def _go_on(self, deaths_left: int) -> None:
        while True:
            if self.committed == len(self.batches):
                start = self.batches[-1][ORDERS][1] if self.batches else self.first
                if start == self.end:
                    return
                self.batches.append(read(start, min(self.end, start + self.draw(st.integers(1, 5)))))
            for task in range(self.tasks):
                self.wake_zombies()
                self._task(task, self.committed, deaths_left)
            if deaths_left > 0 and self.draw(st.integers(0, 4)) == 0:
                raise _Died  # before Spark has noted the batch
            self.committed += 1

    def wake_zombies(self) -> None:
        while self.zombies and self.draw(st.booleans()):
            with suppress(_Died, ReplayDiffers):
                self.zombies.pop()[1]()

    def _task(self, task: int, batch: int, deaths_left: int) -> None:
        ranges = self.batches[batch]
        start, end = ranges[ORDERS]
        rows = [offset for offset in range(max(start, 0), end) if offset % self.tasks == task]
        offered = Marker(f"query {self.query}", batch, self.tasks, digest_of(ranges), ranges)
        dies_at = self.draw(st.integers(0, 8)) if deaths_left > 0 else 8
        cluster = self.cluster

        def attempt(dies_at: int) -> None:
            cluster.epochs[task] += 1
            epoch = cluster.epochs[task]
            if dies_at == 0:
                raise _Died
            stored = cluster.markers[task]
            if decide(stored, offered) is Decision.SKIP:
                return
            written = succeeding(stored, offered)
            if dies_at == 1:  # it is only slow, and commits after others have begun
                self.zombies.append((offered.query, lambda: cluster.commit(task, epoch, rows, written)))
                raise _Died
            if dies_at == 2:
                self.zombies.append((offered.query, lambda: attempt(8)))
                raise _Died
            cluster.commit(task, epoch, rows, written)
            if dies_at == 3:
                raise _Died

        attempt(dies_at)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_rows_are_there_once_whatever_dies(data: st.DataObject) -> None:
    tasks, end = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 20))
    cluster = _Cluster(tasks)
    query = _Query(cluster, tasks, end, data.draw)
    query.run()
    query.wake_zombies()
    assert cluster.rows == [
        [offset for offset in range(end) if offset % tasks == task] for task in range(tasks)
    ]


def test_markers_further_apart_than_a_batch_are_no_place_to_go_on() -> None:
    near, far = marker("q", 1, read(0, 5)), marker("q", 3, read(9, 12))
    with pytest.raises(ReplayDiffers, match="more than one batch apart"):
        resumption([near, far])
    with pytest.raises(ReplayDiffers, match="more than one batch apart"):
        resumption([marker("q", 2, read(5, 9), tasks=3), marker("q", 3, read(9, 12), tasks=3), None])
    with pytest.raises(ReplayDiffers, match="tasks=2"):
        resumption([far, far, None])
    with pytest.raises(ReplayDiffers, match="without saying what it read"):
        resumption([marker("q", 2), far])
    assert resumption([None, None]) is None


def test_a_batch_that_read_nothing_is_not_half_written() -> None:
    """The first one of an empty topic, and the one in which a partition came into being: there is nothing to read again."""
    empty = marker("q", 0, read(0, 0))
    assert resumption([empty, None]) == Resumption(None, {ORDERS: 0})
    former, newest = marker("q", 4, read(0, 9)), marker("q", 5, {ORDERS: (9, 9), OTHERS: (-2, 0)})
    for markers in ([former, newest], [newest, former]):
        assert resumption(markers) == Resumption(None, {ORDERS: 9, OTHERS: 0})
        for stored in released(markers):
            assert decide(stored, marker("r", 0, {ORDERS: (9, 12), OTHERS: (-2, 3)})) is Decision.WRITE


def test_a_changed_query_may_begin_at_a_topic_that_is_idle() -> None:
    """Spark runs a first batch of nothing. Of two such the second is no replay of the first."""
    idle = read(9, 9)
    stored = Marker("q", 0, 2, digest_of(idle, "one sql"), idle)
    for each in (stored, *released([stored, stored])):
        assert decide(each, Marker("r", 0, 2, digest_of(idle, "another"), idle)) is Decision.WRITE
    assert decide(None, Marker("r", 0, 2, digest_of(idle, "another"), idle), first=stored) is Decision.WRITE


def of_topic(query: str, batch: int, ranges: Ranges, id_: str | None, *, tasks: int = 2) -> Marker:
    ids = {} if id_ is None else {"orders": id_}
    return Marker(query, batch, tasks, digest_of(ranges), ranges, ids=ids)


@pytest.mark.parametrize(
    ("stored", "offered", "decision"),
    [
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(9, 12), "old"), Decision.WRITE, id="the same topic"),
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(-2, 30), "new"), Decision.WRITE, id="made anew, longer"),
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(-2, 9), "new"), Decision.WRITE, id="made anew, equal"),
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(-2, 3), "new"), Decision.WRITE, id="made anew, shorter"),
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("r", 0, read(0, 9), "new"), Decision.WRITE, id="equal, by another query"),
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("r", 0, read(0, 9), "old"), Decision.SKIP, id="a replay by another query"),
        pytest.param(of_topic("q", 4, read(0, 9), None), of_topic("q", 5, read(9, 12), "new"), Decision.WRITE, id="marked before ids were"),
        pytest.param(of_topic("q", 4, read(0, 9), None), of_topic("q", 4, read(0, 9), "new"), Decision.SKIP, id="a replay of before"),
        pytest.param(of_topic("q", 4, read(0, 9), "old"), of_topic("q", 4, read(0, 9), None), Decision.SKIP, id="brokers without ids"),
    ],
)  # fmt: skip
def test_offsets_of_a_source_mean_something_in_that_topic_alone(
    stored: Marker, offered: Marker, decision: Decision
) -> None:
    assert decide(stored, offered) is decision
    assert decide(from_text(to_text(stored)), offered) is decision


@pytest.mark.parametrize(
    ("stored", "offered", "told"),
    [
        (of_topic("q", 4, read(0, 9), "old"), of_topic("q", 4, read(0, 9), "new"), "orders was deleted and made anew since.*old.*new"),
        (of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(5, 12), "old"), "written twice"),
        (of_topic("q", 4, read(0, 9), None), of_topic("q", 5, read(-2, 12), "new"), "written twice"),
    ],
)  # fmt: skip
def test_a_replay_from_another_topic_is_none(stored: Marker, offered: Marker, told: str) -> None:
    with pytest.raises(ReplayDiffers, match=told):
        decide(stored, offered)


@pytest.mark.parametrize("end", [30, 9, 3], ids=["longer", "equal", "shorter"])
def test_after_a_lost_checkpoint_a_source_made_anew_is_told_or_read_from_its_start(end: int) -> None:
    markers = [of_topic("q", 4, {**read(0, 9), ELSEWHERE: (0, 5)}, "old")] * 2
    found = resumption(markers, {"orders": "new"})
    assert found is not None
    with pytest.raises(DataLost, match=r"orders was deleted and made anew.*old.*new"):
        in_topics(found, {"orders": "new"}, on_new_topic="refuse")
    goes_on = in_topics(found, {"orders": "new"}, on_new_topic="append")
    assert goes_on == Resumption(None, {ELSEWHERE: 5})
    assert in_topics(found, {"orders": "new"}, on_new_topic="leave_out") == found, (
        "where it was, by the id that it had"
    )
    assert in_topics(found, {"orders": "old"}, on_new_topic="refuse") == found
    following = {**read(-2, end), ELSEWHERE: (5, 6)}
    for stored in released(markers):
        offered = of_topic("r", 0, following, "new")
        assert decide(stored, offered) is Decision.WRITE
        assert decide(succeeding(stored, offered), offered) is Decision.SKIP


def test_half_a_batch_whose_source_is_gone_is_told() -> None:
    former, latter = of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(9, 12), "old")
    found = resumption([former, latter], {"orders": "new"})
    assert found is not None
    for on_new_topic in ("append", "leave_out"):
        with pytest.raises(DataLost, match=r"offsets 9 to 12 of orders-0.*topic old is gone"):
            in_topics(found, {"orders": "new"}, on_new_topic=on_new_topic)


def test_half_a_batch_of_the_topic_that_took_the_others_place_is_finished() -> None:
    """Its offsets are smaller, and it is the later one nevertheless."""
    former, latter = of_topic("q", 4, read(0, 9), "old"), of_topic("q", 5, read(-2, 3), "new")
    for markers in ([former, latter], [latter, former]):
        found = resumption(markers, {"orders": "new"})
        assert found == Resumption({ORDERS: (-2, 3)}, {ORDERS: 3}, {"orders": "new"})


@pytest.mark.parametrize("text", ['{"t":{"0":[1,2]},"#ids":[]}', '{"t":{"0":[1,2]},"#ids":{"t":4}}'])
def test_ids_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(WrongUse, match="#ids"):
        parse_ids(text)


def test_ids_are_told_with_the_ranges() -> None:
    text = ranges_to_text(read(0, 9), {"orders": "old"})
    assert (parse_ranges(text), parse_ids(text)) == (read(0, 9), {"orders": "old"})
    assert parse_ids(ranges_to_text(read(0, 9))) == {}
