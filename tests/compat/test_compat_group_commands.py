"""`ropewalk group` beside a real consumer: what it shows, what it changes, and when it is refused."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from typer.testing import CliRunner, Result

from ropewalk.cli.main import app
from tests.compat.conftest import MakeTopic

pytestmark = pytest.mark.compat

PATIENCE_S = 30
RECORDS = 6

Ropewalk = Callable[..., Result]


@pytest.fixture
def ropewalk(bootstrap: str) -> Ropewalk:
    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["-b", bootstrap, *arguments], prog_name="ropewalk")

    return run


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def orders(bootstrap: str, make_topic: MakeTopic) -> str:
    """A topic of two partitions, with three records in each."""
    name = make_topic(2)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return name


@pytest.fixture
def consumer(bootstrap: str, group: str, orders: str) -> Iterator[Consumer]:
    """A member that has read everything and committed nothing."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "the-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([orders])
    messages = consumer.consume(RECORDS, PATIENCE_S)
    assert len(messages) == RECORDS
    yield consumer
    consumer.close()


def read(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    shown: list[dict[str, Any]] = json.loads(result.stdout)
    return shown


def test_a_living_group_is_shown(group: str, orders: str, consumer: Consumer, ropewalk: Ropewalk) -> None:
    consumer.commit(asynchronous=False)
    listed = {each["group"]: each for each in read(ropewalk("group", "ls", "-o", "json"))}
    assert (listed[group]["state"], listed[group]["type"]) == ("Stable", "classic")
    (described,) = read(ropewalk("group", "describe", group, "-o", "json"))
    (member,) = described["members"]
    assert (described["state"], described["protocol"], described["lag"]) == ("Stable", "range", 0)
    assert (member["client"], member["host"], member["topics"]) == ("the-reader", "127.0.0.1", [orders])
    assert member["partitions"] == [{"topic": orders, "partition": index} for index in (0, 1)]


def test_lag_is_what_is_left_to_read(group: str, orders: str, consumer: Consumer, ropewalk: Ropewalk) -> None:
    (before,) = read(ropewalk("group", "lag", group, "-o", "json"))
    assert (before["lag"], before["unknown"]) == (0, 2)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert ropewalk("group", "lag", group, "--max", "0").exit_code == 0
    reset = ropewalk("group", "reset", group, "--topic", f"{orders}:1", "--shift-by", "-2", "--execute")
    assert reset.exit_code == 0, reset.stderr
    (after,) = read(ropewalk("group", "lag", group, "-o", "json"))
    assert (after["lag"], after["unknown"]) == (2, 0)
    assert ropewalk("group", "lag", group, "--max", "1").exit_code == 1


def test_the_group_and_its_topic_are_watched(
    group: str, orders: str, consumer: Consumer, ropewalk: Ropewalk
) -> None:
    consumer.commit(asynchronous=False)
    shown = ropewalk("top", "--once", "--interval", "50ms", "-o", "json")
    assert shown.exit_code == 0, shown.stderr
    picture = json.loads(shown.stdout)
    (topic,) = [row for row in picture["topics"] if row["topic"] == orders]
    assert (topic["partitions"], topic["offline"], topic["records"]) == (2, 0, RECORDS)
    (watched,) = [row for row in picture["groups"] if row["group"] == group]
    assert (watched["state"], watched["members"], watched["lag"]) == ("Stable", 1, 0)


def test_a_group_with_members_is_left_alone(
    group: str, orders: str, consumer: Consumer, ropewalk: Ropewalk
) -> None:
    consumer.commit(asynchronous=False)
    reset = ropewalk("group", "reset", group, "--all-topics", "--to-earliest", "--execute")
    assert reset.exit_code == 1
    assert "has 1 member (the-reader at 127.0.0.1)" in reset.stderr
    deleted = ropewalk("group", "delete", group, "--yes")
    assert (deleted.exit_code, "NON_EMPTY_GROUP" in deleted.stderr) == (1, True)
    offsets = ropewalk("group", "delete", group, "--yes", "--topic", orders)
    assert (offsets.exit_code, "GROUP_SUBSCRIBED_TO_TOPIC" in offsets.stderr) == (1, True)


def test_a_reset_group_reads_from_there(
    bootstrap: str, group: str, orders: str, consumer: Consumer, ropewalk: Ropewalk
) -> None:
    consumer.commit(asynchronous=False)
    consumer.close()
    tried = ropewalk("group", "reset", group, "--all-topics", "--to-offset", "2", "-o", "json")
    assert [move["status"] for move in read(tried)] == ["would be reset"] * 2
    assert ropewalk("group", "lag", group, "--max", "0").exit_code == 0, "nothing was changed"
    done = ropewalk("group", "reset", group, "--all-topics", "--to-offset", "2", "--execute")
    assert done.exit_code == 0, done.stderr
    successor = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "error"})
    successor.subscribe([orders])
    values = {message.value() for message in successor.consume(2, PATIENCE_S) if message.error() is None}
    successor.close()
    assert values == {b"4", b"5"}


def test_a_group_is_made_by_a_reset_and_deleted(group: str, orders: str, ropewalk: Ropewalk) -> None:
    made = ropewalk("group", "reset", group, "--topic", orders, "--to-latest", "--execute")
    assert made.exit_code == 0, made.stderr
    (described,) = read(ropewalk("group", "describe", group, "-o", "json"))
    assert (described["state"], described["members"], described["lag"]) == ("Empty", [], 0)
    part = ropewalk("group", "delete", group, "--yes", "--topic", f"{orders}:0")
    assert part.exit_code == 0, part.stderr
    (left,) = read(ropewalk("group", "lag", group, "-o", "json"))
    assert [row["partition"] for row in left["partitions"]] == [1]
    assert ropewalk("group", "delete", group, "--yes").exit_code == 0
    gone = ropewalk("group", "describe", group)
    assert (gone.exit_code, "GROUP_ID_NOT_FOUND" in gone.stderr) == (1, True)


def test_a_group_that_is_not_there_is_refused_by_name(group: str, ropewalk: Ropewalk) -> None:
    for command in ("describe", "lag"):
        refused = ropewalk("group", command, group)
        assert (refused.exit_code, "GROUP_ID_NOT_FOUND" in refused.stderr) == (1, True)
    deleted = ropewalk("group", "delete", group, "--yes")
    assert (deleted.exit_code, "GROUP_ID_NOT_FOUND" in deleted.stderr) == (1, True)
