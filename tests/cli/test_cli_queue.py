"""The commands of queues, through their public face, against a server of the SQS API in memory."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.cli.conftest import Ropewalk, in_terminal
from tests.client.fake_queues import FakeQueue, Fault, LoopbackQueues


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackQueues]:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    door = LoopbackQueues()
    door.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", door.endpoint)
    yield door
    door.stop()


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def add(door: LoopbackQueues, name: str, **attributes: str) -> FakeQueue:
    return door.server.queues.setdefault(name, FakeQueue(name, attributes))


def bodies(door: LoopbackQueues, name: str) -> list[str]:
    return [message.entry["MessageBody"] for message in door.server.queues[name].messages]


def test_a_queue_lives_from_create_to_delete(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    assert (
        ropewalk(
            "queue", "create", "jobs", "--visibility", "2m", "--delay", "5", "--retention", "1d"
        ).exit_code
        == 0
    )
    assert door.server.queues["jobs"].attributes == {
        "VisibilityTimeout": "120",
        "DelaySeconds": "5",
        "MessageRetentionPeriod": "86400",
    }
    sent = ropewalk("queue", "send", "jobs", "hemp", "tar", "-a", "colour=brown")
    assert lines(sent.stdout) == [["MESSAGE"], ["m-1"], ["m-2"]]
    assert lines(ropewalk("queue", "ls").stdout) == [
        ["QUEUE", "VISIBLE", "IN", "FLIGHT", "DELAYED"],
        ["jobs", "2", "0", "0"],
    ]
    assert ropewalk("queue", "receive", "jobs", "-n", "5", "--delete").stdout == "hemp\ntar\n"
    assert bodies(door, "jobs") == []
    described = lines(ropewalk("queue", "describe", "jobs").stdout)
    assert ["VisibilityTimeout", "120"] in described
    assert ropewalk("queue", "delete", "jobs", "--yes").exit_code == 0
    assert door.server.queues == {}


def test_a_fifo_queue_with_dead_letters_is_made_in_two_commands(
    door: LoopbackQueues, ropewalk: Ropewalk
) -> None:
    assert ropewalk("queue", "create", "dead", "--fifo").exit_code == 0
    made = ropewalk(
        "queue", "create", "jobs", "--fifo", "--content-deduplication", "--dead-letters", "dead.fifo",
        "--max-receives", "3", "-o", "json",
    )  # fmt: skip
    assert json.loads(made.stdout)["queue"] == "jobs.fifo"
    attributes = door.server.queues["jobs.fifo"].attributes
    assert attributes["FifoQueue"] == attributes["ContentBasedDeduplication"] == "true"
    assert json.loads(attributes["RedrivePolicy"]) == {
        "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead.fifo",
        "maxReceiveCount": 3,
    }
    (described,) = json.loads(ropewalk("queue", "describe", "dead.fifo", "-o", "json").stdout)
    assert described["dead_letters_of"] == ["jobs.fifo"]


def test_a_topic_is_adopted(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    assert ropewalk("queue", "create", "jobs", "--topic", "orders", "--from", "latest").exit_code == 0
    target, fields = door.server.asked[-1]
    assert target == "Ropewalk.AdoptTopic"
    assert (fields["QueueName"], fields["Topic"], fields["From"]) == ("jobs", "orders", "latest")


def test_lines_of_the_input_are_messages(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    add(door, "jobs.fifo", FifoQueue="true")
    result = ropewalk("queue", "send", "jobs.fifo", "-g", "dock", stdin="one\n\ntwo\nthree")
    assert result.exit_code == 0
    assert bodies(door, "jobs.fifo") == ["one", "two", "three"]
    assert {message.entry["MessageGroupId"] for message in door.server.queues["jobs.fifo"].messages} == {
        "dock"
    }


def test_what_is_received_comes_back_and_what_is_deleted_does_not(
    door: LoopbackQueues, ropewalk: Ropewalk
) -> None:
    add(door, "jobs")
    ropewalk("queue", "send", "jobs", "hemp")
    shown = json.loads(ropewalk("queue", "receive", "jobs", "--visibility", "0", "-o", "json").stdout)
    assert [(each["body"], each["system_attributes"]["ApproximateReceiveCount"]) for each in shown] == [
        ("hemp", "1")
    ]
    assert ropewalk("queue", "receive", "jobs", "-d", "--wait", "1s").stdout == "hemp\n"
    assert ropewalk("queue", "receive", "jobs").stdout == ""


def test_looking_takes_nothing(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    add(door, "jobs")
    ropewalk("queue", "send", "jobs", "hemp", "tar", "-a", "n=1")
    shown = json.loads(ropewalk("queue", "peek", "jobs", "-n", "1", "-o", "json").stdout)
    assert [(each["body"], each["attributes"]) for each in shown] == [("hemp", {"n": "1"})]
    assert lines(ropewalk("queue", "peek", "jobs").stdout)[1:] == [["m-1", "0", "hemp"], ["m-2", "0", "tar"]]
    assert lines(ropewalk("queue", "ls", "j").stdout)[1] == ["jobs", "2", "0", "0"]


def test_why_a_message_is_not_given_out_is_told_in_a_sentence(
    door: LoopbackQueues, ropewalk: Ropewalk
) -> None:
    add(door, "jobs.fifo")
    ropewalk("queue", "send", "jobs.fifo", "-g", "dock", "a", "b")
    assert (
        ropewalk("queue", "why", "jobs.fifo", "m-1").stdout
        == "m-1 is visible: the next receive may have it\n"
    )
    ropewalk("queue", "receive", "jobs.fifo")
    told = ropewalk("queue", "why", "jobs.fifo", "m-1").stdout
    assert re.fullmatch(r"m-1 is in flight until \d{4}-.*Z, in attempt 1; received once\n", told)
    behind = ropewalk("queue", "why", "jobs.fifo", "m-2")
    assert behind.stdout == "m-2 waits behind message m-1 of its group dock\n"
    assert json.loads(ropewalk("queue", "why", "jobs.fifo", "m-2", "-o", "json").stdout)["behind"] == "m-1"
    assert "has no message of that id" in ropewalk("queue", "why", "jobs.fifo", "m-9").stderr


def test_of_a_dead_letter_it_is_told_where_it_is(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    dead = add(door, "dead")
    add(door, "jobs", RedrivePolicy=json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2}))
    ropewalk("queue", "send", "dead", "hemp")
    assert ropewalk("queue", "why", "jobs", "m-1").stdout == "m-1 is dead: in dead\n"


def test_dead_letters_go_back_and_elsewhere(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    add(door, "dead")
    add(door, "jobs")
    ropewalk("queue", "send", "dead", "a", "b")
    moved = json.loads(ropewalk("queue", "move", "dead", "--to", "jobs", "--rate", "5", "-o", "json").stdout)
    expected = {"queue": "dead", "status": "completed", "moved": 2, "to_move": 2, "failure": None}
    assert {name: moved[name] for name in expected} == expected
    assert bodies(door, "jobs") == ["a", "b"]
    assert lines(ropewalk("queue", "redrive", "dead").stdout)[1] == ["dead", "completed", "0", "0"]
    started = [fields for target, fields in door.server.asked if "StartMessageMoveTask" in target]
    assert [each.get("DestinationArn", "").rpartition(":")[2] for each in started] == ["jobs", ""]
    assert started[0]["MaxNumberOfMessagesPerSecond"] == 5
    listed = lines(ropewalk("queue", "moves", "dead").stdout)
    assert [row[:3] for row in listed[1:]] == [["completed", "0", "0"], ["completed", "2", "2"]]
    assert len(json.loads(ropewalk("queue", "moves", "dead", "-o", "json").stdout)) == 2
    door.server.tasks[0]["Status"] = "RUNNING"
    assert ropewalk("queue", "redrive", "dead", "--cancel").exit_code == 0
    assert door.server.tasks[0]["Status"] == "CANCELLED"


def test_a_move_that_failed_is_a_failure(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    add(door, "dead")
    door.server.fail_next("ListMessageMoveTasks", Fault.BUSY)  # and is asked again
    door.server.task_outcome = {"Status": "FAILED", "FailureReason": "no origin"}
    result = ropewalk("queue", "redrive", "dead")
    assert (result.exit_code, "no origin" in result.stderr) == (1, True)


def test_a_rewind_says_to_when(door: LoopbackQueues, ropewalk: Ropewalk) -> None:
    add(door, "jobs")
    assert ropewalk("queue", "rewind", "jobs", "--to", "2026-11-15T10:00", "--yes").exit_code == 0
    target, fields = door.server.asked[-1]
    assert target == "Ropewalk.RewindQueue"
    assert fields["Timestamp"] == datetime(2026, 11, 15, 10, tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize("command", [("delete", "jobs"), ("purge", "jobs"), ("rewind", "jobs", "--to", "0")])
def test_nothing_is_lost_without_a_word(
    command: tuple[str, ...], door: LoopbackQueues, ropewalk: Ropewalk
) -> None:
    add(door, "jobs")
    ropewalk("queue", "send", "jobs", "hemp")
    result = ropewalk("queue", *command)
    assert (result.exit_code, "--yes does it without asking" in result.stderr) == (1, True)
    assert bodies(door, "jobs") == ["hemp"]
    assert not {"DeleteQueue", "PurgeQueue", "RewindQueue"} & set(door.server.actions())


def test_a_person_types_the_name(door: LoopbackQueues) -> None:
    add(door, "jobs")
    shown, code = in_terminal("queue", "purge", "jobs", bootstrap="", until="to go on", then="jobs\n")
    assert code == 0, shown
    assert "About 0 messages of jobs will be gone" in shown
    assert door.server.actions()[-1] == "PurgeQueue"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("receive", "nowhere"),
            "The specified queue does not exist. (QueueDoesNotExist); `ropewalk queue ls` shows",
        ),
        (("purge", "nowhere", "--yes"), "(QueueDoesNotExist)"),
        (("redrive", "jobs", "--cancel"), "no task moves messages of jobs"),
        (("ls", "--endpoint", "http://127.0.0.1:1"), "cannot reach http://127.0.0.1:1"),
        (("ls", "--endpoint", "nonsense://"), "is not an endpoint"),
    ],
)
def test_a_failure_is_one_line_with_a_next_step(
    arguments: tuple[str, ...],
    told: str,
    door: LoopbackQueues,
    ropewalk: Ropewalk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ropewalk.cli.queue_options.PATIENCE_MS", 300)
    add(door, "jobs")
    result = ropewalk("queue", *arguments)
    assert result.exit_code == 1
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "jobs", "--visibility", "soon"),
        ("create", "jobs", "--delay", "1500ms"),
        ("create", "jobs", "--max-receives", "3"),
        ("create", "jobs", "-a", "novalue"),
        ("send", "jobs", "a", "b", "--deduplication-id", "x"),
        ("rewind", "jobs", "--to", "yesterday", "--yes"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    arguments: tuple[str, ...], door: LoopbackQueues, ropewalk: Ropewalk
) -> None:
    assert ropewalk("queue", *arguments).exit_code == 2
    assert door.server.asked == []


def test_a_bootstrap_that_was_said_counts_more_than_the_environment(
    door: LoopbackQueues, ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropewalk.cli.queue_options.PATIENCE_MS", 300)
    result = ropewalk("queue", "ls", "-b", "127.0.0.1:1")
    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.stderr
    assert door.server.asked == []
