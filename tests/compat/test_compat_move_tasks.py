"""boto3 against a node that is a process: dead letters go back to their own sources, at a rate, and tasks are listed and cancelled."""

import json
import time
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.compat.node_process import StartNode

pytestmark = pytest.mark.compat

PATIENCE_S = 60
LOOK_S = 0.1


@pytest.fixture(scope="module")
def sqs(start_node: StartNode) -> Any:
    node = start_node("--memory", "--sqs", "127.0.0.1:0")
    return boto3.client(
        "sqs",
        endpoint_url=str(node.ready["sqs"][0]),
        region_name="eu-west-1",
        aws_access_key_id="any",
        aws_secret_access_key="key",
    )


def make(sqs: Any, name: str, **attributes: str) -> tuple[str, str]:
    """Address and ARN."""
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return url, arn


def policy(arn: str) -> str:
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})


def until(look: Callable[[], Any]) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < end_s, "it never came to that"
        time.sleep(LOOK_S)
    return found


def task_in(sqs: Any, arn: str, *statuses: str) -> dict[str, Any]:
    """The latest one, once it is in one of these."""

    def look() -> dict[str, Any] | None:
        (task,) = sqs.list_message_move_tasks(SourceArn=arn)["Results"]
        return task if task["Status"] in statuses else None

    found: dict[str, Any] = until(look)
    return found


def count(sqs: Any, url: str) -> int:
    names = ["ApproximateNumberOfMessages"]
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"][names[0]])


def kill(sqs: Any, url: str, dead_url: str, *bodies: str) -> None:
    """Send them, and receive them in vain."""
    before = count(sqs, dead_url)
    for body in bodies:
        sqs.send_message(QueueUrl=url, MessageBody=body)
        assert sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=5)["Messages"]
    until(lambda: count(sqs, dead_url) == before + len(bodies))


def bodies_in(sqs: Any, url: str) -> list[str]:
    found = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += [message["Body"] for message in messages]
    return sorted(found)


def test_dead_letters_go_back_each_to_its_own_source(sqs: Any) -> None:
    dead, dead_arn = make(sqs, "back-dead")
    one, _ = make(sqs, "back-one", RedrivePolicy=policy(dead_arn))
    two, _ = make(sqs, "back-two", RedrivePolicy=policy(dead_arn))
    kill(sqs, one, dead, "a", "b")
    kill(sqs, two, dead, "c")
    assert sqs.start_message_move_task(SourceArn=dead_arn)["TaskHandle"]
    task = task_in(sqs, dead_arn, "COMPLETED")
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (3, 3)
    assert not {"TaskHandle", "FailureReason", "DestinationArn"} & task.keys()
    (first,) = sqs.receive_message(QueueUrl=two, MessageSystemAttributeNames=["All"])["Messages"]
    assert (first["Body"], first["Attributes"]["ApproximateReceiveCount"]) == ("c", "1")
    assert "DeadLetterQueueSourceArn" not in first["Attributes"]
    assert (bodies_in(sqs, one), bodies_in(sqs, dead)) == (["a", "b"], [])


def test_a_slow_task_is_cancelled_and_the_rest_stays(sqs: Any) -> None:
    dead, dead_arn = make(sqs, "slow-dead")
    source, _ = make(sqs, "slow-source", RedrivePolicy=policy(dead_arn))
    _, other_arn = make(sqs, "slow-other")
    kill(sqs, source, dead, *"abcdef")
    started_s = time.monotonic()
    handle = sqs.start_message_move_task(
        SourceArn=dead_arn, DestinationArn=other_arn, MaxNumberOfMessagesPerSecond=1
    )["TaskHandle"]
    with pytest.raises(ClientError, match="Only one active task is allowed"):
        sqs.start_message_move_task(SourceArn=dead_arn)
    running = task_in(sqs, dead_arn, "RUNNING")
    assert (running["TaskHandle"], running["MaxNumberOfMessagesPerSecond"]) == (handle, 1)
    until(lambda: task_in(sqs, dead_arn, "RUNNING")["ApproximateNumberOfMessagesMoved"] >= 3)
    assert time.monotonic() - started_s >= 1.9, "the first goes at once, the others one in a second"
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] >= 3
    over = task_in(sqs, dead_arn, "CANCELLED")
    assert count(sqs, dead) == 6 - over["ApproximateNumberOfMessagesMoved"] > 0
    with pytest.raises(ClientError, match="RUNNING"):
        sqs.cancel_message_move_task(TaskHandle=handle)


def test_what_was_sent_to_the_dead_letter_queue_itself_fails_the_task_and_stays(sqs: Any) -> None:
    dead, dead_arn = make(sqs, "direct-dead")
    _, source_arn = make(sqs, "direct-source", RedrivePolicy=policy(dead_arn))
    sqs.send_message(QueueUrl=dead, MessageBody="nobody's")
    sqs.start_message_move_task(SourceArn=dead_arn)
    failed = task_in(sqs, dead_arn, "FAILED")
    assert failed["FailureReason"] == "CouldNotDetermineMessageSource"
    assert count(sqs, dead) == 1
    sqs.start_message_move_task(SourceArn=dead_arn, DestinationArn=source_arn)
    assert task_in(sqs, dead_arn, "COMPLETED")["ApproximateNumberOfMessagesMoved"] == 1
    assert len(sqs.list_message_move_tasks(SourceArn=dead_arn, MaxResults=10)["Results"]) == 2


def test_deleting_the_destination_fails_the_task(sqs: Any) -> None:
    dead, dead_arn = make(sqs, "gone-dead")
    source, _ = make(sqs, "gone-source", RedrivePolicy=policy(dead_arn))
    other, other_arn = make(sqs, "gone-other")
    kill(sqs, source, dead, *"abcde")
    sqs.start_message_move_task(SourceArn=dead_arn, DestinationArn=other_arn, MaxNumberOfMessagesPerSecond=1)
    sqs.delete_queue(QueueUrl=other)
    failed = task_in(sqs, dead_arn, "FAILED")
    assert failed["FailureReason"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert count(sqs, dead) == 5 - failed["ApproximateNumberOfMessagesMoved"] > 0
