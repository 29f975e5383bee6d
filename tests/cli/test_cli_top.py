"""`ropewalk top`: what it works out, what it draws for a source that is a list, and a real one in a terminal."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import TOP_ROWS_MAX
from ropewalk.cli.listing import COLUMNS, Listing, View, sparkline
from ropewalk.cli.top_screen import TopScreen
from ropewalk.client.errors import ConnectionLost
from ropewalk.records.record import Record, build
from ropewalk.views.group_lag import GroupLag, PartitionLag
from ropewalk.views.observation import (
    ClusterSource,
    GroupSample,
    PartitionSample,
    Picture,
    Sample,
    TopicRow,
    draw,
)
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_groups
from tests.cli.conftest import Ropewalk, in_terminal
from tests.cli.test_cli_commands import fill, lines
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import Stage, on_stage
from tests.client.fake_groups import FakeGroup, FakeMember
from tests.client.loopback import LoopbackBroker

PATIENCE_S = 30


def sample(at_ms: float, committed: int = 0, lag: int = 5, **ends: int) -> Sample:
    """Topics by name with one partition each, and a group `billing` that reads `a`."""
    row = PartitionLag("a", 0, committed, committed + lag, lag, "m", "")
    return Sample(
        at_ms,
        "a-cluster",
        1,
        {TopicPartition(name, 0): PartitionSample(0, 1, 1, 0, end) for name, end in ends.items()},
        {"billing": GroupSample("Stable", 1, GroupLag("billing", lag, 0, (row,)))},
    )


def test_rates_are_known_from_the_second_look_on() -> None:
    first = sample(1000, a=10, b=0)
    assert [row.written_per_second for row in draw(None, first).topics] == [None, None]
    second = draw(first, sample(3000, a=50, b=0, c=7, committed=30))
    assert [(row.topic, row.written_per_second) for row in second.topics] == [
        ("a", 20.0),
        ("b", 0.0),
        ("c", None),
    ]
    assert second.written_per_second == 20.0
    assert [(row.lag, row.read_per_second) for row in second.groups] == [(5, 15.0)]


def test_a_topic_that_was_made_anew_has_no_rate_yet() -> None:
    picture = draw(sample(0, a=50), sample(1000, a=3))
    assert (picture.topics[0].records, picture.topics[0].written_per_second) == (3, None)


def test_partitions_without_a_leader_or_behind_are_counted() -> None:
    at = {
        TopicPartition("a", 0): PartitionSample(None, 3, 0, None, None),
        TopicPartition("a", 1): PartitionSample(1, 3, 2, 4, 10),
        TopicPartition("a", 2): PartitionSample(1, 3, 3, 0, 1),
    }
    (row,) = draw(None, Sample(0, None, 3, at, {})).topics
    assert (row.partitions, row.offline, row.under_replicated, row.records) == (3, 1, 2, 7)


def test_bytes_and_what_is_led_are_added_up_by_topic_and_by_node() -> None:
    at = {
        TopicPartition("a", 0): PartitionSample(1, 3, 3, 0, 1, 10),
        TopicPartition("a", 1): PartitionSample(2, 3, 3, 0, 1, None),
        TopicPartition("a", 2): PartitionSample(1, 3, 3, 0, 1, 5),
        TopicPartition("b", 0): PartitionSample(None, 3, 0, None, None, 7),
        TopicPartition("c", 0): PartitionSample(2, 3, 3, 0, 1, None),
    }
    picture = draw(None, Sample(0, None, 3, at, {}))
    assert {row.topic: row.bytes for row in picture.topics} == {"a": 15, "b": 7, "c": None}
    assert [(row.node, row.leads, row.bytes) for row in picture.nodes] == [("1", 2, 15), ("2", 2, None)]


def test_a_chart_is_as_high_as_its_largest_and_leaves_a_gap_for_what_is_not_known() -> None:
    assert sparkline([]) == ""
    assert sparkline([None, None]) == "  "
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([7.0, None, 0.0, 14.0]) == "▅ ▁█"


rates = st.none() | st.floats(0, 1e6)
topics = st.lists(
    st.builds(
        TopicRow, st.text(max_size=4), st.integers(1, 9), st.just(0), st.just(0), st.integers(0, 99), rates
    ),
    unique_by=lambda row: row.topic,
)


@given(topics, st.integers(0, 5), st.booleans())
def test_every_row_is_shown_in_order_and_the_unknown_last(
    rows: list[TopicRow], sorted_by: int, is_reversed: bool
) -> None:
    picture = Picture(None, 1, None, tuple(rows), (), ())
    shown = Listing(View.TOPICS, sorted_by, is_reversed).rows(picture).shown
    assert {row[0] for row in shown} == {row.topic for row in rows}
    cells = [row[sorted_by] for row in shown]
    known = [cell for cell in cells if cell is not None]
    assert cells == [*known, *[None] * (len(cells) - len(known))]
    keys = [cell.lower() if isinstance(cell, str) else cell for cell in known]
    assert keys == sorted(keys, reverse=(sorted_by == 0) == is_reversed)


def test_rows_are_filtered_by_name_and_no_more_are_shown_than_asked() -> None:
    rows = tuple(TopicRow(f"Topic-{number}", 1, 0, 0, 0, None) for number in range(20))
    picture = Picture(None, 1, None, rows, (), ())
    found = Listing(wanted="topic-1").rows(picture, count_max=3)
    assert (len(found.shown), found.total) == (3, 11)


class Told:
    """A source that shows its samples one after the other, the last of them for ever."""

    def __init__(self, *samples: Sample | RopewalkError) -> None:
        self.left = list(samples)
        self.looks = 0

    async def look(self) -> Sample:
        self.looks += 1
        shown = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(shown, RopewalkError):
            raise shown
        return shown


def drawn(screen: TopScreen) -> list[list[str]]:
    table = screen.query_one(DataTable)
    return [[str(cell) for cell in table.get_row_at(index)] for index in range(table.row_count)]


def summary(screen: TopScreen) -> str:
    return str(screen.query_one("#summary", Static).content)


def on_screen(source: Told, story: Callable[[TopScreen, Pilot[None]], Awaitable[None]]) -> None:
    async def play() -> None:
        screen = TopScreen(source, interval_s=3600)
        async with screen.run_test(size=(120, 30)) as pilot:
            await looked(source, 1, pilot)
            await story(screen, pilot)

    asyncio.run(play())


async def looked(source: Told, count: int, pilot: Pilot[None]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while source.looks < count:
            await pilot.pause()
        await pilot.pause()


def test_keys_switch_sort_and_filter() -> None:
    source = Told(sample(0, a=10, b=99), sample(1000, a=30, b=99, committed=4))

    async def story(screen: TopScreen, pilot: Pilot[None]) -> None:
        assert [row[0] for row in drawn(screen)] == ["a", "b"]
        await pilot.press("u")
        await looked(source, 2, pilot)
        assert drawn(screen) == [
            ["a", "1", "0", "0", "30", "20.0", "-"],
            ["b", "1", "0", "0", "99", "0.0", "-"],
        ]
        await pilot.press("comma")
        assert [row[0] for row in drawn(screen)] == ["b", "a"], "by records, the most first"
        await pilot.press("r")
        assert [row[0] for row in drawn(screen)] == ["a", "b"]
        await pilot.press("p")
        assert drawn(screen)[0] == ["a", "0", "0", "1", "1", "0", "30", "20.0"]
        await pilot.press("g")
        assert drawn(screen) == [["billing", "Stable", "1", "5", "0", "4.0"]]
        assert len(screen.query_one(DataTable).columns) == len(COLUMNS[View.GROUPS])
        await pilot.press("n")
        assert drawn(screen) == [["0", "2", "20.0", "-"]]
        assert "written/s 20.0  █" in summary(screen), "of the first look nothing is known"
        await pilot.press("t", "slash", "b", "enter")
        assert [row[0] for row in drawn(screen)] == ["b"]
        assert "topics 1" in summary(screen)
        await pilot.press("escape")
        assert len(drawn(screen)) == 2
        assert screen.query_one(Input).value == ""
        await pilot.press("q")

    on_screen(source, story)


def test_a_failed_look_is_said_and_the_last_picture_stays() -> None:
    source = Told(sample(0, a=10), ConnectionLost("the connection to b0:9092 ended"), sample(1000, a=10))

    async def story(screen: TopScreen, pilot: Pilot[None]) -> None:
        await pilot.press("u")
        await looked(source, 2, pilot)
        assert "the connection to b0:9092 ended" in summary(screen)
        assert len(drawn(screen)) == 1
        await pilot.press("u")
        await looked(source, 3, pilot)
        assert "ended" not in summary(screen)

    on_screen(source, story)


def test_a_pause_is_shown_and_its_end_looks_again() -> None:
    source = Told(sample(0, a=10))

    async def story(screen: TopScreen, pilot: Pilot[None]) -> None:
        await pilot.press("space")
        assert "paused" in summary(screen)
        await pilot.press("space")
        await looked(source, 2, pilot)
        assert "paused" not in summary(screen)

    on_screen(source, story)


def test_names_are_no_markup_and_many_rows_are_cut() -> None:
    many = {f"[bold]{number:04}": 1 for number in range(TOP_ROWS_MAX + 20)}

    async def story(screen: TopScreen, pilot: Pilot[None]) -> None:
        shown = drawn(screen)
        assert (len(shown), shown[0][0]) == (TOP_ROWS_MAX, "[bold]0000")
        assert f"{TOP_ROWS_MAX:,} of {TOP_ROWS_MAX + 20:,}" in summary(screen)

    on_screen(Told(sample(0, **many)), story)


def test_a_cluster_is_looked_at() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 1, 9)
        topic.partitions[1].append(bytes(build([Record(value=b"1"), Record(value=b"2")])))
        stage.cluster.add_topic("__hidden", 0)
        member = FakeMember("m", ("orders",), {"orders": (0, 1)})
        stage.cluster.groups["billing"] = FakeGroup(1, [member], {("orders", 1): 1, ("gone", 0): 3})
        stage.cluster.groups["other"] = FakeGroup(0, offsets={("orders", 0): 0})
        stage.brokers[0].fail(describe_groups.API, Fault(9, ErrorCode.GROUP_ID_NOT_FOUND))
        async with stage.client() as client:
            looked = await ClusterSource(client, internal=False).look()
            everything = await ClusterSource(client, internal=True).look()
        assert {str(at): (each.leader, each.end) for at, each in looked.partitions.items()} == {
            "orders-0": (0, 0),
            "orders-1": (1, 2),
            "orders-2": (9, None),
        }
        group = looked.groups["billing"]
        assert (group.member_count, group.lag.lag, group.lag.unknown) == (1, 1, 2)
        assert (looked.groups["other"].member_count, looked.groups["other"].lag.lag) == (None, 0)
        assert TopicPartition("__hidden", 0) in everything.partitions

    on_stage(story)


def test_one_look_is_printed(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"a", b"b")
    broker.cluster.groups["billing"] = FakeGroup(0, offsets={("orders", 0): 1})
    shown = lines(ropewalk("top", "--once", "--interval", "1ms").stdout)
    assert shown[1][:6] == ["orders", "1", "0", "0", "2", "0.0"]
    assert ["billing", "Empty", "0", "1", "0", "0.0"] in shown
    assert shown[-1][:3] == ["0", "1", "0.0"]
    picture = json.loads(ropewalk("top", "--once", "--interval", "1ms", "-o", "json").stdout)
    assert (picture["topics"][0]["records"], picture["groups"][0]["lag"]) == (2, 1)
    assert picture["partitions"][0]["end"] == 2


def test_without_a_terminal_it_says_what_to_do(ropewalk: Ropewalk) -> None:
    result = ropewalk("top")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--once prints tables" in result.stderr
    assert ropewalk("top", "-o", "json").exit_code == 2
    assert ropewalk("top", "--once", "--interval", "0s").exit_code == 2


def test_in_a_terminal_it_draws_and_ends_with_q(broker: LoopbackBroker) -> None:
    broker.cluster.add_topic("orders", 0)
    _, exit_code = in_terminal("top", bootstrap=broker.address, until="orders", then="q")
    assert exit_code == 0
