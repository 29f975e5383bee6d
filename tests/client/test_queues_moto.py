"""The client of queues against a server of the SQS API that others wrote, and the blocking face of it."""

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import boto3
import pytest

from ropewalk import Queue
from ropewalk.client.queues.errors import QueueMissing
from ropewalk.client.queues.sending import Outgoing

pytestmark = pytest.mark.compat

WITHIN_S = 60


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "Running on" in line:
                break
        address = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(f"{address}/moto-api/", timeout=WITHIN_S).close()
        yield address
    finally:
        process.kill()
        process.wait(WITHIN_S)


def test_messages_go_in_and_come_out(endpoint: str) -> None:
    with Queue("jobs", endpoint=endpoint, create=True) as queue:
        queue.send("one", attributes={"n": 1, "t": "x", "b": b"\x00"})
        sent = queue.send_many(["two", Outgoing(body="three")])
        assert len({each.message_id for each in sent}) == 2
        bodies = []
        for message in queue:
            with message:
                bodies.append(message.body)
                if message.body == "one":
                    assert message.attributes == {"n": 1, "t": "x", "b": b"\x00"}
            if len(bodies) == 3:
                break
        assert sorted(bodies) == ["one", "three", "two"]
        assert queue.receive(wait_s=0) == []


def test_a_block_that_fails_gives_back_and_what_was_released_counts(endpoint: str) -> None:
    with Queue("again", endpoint=endpoint, create=True) as queue:
        queue.send("rope")
        for _ in range(2):
            with pytest.raises(ZeroDivisionError), queue.receive(1, wait_s=1)[0]:
                _ = 1 / 0
        (message,) = queue.receive(wait_s=1)
        assert message.receive_count == 3
        queue.delete(message)


def test_a_fifo_queue_keeps_order_and_drops_duplicates(endpoint: str) -> None:
    with Queue("steps.fifo", endpoint=endpoint, create=True) as queue:
        queue.send_many(Outgoing(body=str(n), group="g", deduplication_id=str(n)) for n in range(12))
        queue.send("again", group="g", deduplication_id="3")
        received = queue.receive(10, wait_s=1)
        assert [message.body for message in received] == [str(n) for n in range(10)]
        assert {message.group for message in received} == {"g"}
        queue.delete(*received)


def test_what_boto3_sends_we_receive_and_the_other_way_round(endpoint: str) -> None:
    theirs = boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    with Queue("both", endpoint=endpoint, create=True) as queue:
        value = {"DataType": "Number.price", "StringValue": "2.50"}
        theirs.send_message(QueueUrl=queue.url, MessageBody="hemp", MessageAttributes={"price": value})
        (message,) = queue.receive(wait_s=1)
        assert (message.body, message.attributes) == ("hemp", {"price": 2.5})
        message.delete()
        queue.send("tar", attributes={"n": 3})
        (entry,) = theirs.receive_message(QueueUrl=queue.url, MessageAttributeNames=["All"])["Messages"]
        assert entry["MessageAttributes"]["n"] == {"StringValue": "3", "DataType": "Number"}


def test_a_queue_that_is_not_there_is_told(endpoint: str) -> None:
    with pytest.raises(QueueMissing), Queue("nowhere", endpoint=endpoint):
        pass
