"""AWS's own client, and ours, at a node where rules decide: a user of the cluster signs by a session, sees what it may,
and is told AccessDenied of the rest."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import boto3
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from tests.compat.node_process import NodeProcess, StartNode

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def node(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> NodeProcess:
    """Whoever says no name on this machine is above the rules; alice is not."""
    process = start_node(
        *("--memory", "--sqs", "127.0.0.1:0"),
        *("--set", f"authorizer.class.name={STANDARD_AUTHORIZER}", "--set", "super.users=User:ANONYMOUS"),
    )
    password = tmp_path_factory.mktemp("alice") / "password"
    password.touch(mode=0o600)
    password.write_text("a long password\n")
    ropewalk(process, "user", "add", "alice", "--password-file", str(password))
    for rule in (
        ("write", "topic:jobs"),
        ("read", "topic:jobs"),
        ("read", "group:sqs.jobs"),
        ("describe", "topic:seen"),
    ):
        ropewalk(process, "acl", "add", "alice", *rule)
    for name in ("jobs", "seen", "hidden"):
        client_of(process, {}).create_queue(QueueName=name)
    return process


def ropewalk(node: NodeProcess, *arguments: str) -> str:
    command = [sys.executable, "-m", "ropewalk", *arguments, "-b", node.bootstrap]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def client_of(node: NodeProcess, session: dict[str, str]) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=str(node.ready["sqs"][0]),
        region_name="eu-west-1",
        aws_access_key_id=session.get("AWS_ACCESS_KEY_ID", "nobody"),
        aws_secret_access_key=session.get("AWS_SECRET_ACCESS_KEY", "nothing"),
        aws_session_token=session.get("AWS_SESSION_TOKEN"),
    )


@pytest.fixture
def session(node: NodeProcess) -> dict[str, str]:
    lines = ropewalk(node, "user", "token", "alice", "--for-sqs").splitlines()
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


def test_boto3_works_with_a_queue_that_its_user_may_use(node: NodeProcess, session: dict[str, str]) -> None:
    queues = client_of(node, session)
    url = queues.get_queue_url(QueueName="jobs")["QueueUrl"]
    queues.send_message(QueueUrl=url, MessageBody="to do")
    (message,) = queues.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
    assert message["Body"] == "to do"
    queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_boto3_is_told_what_its_user_may_not_do(node: NodeProcess, session: dict[str, str]) -> None:
    queues = client_of(node, session)
    listed = [url.rpartition("/")[2] for url in queues.list_queues()["QueueUrls"]]
    assert listed == ["jobs", "seen"]
    base = queues.list_queues()["QueueUrls"][0].rpartition("/")[0]
    with pytest.raises(ClientError) as denied:
        queues.send_message(QueueUrl=f"{base}/seen", MessageBody="b")
    error = denied.value.response["Error"]
    assert (error["Code"], denied.value.response["ResponseMetadata"]["HTTPStatusCode"]) == (
        "AccessDenied",
        403,
    )
    assert "user/alice is not authorized to perform: sqs:sendmessage" in error["Message"]
    for name in ("hidden", "absent"):
        with pytest.raises(queues.exceptions.QueueDoesNotExist):
            queues.send_message(QueueUrl=f"{base}/{name}", MessageBody="b")
    with pytest.raises(ClientError, match="AccessDenied"):
        queues.create_queue(QueueName="another")


def test_an_address_that_botocore_presigned_works_for_whoever_has_it(
    node: NodeProcess, session: dict[str, str]
) -> None:
    request = AWSRequest("GET", f"{node.ready['sqs'][0]}/?Action=GetQueueUrl&QueueName=jobs")
    credentials = Credentials(*session.values())
    auth: Any = SigV4QueryAuth(credentials, "sqs", "eu-west-1", expires=60)
    auth.add_auth(request)
    assert session["AWS_SECRET_ACCESS_KEY"] not in request.url
    with urlopen(request.url, timeout=30) as answer:
        assert answer.status == 200
    with pytest.raises(HTTPError, match="403"):
        urlopen(request.url.replace("QueueName=jobs", "QueueName=seen"), timeout=30)


def test_our_own_client_takes_a_session_from_the_environment(
    node: NodeProcess, session: dict[str, str], tmp_path: Path
) -> None:
    program = tmp_path / "work.py"
    program.write_text(
        "from ropewalk import Queue\n"
        "with Queue('jobs') as queue:\n"
        "    queue.send('by ours')\n"
        "    print([message.body for message in queue.receive(1, wait_s=10)])\n"
    )
    environment = {**os.environ, **session, "AWS_ENDPOINT_URL_SQS": str(node.ready["sqs"][0])}
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "by ours" in done.stdout, done.stderr
