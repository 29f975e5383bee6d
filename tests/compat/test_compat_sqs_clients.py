"""AWS's own clients against a node that is a process: boto3 with signatures on, aiobotocore, and the AWS command line."""

import asyncio
import contextlib
import datetime
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import boto3
import botocore.auth
import pytest
from aiobotocore.session import get_session
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from tests.compat.node_process import NodeProcess, StartNode

pytestmark = pytest.mark.compat

PATIENCE_S = 60
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
PLAIN = "AKIDPLAIN"
REGION = "eu-west-1"

_numbers = itertools.count()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    path.touch(mode=0o600)
    path.write_text(f'[{KEY}]\nsecret = "{SECRET}"\nadmin = true\n\n[{PLAIN}]\nsecret = "{SECRET}"\n')
    return path


@pytest.fixture(scope="module")
def guarded(start_node: StartNode, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> NodeProcess:
    """A node that verifies signatures, with its data on disk."""
    data = str(tmp_path_factory.mktemp("data"))
    return start_node("--data", data, "--sqs", "127.0.0.1:0", "--set", f"sqs.credentials={keys}")


@pytest.fixture(scope="module")
def free(start_node: StartNode) -> NodeProcess:
    """A node for development: any key will do."""
    return start_node("--memory", "--sqs", "127.0.0.1:0")


@pytest.fixture(params=["guarded", "free"])
def endpoint(request: pytest.FixtureRequest) -> str:
    node: NodeProcess = request.getfixturevalue(request.param)
    return sqs_of(node)


def sqs_of(node: NodeProcess) -> str:
    return str(node.ready["sqs"][0])


@pytest.fixture
def name() -> str:
    return f"jobs-{os.getpid()}-{next(_numbers)}"


def client(endpoint: str, key: str = KEY, secret: str = SECRET, token: str | None = None) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"max_attempts": 0}, read_timeout=PATIENCE_S),
    )


def test_a_message_goes_through_a_queue(endpoint: str, name: str) -> None:
    sqs = client(endpoint)
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "60"}, tags={"team": "red"})[
        "QueueUrl"
    ]
    assert url == f"{endpoint}/000000000000/{name}"
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "red"}
    attributes = {
        "number": {"DataType": "Number", "StringValue": "5"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    sent = sqs.send_message(QueueUrl=url, MessageBody="héllo <&>\r\n", MessageAttributes=attributes)
    (message,) = sqs.receive_message(
        QueueUrl=url, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"], WaitTimeSeconds=5
    )["Messages"]
    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == "héllo <&>\r\n"
    assert message["MessageAttributes"] == attributes
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["Attributes"]["SenderId"] == KEY
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    (again,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5, AttributeNames=["All"])["Messages"]
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    figures = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert figures["ApproximateNumberOfMessages"] == figures["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert figures["QueueArn"] == f"arn:aws:sqs:{REGION}:000000000000:{name}"
    sqs.delete_queue(QueueUrl=url)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
        sqs.get_queue_url(QueueName=name)
    assert caught.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"


def test_batches_of_a_fifo_queue_keep_their_order(endpoint: str, name: str) -> None:
    sqs = client(endpoint)
    url = sqs.create_queue(
        QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )["QueueUrl"]
    entries = [{"Id": str(n), "MessageBody": f"m{n}", "MessageGroupId": f"g{n % 2}"} for n in range(10)]
    first = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    second = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    assert [entry["MessageId"] for entry in first] == [entry["MessageId"] for entry in second]
    messages = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5, AttributeNames=["MessageGroupId"]
    )["Messages"]
    bodies = {
        group: [message["Body"] for message in messages if message["Attributes"]["MessageGroupId"] == group]
        for group in ("g0", "g1")
    }
    assert bodies == {"g0": ["m0", "m2", "m4", "m6", "m8"], "g1": ["m1", "m3", "m5", "m7", "m9"]}
    done = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)]
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=done)["Successful"]) == 10
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_a_message_that_fails_too_often_becomes_a_dead_letter(endpoint: str, name: str) -> None:
    sqs = client(endpoint)
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    url = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})["QueueUrl"]
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]
    sent = sqs.send_message(QueueUrl=url, MessageBody="poison")
    assert sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=5)["Messages"]
    (letter,) = sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=20, AttributeNames=["All"])["Messages"]
    assert (letter["MessageId"], letter["Body"]) == (sent["MessageId"], "poison")
    assert letter["Attributes"]["ApproximateReceiveCount"] == "2"
    assert letter["Attributes"]["DeadLetterQueueSourceArn"].endswith(f":{name}")


def test_many_receivers_wait_and_each_is_given_one(endpoint: str, name: str) -> None:
    async def story() -> list[str]:
        session = get_session()
        async with session.create_client(
            "sqs",
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        ) as sqs:
            url = (await sqs.create_queue(QueueName=name))["QueueUrl"]

            async def receive() -> str:
                answer = await sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)
                return str(answer["Messages"][0]["Body"])

            waiting = [asyncio.ensure_future(receive()) for _ in range(5)]
            for number in range(5):
                await sqs.send_message(QueueUrl=url, MessageBody=str(number))
            return await asyncio.gather(*waiting)

    assert sorted(asyncio.run(story())) == ["0", "1", "2", "3", "4"]


