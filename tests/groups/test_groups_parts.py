"""The parts that can be understood alone: alarms, subscriptions, shards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.sharding import shard_of
from ropewalk.base.timers import Timers
from ropewalk.groups.subscription import decode_topics
from tests.groups.stage import subscription

keys = st.sampled_from("abcde")
instants = st.integers(0, 50)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("set"), keys, instants),
        st.tuples(st.just("set_earlier"), keys, instants),
        st.tuples(st.just("cancel"), keys, st.just(0)),
        st.tuples(st.just("pop_due"), st.just(""), instants),
    ),
    max_size=300,
)


@given(operations)
def test_alarms_behave_like_a_table_that_is_searched(steps: list[tuple[str, str, int]]) -> None:
    timers: Timers[str] = Timers()
    table: dict[str, int] = {}
    for operation, key, instant in steps:
        match operation:
            case "set":
                timers.set(key, instant)
                table[key] = instant
            case "set_earlier":
                timers.set_earlier(key, instant)
                table[key] = min(table.get(key, instant), instant)
            case "cancel":
                timers.cancel(key)
                table.pop(key, None)
            case "pop_due":
                popped = timers.pop_due(instant)
                if popped is None:
                    assert all(due > instant for due in table.values())
                else:
                    earliest = min(table.values())
                    assert table.pop(popped) == earliest <= instant
        assert timers.next_due_at_ms() == min(table.values(), default=None)


def test_a_heartbeat_does_not_make_the_heap_grow() -> None:
    timers: Timers[int] = Timers()
    for now_ms in range(1000):
        for session in range(10):
            timers.set(session, now_ms + 100)
    assert len(timers._heap) == 10


def test_cancelled_alarms_are_cleared_away() -> None:
    timers: Timers[int] = Timers()
    for session in range(10_000):
        timers.set(session, session)
        timers.cancel(session)
    assert len(timers._heap) < 100


@given(st.lists(st.text(max_size=12), max_size=5), st.binary(max_size=10))
def test_the_topics_of_a_subscription_are_read_whatever_follows(topics: list[str], rest: bytes) -> None:
    assert decode_topics(subscription(*topics) + rest) == frozenset(topics)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\1", id="a version only"),
        pytest.param(b"\0\1\0\0\0\1", id="a topic is missing"),
        pytest.param(b"\0\1\0\0\0\1\0\5abc", id="a topic is cut short"),
        pytest.param(b"\0\1\0\0\0\1\0\1\xff", id="a topic is not text"),
        pytest.param(b"\0\1\xff\xff\xff\xff", id="a negative count"),
        pytest.param(b"\xff\xff\0\0\0\0", id="a negative version"),
        pytest.param(b'{"url": "http://worker:8083"}', id="another protocol's words"),
    ],
)
def test_what_is_not_a_subscription_is_unknown(metadata: bytes) -> None:
    assert decode_topics(metadata) is None


@pytest.mark.parametrize(
    ("group_id", "shard"),
    [
        pytest.param("g", 3, id="one letter"),
        pytest.param("orders-service", 17, id="overflow"),
        pytest.param("grüße 😀", 34, id="outside the basic plane"),
        pytest.param("polygenelubricants", 0, id="the smallest number has no opposite"),
    ],
)
def test_a_group_is_where_kafka_puts_it(group_id: str, shard: int) -> None:
    assert shard_of(group_id, 50) == shard
