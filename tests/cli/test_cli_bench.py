"""`ropewalk bench`: what it counts, when it stops, and that it leaves nothing behind."""

import json
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.cli.bench_loads import Delays, Shape, measure_delays
from ropewalk.cli.latencies import Latencies
from ropewalk.cli.progress import Progress
from ropewalk.cli.workload import Piece, Workload
from ropewalk.client.calls.produce import Acks
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import delete_topics, produce
from tests.cli.conftest import Ropewalk, in_terminal
from tests.cli.test_cli_commands import fill
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import Stage, on_stage
from tests.client.loopback import LoopbackBroker


@given(st.lists(st.floats(0.001, 1e7), min_size=1, max_size=50), st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_a_percentile_is_right_within_one_per_cent(durations: list[float], fraction: float) -> None:
    latencies = Latencies()
    for duration in durations:
        latencies.add(duration)
    exact = sorted(durations)[ceil(len(durations) * fraction) - 1]
    assert exact * 0.999999 <= latencies.percentile(fraction) <= exact * 1.0101


def test_nothing_measured_has_no_summary() -> None:
    assert Latencies().summary() is None


@pytest.mark.parametrize(
    ("count", "duration_ms", "rate", "takes"),
    [
        pytest.param(
            250,
            None,
            None,
            [(0, Piece(100, 0)), (1, Piece(100, 1)), (2, Piece(50, 2)), (3, None)],
            id="count",
        ),
        pytest.param(None, 10, None, [(0, Piece(100, 0)), (9, Piece(100, 9)), (10, None)], id="duration"),
        pytest.param(
            None,
            500,
            1000,
            [(0, Piece(100, 0)), (0, Piece(100, 100)), (450, Piece(100, 200)), (500, None)],
            id="rate",
        ),
        pytest.param(
            None, 150, 1000, [(0, Piece(100, 0)), (0, Piece(100, 100)), (0, None)], id="due too late"
        ),
        pytest.param(100, 10, None, [(0, Piece(100, 0)), (1, None)], id="whichever comes first"),
    ],
)
def test_work_is_given_out_until_it_is_done(
    count: int | None, duration_ms: float | None, rate: float | None, takes: list[tuple[float, Piece | None]]
) -> None:
    workload = Workload(0.0, count=count, duration_ms=duration_ms, rate=rate)
    assert [workload.take(100, now_ms) for now_ms, _ in takes] == [piece for _, piece in takes]


def test_producing_sends_what_was_asked_for_and_deletes_its_topic(
    broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    result = ropewalk(
        "bench", "produce", "-n", "250", "--size", "10", "--batch", "40", "-p", "3", "-o", "json"
    )
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert (shown["records"], shown["bytes"]) == (250, 2500)
    assert shown["latency_ms"]["p50"] <= shown["latency_ms"]["max"]
    assert broker.cluster.topics == {}


def test_a_given_topic_is_used_and_kept(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0, 0)
    result = ropewalk("bench", "produce", "-t", "orders", "-n", "30", "--size", "7", "--batch", "10")
    assert result.exit_code == 0, result.stderr
    assert "acknowledged" in result.stdout
    assert "Client and broker together" in result.stdout
    values = [value for each in broker.cluster.topics["orders"].partitions for value in each.values()]
    assert [len(value or b"") for value in values] == [7] * 30


def test_consuming_fills_a_topic_and_reads_it(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    result = ropewalk("bench", "consume", "-n", "300", "--size", "10", "-o", "json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert (shown["records"], shown["bytes"], shown["latency_ms"]) == (300, 3000, None)
    assert broker.cluster.topics == {}


def test_consuming_a_given_topic_reads_what_is_there(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0, 0)
    empty = ropewalk("bench", "consume", "-t", "orders")
    assert (empty.exit_code, "orders is empty" in empty.stderr) == (1, True)
    fill(broker, "orders", b"a", b"b")
    assert json.loads(ropewalk("bench", "consume", "-t", "orders", "-o", "json").stdout)["records"] == 2


def test_every_record_that_was_sent_is_waited_for(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    result = ropewalk("bench", "latency", "-n", "20", "--rate", "1000", "-o", "json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert (shown["records"], shown["lost"]) == (20, 0)
    assert shown["arrived_ms"]["max"] > 0
    assert broker.cluster.topics == {}


def test_a_record_that_never_arrives_is_counted_as_lost() -> None:
    async def story(stage: Stage) -> Delays:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        broker.fail(produce.API, Fault(1, is_silent=True))
        async with stage.client() as client:
            workload = Workload(stage.now_ms, count=3, duration_ms=None, rate=1000)
            shape = Shape(20, acks=Acks.NONE)
            return await measure_delays(client, "orders", shape, workload, Progress(stage.clock, None))

    delays = on_stage(story)
    assert (delays.records, delays.lost) == (3, 1)


def test_a_terminal_sees_a_bar_and_then_the_summary(broker: LoopbackBroker) -> None:
    shown, exit_code = in_terminal("bench", "produce", "-n", "200", "--size", "10", bootstrap=broker.address)
    assert exit_code == 0, shown
    assert shown.index("records/s") < shown.index("RECORDS/S")


def test_a_failure_still_deletes_the_topic(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.broker.fail(produce.API, Fault(1, ErrorCode.MESSAGE_TOO_LARGE))
    result = ropewalk("bench", "produce", "-n", "10")
    assert (result.exit_code, "MESSAGE_TOO_LARGE" in result.stderr) == (1, True)
    assert broker.broker.asked(delete_topics.DeleteTopicsRequest) == 1
    assert broker.cluster.topics == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("produce", "-n", "0"),
        ("produce", "--rate", "0"),
        ("produce", "--size", "0"),
        ("produce", "--duration", "soon"),
        ("produce", "--duration", "0s"),
        ("latency", "--size", "15"),
        ("consume", "--senders", "2"),
    ],
)
def test_a_wrong_call_exits_with_2(arguments: tuple[str, ...], ropewalk: Ropewalk) -> None:
    assert ropewalk("bench", *arguments).exit_code == 2