def aws(
    endpoint: str, *arguments: str, key: str = KEY, secret: str = SECRET
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_PAGER": "",
    }
    program = str(Path(sys.executable).with_name("aws"))
    return subprocess.run(
        [program, "--endpoint-url", endpoint, "--output", "json", "sqs", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_the_aws_command_line_works(endpoint: str, name: str) -> None:
    def told(*arguments: str) -> dict[str, Any]:
        done = aws(endpoint, *arguments)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        return answer

    url = told("create-queue", "--queue-name", name)["QueueUrl"]
    told("send-message", "--queue-url", url, "--message-body", "hello")
    asking = ("receive-message", "--queue-url", url, "--attribute-names", "All", "--wait-time-seconds", "20")
    received = told(*asking)
    assert [message["Body"] for message in received.get("Messages", [])] == ["hello"], received
    handle = received["Messages"][0]["ReceiptHandle"]
    assert told("delete-message", "--queue-url", url, "--receipt-handle", handle) == {}
    assert url in told("list-queues", "--queue-name-prefix", name)["QueueUrls"]
    missing = aws(endpoint, "get-queue-url", "--queue-name", "none")
    assert "AWS.SimpleQueueService.NonExistentQueue" in missing.stderr


@pytest.mark.parametrize(
    ("key", "secret", "code"),
    [
        ("AKIDNOBODY", SECRET, "InvalidClientTokenId"),
        (KEY, "another secret", "SignatureDoesNotMatch"),
    ],
)
def test_a_wrong_key_gets_the_error_that_aws_gives(
    guarded: NodeProcess, key: str, secret: str, code: str
) -> None:
    with pytest.raises(ClientError) as caught:
        client(sqs_of(guarded), key, secret).list_queues()
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@pytest.mark.parametrize(("shift_s", "words"), [(-1_000, "Signature expired"), (1_000, "not yet current")])
def test_a_wrong_clock_gets_the_error_that_aws_gives(
    guarded: NodeProcess, shift_s: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = botocore.auth.get_current_datetime
    shift = datetime.timedelta(seconds=shift_s)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *arguments: now(*arguments) + shift)
    with pytest.raises(ClientError, match=words) as caught:
        client(sqs_of(guarded)).list_queues()
    assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"


def test_another_scope_gets_the_error_that_aws_gives(guarded: NodeProcess) -> None:
    request = AWSRequest("POST", sqs_of(guarded), data=b"Action=ListQueues")
    SigV4Auth(Credentials(KEY, SECRET), "s3", REGION).add_auth(request)
    status, body = fetch("POST", request.url, dict(request.headers.items()), b"Action=ListQueues")
    assert (status, "Credential should be scoped to correct service: 'sqs'." in body) == (403, True)


def test_session_tokens_are_taken(guarded: NodeProcess) -> None:
    assert client(sqs_of(guarded), token="a token").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_presigned_address_is_served_while_it_counts(guarded: NodeProcess) -> None:
    for expires_s, status in ((60, 200), (1, 403)):
        request = AWSRequest("GET", f"{sqs_of(guarded)}/?Action=ListQueues&Version=2012-11-05")
        SigV4QueryAuth(Credentials(KEY, SECRET), "sqs", REGION, expires=expires_s).add_auth(request)
        if status == 403:
            deadline_s = time.monotonic() + PATIENCE_S
            while fetch("GET", request.url, {}, None)[0] == 200:
                assert time.monotonic() < deadline_s
        assert fetch("GET", request.url, {}, None)[0] == status


def fetch(method: str, url: str, headers: dict[str, str], body: bytes | None) -> tuple[int, str]:
    request = Request(url, data=body, headers=headers, method=method)
    try:
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with contextlib.closing(error):
            return error.code, error.read().decode()


def test_keys_are_read_again_when_their_file_changes(guarded: NodeProcess, keys: Path) -> None:
    before = keys.read_text()
    keys.write_text(f'{before}\n[AKIDLATE]\nsecret = "{SECRET}"\n')
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < deadline_s
        with contextlib.suppress(ClientError):
            client(sqs_of(guarded), "AKIDLATE").list_queues()
            break
    assert client(sqs_of(guarded)).list_queues()


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refused")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sqs", "0.0.0.0:0"), "name a file of keys, listen on the loopback, or say --insecure"),
        (("--sqs", "127.0.0.1:0", "--set", "sqs.account=12"), "sqs.account"),
        (("--set", "sqs.credentials=/nowhere/keys.toml", "--sqs", "127.0.0.1:0"), "cannot be read"),
    ],
)
def test_a_door_that_anybody_could_enter_is_not_opened(
    refusals: Path, arguments: tuple[str, ...], words: str
) -> None:
    program = str(Path(sys.executable).with_name("ropewalk"))
    done = subprocess.run(
        [program, "up", "--memory", "--kafka", "127.0.0.1:0", "--http", "none", *arguments],
        cwd=refusals,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode != 0
    assert words in done.stderr


def test_whoever_insists_is_warned(start_node: StartNode) -> None:
    node = start_node("--memory", "--sqs", "0.0.0.0:0", "--insecure")
    assert "no signature is checked" in node.log
    assert client(sqs_of(node).replace("0.0.0.0", "127.0.0.1")).list_queues()
