"""What SQS answers, as a table: every action in both protocols, with its limits and its words, and where they are known from.

The engine behind the door is a small one in memory; whether the real one does what it says is for other tests.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from ropewalk.sqs.actions import ACTIONS
from tests.sqs.visits import Heard, Visit, visiting

RECORDED = "recorded against AWS"
MODEL = "botocore's model; words, if any, not recorded"
GUIDE = "AWS's guide; words, if any, not recorded"
OURS = "our own choice, where no record was found"

INVALID = "InvalidParameterValue"
MISSING = "MissingParameter"
NAME = "InvalidAttributeName"
VALUE = "InvalidAttributeValue"
NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
PREFIX = "AWS.SimpleQueueService."

ANY = "<anything>"
HANDLE = "<handle>"
"""The receipt handle of a message that was received from the queue that the case is about."""
OLD_HANDLE = "<old handle>"
"""Of an attempt before that."""
HOST = "http://node:9324/000000000000/"
ARN = "arn:aws:sqs:eu-west-1:000000000000:"

Step = tuple[str, Mapping[str, Any]]


class Case(NamedTuple):
    name: str
    source: str
    action: str
    parameters: Mapping[str, Any]
    code: str = ""
    text: str = ""
    """A pattern where it begins with ^."""
    status: int = 200
    said: Mapping[str, Any] = {}
    """What the answer has, at least."""
    absent: tuple[str, ...] = ()
    before: Sequence[Step | int] = ()
    """What is done first; a number lets so many seconds pass."""


def refused(
    name: str,
    source: str,
    action: str,
    code: str,
    text: str,
    *,
    status: int = 400,
    before: Sequence[Step | int] = (),
    **parameters: Any,
) -> Case:
    return Case(name, source, action, parameters, code, text, status, before=before)


def answered(
    name: str,
    source: str,
    action: str,
    said: Mapping[str, Any] | None = None,
    *,
    absent: tuple[str, ...] = (),
    before: Sequence[Step | int] = (),
    **parameters: Any,
) -> Case:
    return Case(name, source, action, parameters, said=said or {}, absent=absent, before=before)


def q(name: str) -> str:
    return HOST + name


def send(queue: str, body: str = "hello", **more: Any) -> Step:
    return "SendMessage", {"QueueUrl": q(queue), "MessageBody": body, **more}


def send_fifo(body: str = "hello", group: str = "g", **more: Any) -> Step:
    return send("cbd.fifo", body, MessageGroupId=group, **more)


def receive(queue: str, **more: Any) -> Step:
    return "ReceiveMessage", {"QueueUrl": q(queue), **more}


def set_(queue: str, **attributes: str) -> Step:
    return "SetQueueAttributes", {"QueueUrl": q(queue), "Attributes": attributes}


FIFO = {"FifoQueue": "true"}
BY_GROUP = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
REDRIVE = json.dumps({"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": 1})

QUEUES: Sequence[Step] = (
    ("CreateQueue", {"QueueName": "std"}),
    ("CreateQueue", {"QueueName": "plain.fifo", "Attributes": FIFO}),
    ("CreateQueue", {"QueueName": "cbd.fifo", "Attributes": {**FIFO, "ContentBasedDeduplication": "true"}}),
    ("CreateQueue", {"QueueName": "small", "Attributes": {"MaximumMessageSize": "1024"}}),
    ("CreateQueue", {"QueueName": "slow", "Attributes": {"DelaySeconds": "5", "VisibilityTimeout": "7"}}),
    ("CreateQueue", {"QueueName": "dlq"}),
    ("CreateQueue", {"QueueName": "src", "Attributes": {"RedrivePolicy": REDRIVE}}),
    ("CreateQueue", {"QueueName": "tagged", "tags": {"team": "red", "empty": ""}}),
)

FRESH: dict[str, Any] = {"QueueName": "fresh"}
S: dict[str, Any] = {"QueueUrl": q("std")}
F: dict[str, Any] = {"QueueUrl": q("cbd.fifo")}
P: dict[str, Any] = {"QueueUrl": q("plain.fifo")}


def ids(parameter: str, value: str) -> dict[str, Any]:
    return {"MessageGroupId": "g", parameter: value}


def text_attribute(value: str = "v", data_type: str = "String") -> Mapping[str, str]:
    return {"DataType": data_type, "StringValue": value}


def attributes_case(name: str, source: str, text: str, attributes: Mapping[str, Any]) -> Case:
    return refused(
        name, source, "SendMessage", INVALID, text, **S, MessageBody="b", MessageAttributes=attributes
    )


# Every action that names a queue, and what it lacks

FILLED: Mapping[str, Mapping[str, Any]] = {
    "AddPermission": {"Label": "l", "AWSAccountIds": ["123456789012"], "Actions": ["SendMessage"]},
    "ChangeMessageVisibility": {"ReceiptHandle": "h", "VisibilityTimeout": 1},
    "ChangeMessageVisibilityBatch": {"Entries": [{"Id": "1", "ReceiptHandle": "h", "VisibilityTimeout": 1}]},
    "DeleteMessage": {"ReceiptHandle": "h"},
    "DeleteMessageBatch": {"Entries": [{"Id": "1", "ReceiptHandle": "h"}]},
    "DeleteQueue": {},
    "GetQueueAttributes": {"AttributeNames": ["All"]},
    "ListDeadLetterSourceQueues": {},
    "ListQueueTags": {},
    "PurgeQueue": {},
    "ReceiveMessage": {},
    "RemovePermission": {"Label": "l"},
    "SendMessage": {"MessageBody": "b"},
    "SendMessageBatch": {"Entries": [{"Id": "1", "MessageBody": "b"}]},
    "SetQueueAttributes": {"Attributes": {"DelaySeconds": "1"}},
    "TagQueue": {"Tags": {"a": "b"}},
    "UntagQueue": {"TagKeys": ["a"]},
}
NO_SUCH_QUEUE = "^The specified queue does not exist( for this wsdl version)?\\.$"

UNKNOWN_QUEUES = [
    refused(
        "a queue that is not there", RECORDED, action, NO_QUEUE, NO_SUCH_QUEUE, QueueUrl=q("none"), **rest
    )
    for action, rest in FILLED.items()
]
WITHOUT_QUEUES = [
    refused(
        "no queue named", MODEL, action, MISSING, "The request must contain the parameter QueueUrl.", **rest
    )
    for action, rest in FILLED.items()
]


def lacking(action: str, parameter: str, source: str = MODEL, **parameters: Any) -> Case:
    text = f"The request must contain the parameter {parameter}."
    return refused(f"no {parameter}", source, action, MISSING, text, **parameters)


LACKING = [
    lacking("AddPermission", "Label", **S, AWSAccountIds=["123456789012"], Actions=["SendMessage"]),
    lacking("AddPermission", "Actions", RECORDED, **S, Label="l", AWSAccountIds=["123456789012"]),
    lacking("AddPermission", "Actions", RECORDED, **S, Label="l", AWSAccountIds=["123456789012"], Actions=[]),
    lacking("CancelMessageMoveTask", "TaskHandle"),
    lacking("ChangeMessageVisibility", "ReceiptHandle", **S, VisibilityTimeout=1),
    lacking("ChangeMessageVisibility", "VisibilityTimeout", **S, ReceiptHandle="h"),
    lacking("CreateQueue", "QueueName"),
    lacking("DeleteMessage", "ReceiptHandle", **S),
    lacking("GetQueueUrl", "QueueName"),
    lacking("ListMessageMoveTasks", "SourceArn"),
    lacking("RemovePermission", "Label", **S),
    lacking("SendMessage", "MessageBody", RECORDED, **S),
    lacking("SendMessage", "MessageBody", RECORDED, **S, MessageBody=""),
    lacking("SendMessageBatch", "MessageBody", OURS, **S, Entries=[{"Id": "1", "MessageBody": ""}]),
    lacking(
        "SendMessageBatch", "SendMessageBatchRequestEntry.1.Id", GUIDE, **S, Entries=[{"MessageBody": "b"}]
    ),
    lacking("SetQueueAttributes", "Attributes", **S),
    lacking("StartMessageMoveTask", "SourceArn"),
    lacking("TagQueue", "Tags", RECORDED, **S),
    lacking("TagQueue", "Tags", RECORDED, **S, Tags={}),
    lacking("UntagQueue", "TagKeys", **S),
]

# Queues

NAME_TEXT = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
FIFO_NAME_TEXT = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix "
    "and be 1 to 80 in length."
)
OTHER = "A queue already exists with the same name and a different value for attribute "

CREATING = [
    answered("a queue", MODEL, "CreateQueue", {"QueueUrl": q("fresh")}, QueueName="fresh"),
    answered("the longest name", GUIDE, "CreateQueue", {"QueueUrl": q("n" * 80)}, QueueName="n" * 80),
    answered("all sorts of characters", GUIDE, "CreateQueue", {"QueueUrl": q("aZ0-_")}, QueueName="aZ0-_"),
    *(
        refused(f"the name {name[:8]!r}", RECORDED, "CreateQueue", INVALID, NAME_TEXT, QueueName=name)
        for name in ("a b", "a.b", "n" * 81, "ümlaut", "a/b", "a:b", "late.fifo")
    ),
    *(
        refused(
            f"the FIFO name {name[:8]!r}",
            GUIDE,
            "CreateQueue",
            INVALID,
            FIFO_NAME_TEXT,
            QueueName=name,
            Attributes=FIFO,
        )
        for name in ("notfifo", "a b.fifo", ".fifo", "n" * 76 + ".fifo")
    ),
    answered(
        "a FIFO queue", GUIDE, "CreateQueue", {"QueueUrl": q("x.fifo")}, QueueName="x.fifo", Attributes=FIFO
    ),
    answered("the longest FIFO name", GUIDE, "CreateQueue", QueueName="n" * 75 + ".fifo", Attributes=FIFO),
    answered("the same again", RECORDED, "CreateQueue", {"QueueUrl": q("std")}, QueueName="std"),
    answered(
        "again, with the default said",
        RECORDED,
        "CreateQueue",
        QueueName="std",
        Attributes={"DelaySeconds": "0"},
    ),
    answered("again, with attributes not said", RECORDED, "CreateQueue", QueueName="slow"),
    answered(
        "again, with the same attributes",
        RECORDED,
        "CreateQueue",
        QueueName="slow",
        Attributes={"DelaySeconds": "5"},
    ),
    refused(
        "again, with another delay",
        RECORDED,
        "CreateQueue",
        "QueueAlreadyExists",
        OTHER + "DelaySeconds",
        QueueName="slow",
        Attributes={"DelaySeconds": "6"},
    ),
    refused(
        "again, with another value than the default",
        RECORDED,
        "CreateQueue",
        "QueueAlreadyExists",
        OTHER + "VisibilityTimeout",
        QueueName="std",
        Attributes={"VisibilityTimeout": "1"},
    ),
    *(
        refused(
            f"{name}={value} on a standard queue",
            RECORDED,
            "CreateQueue",
            NAME,
            f"Unknown Attribute {name}.",
            QueueName="fresh",
            Attributes={name: value},
        )
        for name, value in (
            ("FifoQueue", "false"),
            ("ContentBasedDeduplication", "true"),
            ("ContentBasedDeduplication", "false"),
            ("Nonsense", "1"),
            ("QueueArn", "arn"),
            ("ApproximateNumberOfMessages", "1"),
        )
    ),
    *(
        refused(
            f"{name} on a standard queue",
            RECORDED,
            "CreateQueue",
            NAME,
            f"You can specify the {name} only when FifoQueue is set to true.",
            QueueName="fresh",
            Attributes={name: value},
        )
        for name, value in BY_GROUP.items()
    ),
    answered(
        "blanks around a name", RECORDED, "CreateQueue", QueueName="fresh", Attributes={" DelaySeconds ": "1"}
    ),
    answered("high throughput", GUIDE, "CreateQueue", QueueName="x.fifo", Attributes={**FIFO, **BY_GROUP}),
    refused(
        "a limit by group without the scope",
        GUIDE,
        "CreateQueue",
        INVALID,
        "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.",
        QueueName="x.fifo",
        Attributes={**FIFO, "FifoThroughputLimit": "perMessageGroupId"},
    ),
    refused(
        "too many tags",
        RECORDED,
        "CreateQueue",
        INVALID,
        "Too many tags added for queue fresh.",
        QueueName="fresh",
        tags={f"k{number}": "v" for number in range(51)},
    ),
]

BOUNDS = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}
BOUNDED = [
    *(
        answered(f"{name}={value}", MODEL, "SetQueueAttributes", **S, Attributes={name: str(value)})
        for name, bounds in BOUNDS.items()
        for value in bounds
    ),
    *(
        refused(
            f"{name}={value!r}",
            MODEL,
            action,
            VALUE,
            f"Invalid value for the parameter {name}.",
            **(S if action == "SetQueueAttributes" else FRESH),
            Attributes={name: value},
        )
        for name, (low, high) in BOUNDS.items()
        for value in (str(low - 1), str(high + 1), "many", "")
        for action in ("SetQueueAttributes", "CreateQueue")
    ),
]

SSE_TEXT = "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
GET_ALL: dict[str, Any] = {"AttributeNames": ["All"]}


def policy_case(name: str, source: str, reason: str, text: str, parameter: str = "RedrivePolicy") -> Case:
    return refused(
        name,
        source,
        "SetQueueAttributes",
        INVALID,
        f"Value {text} for parameter {parameter} is invalid. Reason: {reason}",
        **S,
        Attributes={parameter: text},
    )


ALLOW_TEXT = "Amazon SQS can't create the redrive allow policy, as it's in an unsupported format."
SETTING = [
    refused(
        "FifoQueue=false later",
        RECORDED,
        "SetQueueAttributes",
        VALUE,
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
        **F,
        Attributes={"FifoQueue": "false"},
    ),
    *(
        refused(
            f"{name} on a standard queue",
            RECORDED,
            "SetQueueAttributes",
            NAME,
            f"Unknown Attribute {name}.",
            **S,
            Attributes={name: "true"},
        )
        for name in ("FifoQueue", "ContentBasedDeduplication", "Nonsense", "QueueArn", "CreatedTimestamp")
    ),
    *(
        refused(
            f"{name}={value}",
            MODEL,
            "SetQueueAttributes",
            VALUE,
            f"Invalid value for the parameter {name}.",
            **F,
            Attributes={name: value},
        )
        for name, value in (
            ("ContentBasedDeduplication", "maybe"),
            ("DeduplicationScope", "everything"),
            ("FifoThroughputLimit", "unlimited"),
            ("SqsManagedSseEnabled", "perhaps"),
            ("Policy", "no JSON"),
            ("Policy", "[]"),
        )
    ),
    refused(
        "both encryptions",
        RECORDED,
        "SetQueueAttributes",
        NAME,
        SSE_TEXT,
        **S,
        Attributes={"KmsMasterKeyId": "alias/k", "SqsManagedSseEnabled": "true"},
    ),
    refused(
        "the other encryption later",
        RECORDED,
        "SetQueueAttributes",
        NAME,
        SSE_TEXT,
        before=[set_("std", KmsMasterKeyId="alias/k")],
        **S,
        Attributes={"SqsManagedSseEnabled": "true"},
    ),
    answered(
        "a key turns SQS's own encryption off",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"KmsMasterKeyId": "alias/k", "SqsManagedSseEnabled": "false"}},
        before=[set_("std", KmsMasterKeyId="alias/k")],
        **S,
        **GET_ALL,
    ),
    answered(
        "which stays off without the key",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"SqsManagedSseEnabled": "false"}},
        before=[set_("std", KmsMasterKeyId="alias/k"), set_("std", KmsMasterKeyId="")],
        **S,
        **GET_ALL,
    ),
    answered(
        "others stay as they are",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"DelaySeconds": "5", "VisibilityTimeout": "9"}},
        before=[set_("slow", VisibilityTimeout="9")],
        QueueUrl=q("slow"),
        **GET_ALL,
    ),
    answered(
        "a redrive policy with its number as text",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}dlq","maxReceiveCount":42}}'}},
        before=[set_("std", RedrivePolicy=f'{{"deadLetterTargetArn": "{ARN}dlq", "maxReceiveCount": "42"}}')],
        **S,
        AttributeNames=["RedrivePolicy"],
    ),
    answered(
        "an empty redrive policy removes it",
        RECORDED,
        "GetQueueAttributes",
        absent=("Attributes",),
        before=[set_("src", RedrivePolicy="")],
        QueueUrl=q("src"),
        AttributeNames=["RedrivePolicy"],
    ),
    answered(
        "an empty policy removes it",
        RECORDED,
        "GetQueueAttributes",
        absent=("Attributes",),
        before=[set_("std", Policy='{"Statement": []}'), set_("std", Policy="")],
        **S,
        AttributeNames=["Policy"],
    ),
    answered(
        "a policy is answered as it was set",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"Policy": '{"Statement":  []}'}},
        before=[set_("std", Policy='{"Statement":  []}')],
        **S,
        AttributeNames=["Policy"],
    ),
    policy_case(
        "a target that is no ARN",
        RECORDED,
        "Invalid value for deadLetterTargetArn.",
        '{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}',
    ),
    policy_case("no map", GUIDE, "Redrive policy is not a valid JSON map.", "nonsense"),
    policy_case("a list", GUIDE, "Redrive policy is not a valid JSON map.", "[]"),
    policy_case(
        "no count",
        GUIDE,
        "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
        json.dumps({"deadLetterTargetArn": ARN + "dlq"}),
    ),
    policy_case(
        "no target",
        GUIDE,
        "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
        json.dumps({"maxReceiveCount": 1}),
    ),
    policy_case(
        "a target that is not there",
        GUIDE,
        "Dead letter target does not exist.",
        json.dumps({"deadLetterTargetArn": ARN + "none", "maxReceiveCount": 1}),
    ),
    policy_case(
        "a FIFO target of a standard queue",
        GUIDE,
        "Dead-letter queue must be same type of queue as the source.",
        json.dumps({"deadLetterTargetArn": ARN + "plain.fifo", "maxReceiveCount": 1}),
    ),
    *(
        policy_case(
            f"a count of {count}",
            GUIDE,
            f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive.",
            json.dumps({"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": count}),
        )
        for count in (0, 1001, -1)
    ),
    *(
        answered(
            f"an allow policy: {policy}",
            GUIDE,
            "SetQueueAttributes",
            **S,
            Attributes={"RedriveAllowPolicy": json.dumps(policy)},
        )
        for policy in (
            {"redrivePermission": "allowAll"},
            {"redrivePermission": "denyAll"},
            {"redrivePermission": "byQueue", "sourceQueueArns": [ARN + "src"]},
        )
    ),
    *(
        policy_case(f"an allow policy: {policy[:40]}", OURS, ALLOW_TEXT, policy, "RedriveAllowPolicy")
        for policy in (
            "nonsense",
            '{"redrivePermission": "some"}',
            '{"redrivePermission": "byQueue"}',
            json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [f"{ARN}{n}" for n in range(11)]}),
            json.dumps({"redrivePermission": "allowAll", "sourceQueueArns": [ARN + "src"]}),
        )
    ),
    refused(
        "a dead-letter queue that denies all",
        OURS,
        "SetQueueAttributes",
        INVALID,
        "^Value .* for parameter RedrivePolicy is invalid\\. Reason: The dead-letter queue does not allow this queue",
        before=[set_("dlq", RedriveAllowPolicy='{"redrivePermission": "denyAll"}')],
        **S,
        Attributes={"RedrivePolicy": REDRIVE},
    ),
]

DEFAULTS = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "SqsManagedSseEnabled": "true",
    "QueueArn": ARN + "std",
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
    "CreatedTimestamp": "1800000000",
    "LastModifiedTimestamp": "1800000000",
}
FIFO_DEFAULTS = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}
GETTING = [
    answered("everything", MODEL, "GetQueueAttributes", {"Attributes": DEFAULTS}, **S, **GET_ALL),
    answered(
        "everything of a FIFO queue",
        MODEL,
        "GetQueueAttributes",
        {"Attributes": FIFO_DEFAULTS},
        **P,
        **GET_ALL,
    ),
    answered("nothing asked for", RECORDED, "GetQueueAttributes", absent=("Attributes",), **S),
    answered(
        "one that is not set",
        RECORDED,
        "GetQueueAttributes",
        absent=("Attributes",),
        **S,
        AttributeNames=["Policy"],
    ),
    answered(
        "a FIFO attribute of a standard queue",
        OURS,
        "GetQueueAttributes",
        absent=("Attributes",),
        **S,
        AttributeNames=["FifoQueue"],
    ),
    refused(
        "one that there is not",
        RECORDED,
        "GetQueueAttributes",
        NAME,
        "Unknown Attribute Nonsense.",
        **S,
        AttributeNames=["Nonsense"],
    ),
    answered(
        "blanks around its name",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"DelaySeconds": "0"}},
        **S,
        AttributeNames=[" DelaySeconds "],
    ),
    answered(
        "figures of messages",
        MODEL,
        "GetQueueAttributes",
        {
            "Attributes": {
                "ApproximateNumberOfMessages": "1",
                "ApproximateNumberOfMessagesNotVisible": "1",
                "ApproximateNumberOfMessagesDelayed": "1",
            }
        },
        before=[send("std"), send("std"), send("std", DelaySeconds=9), receive("std")],
        **S,
        **GET_ALL,
    ),
    answered("the address by name", MODEL, "GetQueueUrl", {"QueueUrl": q("std")}, QueueName="std"),
    answered(
        "whoever owns it",
        OURS,
        "GetQueueUrl",
        {"QueueUrl": q("std")},
        QueueName="std",
        QueueOwnerAWSAccountId="111111111111",
    ),
    refused("no queue of that name", RECORDED, "GetQueueUrl", NO_QUEUE, NO_SUCH_QUEUE, QueueName="none"),
    *(
        answered(
            f"addressed as {url}",
            RECORDED,
            "GetQueueAttributes",
            {"Attributes": ANY},
            QueueUrl=url,
            **GET_ALL,
        )
        for url in (
            "std",
            "/000000000000/std",
            "https://sqs.us-east-1.amazonaws.com/123456789012/std",
            "http://localhost:1/queue/std",
        )
    ),
    *(
        refused(
            f"addressed as {url}",
            RECORDED,
            "GetQueueAttributes",
            NO_QUEUE,
            NO_SUCH_QUEUE,
            QueueUrl=url,
            **GET_ALL,
        )
        for url in ("http://node:9324/000000000000/", "nonsense", "http://node:9324/")
    ),
]

ALL_NAMES = ["cbd.fifo", "dlq", "plain.fifo", "slow", "small", "src", "std", "tagged"]
LISTING = [
    answered(
        "all queues",
        MODEL,
        "ListQueues",
        {"QueueUrls": [q(name) for name in ALL_NAMES]},
        absent=("NextToken",),
    ),
    answered(
        "those that begin so",
        MODEL,
        "ListQueues",
        {"QueueUrls": [q("slow"), q("small"), q("src"), q("std")]},
        QueueNamePrefix="s",
    ),
    answered("none that begin so", RECORDED, "ListQueues", absent=("QueueUrls",), QueueNamePrefix="zzz"),
    answered(
        "a page",
        RECORDED,
        "ListQueues",
        {"QueueUrls": [q("cbd.fifo"), q("dlq")], "NextToken": ANY},
        MaxResults=2,
    ),
    answered("the last page", RECORDED, "ListQueues", absent=("NextToken",), MaxResults=8),
    *(
        refused(
            f"{count} at once",
            MODEL,
            "ListQueues",
            INVALID,
            f"Value {count} for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000.",
            MaxResults=count,
        )
        for count in (0, 1001, -1)
    ),
    refused(
        "a token that is none",
        OURS,
        "ListQueues",
        INVALID,
        "Invalid or expired next token.",
        NextToken="é!",
        MaxResults=1,
    ),
    answered(
        "sources of a dead-letter queue",
        MODEL,
        "ListDeadLetterSourceQueues",
        {"queueUrls": [q("src")]},
        QueueUrl=q("dlq"),
    ),
    answered(
        "a page of them",
        MODEL,
        "ListDeadLetterSourceQueues",
        {"queueUrls": [q("src")], "NextToken": ANY},
        before=[set_("std", RedrivePolicy=REDRIVE)],
        QueueUrl=q("dlq"),
        MaxResults=1,
    ),
    answered("nobody's dead-letter queue", MODEL, "ListDeadLetterSourceQueues", QueueUrl=q("std")),
]

ENDING = [
    answered("a queue goes", MODEL, "DeleteQueue", **S),
    refused(
        "and is gone", RECORDED, "DeleteQueue", NO_QUEUE, NO_SUCH_QUEUE, before=[("DeleteQueue", S)], **S
    ),
    answered("its name is free again", OURS, "CreateQueue", before=[("DeleteQueue", S)], QueueName="std"),
    answered("a purge", MODEL, "PurgeQueue", **S),
    answered(
        "nothing is left",
        MODEL,
        "ReceiveMessage",
        absent=("Messages",),
        before=[send("std"), ("PurgeQueue", S)],
        **S,
    ),
    refused(
        "a second within a minute",
        RECORDED,
        "PurgeQueue",
        PREFIX + "PurgeQueueInProgress",
        "Only one PurgeQueue operation on std is allowed every 60 seconds.",
        status=403,
        before=[("PurgeQueue", S)],
        **S,
    ),
    answered("a second after a minute", RECORDED, "PurgeQueue", before=[("PurgeQueue", S), 61], **S),
]

TAGGING = [
    answered("tags", MODEL, "ListQueueTags", {"Tags": {"team": "red", "empty": ""}}, QueueUrl=q("tagged")),
    answered("no tags", MODEL, "ListQueueTags", absent=("Tags",), **S),
    answered("tags are added", MODEL, "TagQueue", QueueUrl=q("tagged"), Tags={"more": "1"}),
    answered(
        "and replaced",
        MODEL,
        "ListQueueTags",
        {"Tags": {"team": "blue", "more": "1"}},
        before=[("TagQueue", {"QueueUrl": q("tagged"), "Tags": {"team": "blue", "more": "1"}})],
        QueueUrl=q("tagged"),
    ),
    answered("tags are taken away", MODEL, "UntagQueue", QueueUrl=q("tagged"), TagKeys=["team", "never"]),
    answered(
        "and gone",
        MODEL,
        "ListQueueTags",
        absent=("Tags",),
        before=[("UntagQueue", {"QueueUrl": q("tagged"), "TagKeys": ["team", "empty"]})],
        QueueUrl=q("tagged"),
    ),
    answered("fifty tags", RECORDED, "TagQueue", **S, Tags={f"k{number}": "v" for number in range(50)}),
    refused(
        "fifty-one tags",
        RECORDED,
        "TagQueue",
        INVALID,
        "Too many tags added for queue std.",
        **S,
        Tags={f"k{number}": "v" for number in range(51)},
    ),
    *(
        refused(
            f"a key of {len(key)} characters",
            RECORDED,
            "TagQueue",
            INVALID,
            "Tag keys must be between 1 and 128 characters in length.",
            **S,
            Tags={key: "v"},
        )
        for key in ("", "k" * 129)
    ),
    answered("the longest key and value", GUIDE, "TagQueue", **S, Tags={"k" * 128: "v" * 256}),
    refused(
        "a value of 257 characters",
        GUIDE,
        "TagQueue",
        INVALID,
        "Tag values must be between 0 and 256 characters in length.",
        **S,
        Tags={"k": "v" * 257},
    ),
]

ALLOWED: dict[str, Any] = {"Label": "l", "AWSAccountIds": ["123456789012"], "Actions": ["SendMessage"]}
POLICY = json.dumps(
    {
        "Version": "2008-10-17",
        "Id": ARN + "std/SQSDefaultPolicy",
        "Statement": [
            {
                "Sid": "l",
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
                "Action": "SQS:SendMessage",
                "Resource": ARN + "std",
            }
        ],
    },
    separators=(",", ":"),
)
PERMITTING = [
    answered(
        "a statement",
        RECORDED,
        "GetQueueAttributes",
        {"Attributes": {"Policy": POLICY}},
        before=[("AddPermission", {**S, **ALLOWED})],
        **S,
        AttributeNames=["Policy"],
    ),
    answered(
        "a list for more than one action",
        RECORDED,
        "AddPermission",
        **S,
        **{**ALLOWED, "Actions": ["SendMessage", "ReceiveMessage"]},
    ),
    answered("all actions", GUIDE, "AddPermission", **S, **{**ALLOWED, "Actions": ["*"]}),
    refused(
        "the same label",
        RECORDED,
        "AddPermission",
        INVALID,
        "Value l for parameter Label is invalid. Reason: Already exists.",
        before=[("AddPermission", {**S, **ALLOWED})],
        **S,
        **ALLOWED,
    ),
    refused(
        "eight actions",
        RECORDED,
        "AddPermission",
        "OverLimit",
        "8 Actions were found, maximum allowed is 7.",
        status=403,
        **S,
        **{**ALLOWED, "Actions": ["SendMessage"] * 8},
    ),
    refused(
        "an action of the owner",
        RECORDED,
        "AddPermission",
        INVALID,
        "Value SQS:RemovePermission for parameter ActionName is invalid. Reason: Only the queue owner is allowed to invoke this action.",
        **S,
        **{**ALLOWED, "Actions": ["RemovePermission"]},
    ),
    refused(
        "an action that there is not",
        OURS,
        "AddPermission",
        INVALID,
        "^Value SQS:Fly for parameter ActionName is invalid",
        **S,
        **{**ALLOWED, "Actions": ["Fly"]},
    ),
    refused(
        "nobody",
        RECORDED,
        "AddPermission",
        INVALID,
        "Value [] for parameter PrincipalId is invalid. Reason: Unable to verify.",
        **S,
        Label="l",
        Actions=["SendMessage"],
    ),
    refused(
        "somebody who cannot be",
        RECORDED,
        "AddPermission",
        INVALID,
        "Value [me] for parameter PrincipalId is invalid. Reason: Unable to verify.",
        **S,
        **{**ALLOWED, "AWSAccountIds": ["me"]},
    ),
    refused(
        "a label with a blank",
        GUIDE,
        "AddPermission",
        INVALID,
        "^Value a b for parameter Label is invalid",
        **S,
        **{**ALLOWED, "Label": "a b"},
    ),
    answered(
        "a statement goes",
        MODEL,
        "RemovePermission",
        before=[("AddPermission", {**S, **ALLOWED})],
        **S,
        Label="l",
    ),
    answered(
        "and the policy with the last one",
        OURS,
        "GetQueueAttributes",
        absent=("Attributes",),
        before=[("AddPermission", {**S, **ALLOWED}), ("RemovePermission", {**S, "Label": "l"})],
        **S,
        AttributeNames=["Policy"],
    ),
    refused(
        "a label that there is not",
        RECORDED,
        "RemovePermission",
        INVALID,
        "Value m for parameter Label is invalid. Reason: can't find label.",
        before=[("AddPermission", {**S, **ALLOWED})],
        **S,
        Label="m",
    ),
    refused(
        "a label where there is no policy",
        RECORDED,
        "RemovePermission",
        INVALID,
        "Value m for parameter Label is invalid. Reason: can't find label on existing policy.",
        **S,
        Label="m",
    ),
]

# Messages

HELLO_MD5 = "5d41402abc4b2a76b9719d911017c592"
FORBIDDEN = "^Invalid characters found\\. Valid unicode characters are #x9"
ID_TEXT = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
TYPE_TEXT = "The request include parameter that is not valid for this queue type."
NO_DEDUPLICATION = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
SENDING = [
    answered(
        "a message",
        RECORDED,
        "SendMessage",
        {"MD5OfMessageBody": HELLO_MD5, "MessageId": ANY},
        absent=("SequenceNumber", "MD5OfMessageAttributes", "MD5OfMessageSystemAttributes"),
        **S,
        MessageBody="hello",
    ),
    answered(
        "a message of a FIFO queue",
        RECORDED,
        "SendMessage",
        {"MD5OfMessageBody": HELLO_MD5, "SequenceNumber": "10000000000000000000"},
        **F,
        MessageBody="hello",
        MessageGroupId="g",
    ),
    *(
        answered(f"the body {body!r}", GUIDE, "SendMessage", {"MessageId": ANY}, **S, MessageBody=body)
        for body in ("\t\n\r", "\u00e9\u20ac", "\U0001f600", "\ud7ff", "\ue000\ufffd", "<&>\"'", " ")
    ),
    *(
        refused(
            f"the body {body!r}",
            GUIDE,
            "SendMessage",
            "InvalidMessageContents",
            FORBIDDEN,
            **S,
            MessageBody=body,
        )
        for body in ("\x00", "a\x0b", "\x1f", "\ufffe", "\uffff", "fine\x08not")
    ),
    answered(
        "the largest message", RECORDED, "SendMessage", {"MessageId": ANY}, **S, MessageBody="b" * 1_048_576
    ),
    refused(
        "a byte more",
        RECORDED,
        "SendMessage",
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
        **S,
        MessageBody="b" * 1_048_577,
    ),
    answered(
        "as large as the queue takes", RECORDED, "SendMessage", QueueUrl=q("small"), MessageBody="b" * 1024
    ),
    refused(
        "larger than the queue takes",
        RECORDED,
        "SendMessage",
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
        QueueUrl=q("small"),
        MessageBody="b" * 1025,
    ),
    refused(
        "larger by its characters' bytes",
        RECORDED,
        "SendMessage",
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
        QueueUrl=q("small"),
        MessageBody="\u00e9" * 513,
    ),
    answered(
        "as large with its attributes",
        RECORDED,
        "SendMessage",
        QueueUrl=q("small"),
        MessageBody="b" * (1024 - 10),
        MessageAttributes={"abc": text_attribute("d")},
    ),
    refused(
        "larger with its attributes",
        RECORDED,
        "SendMessage",
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
        QueueUrl=q("small"),
        MessageBody="b" * (1024 - 9),
        MessageAttributes={"abc": text_attribute("d")},
    ),
    *(
        answered(f"a delay of {delay}", RECORDED, "SendMessage", **S, MessageBody="b", DelaySeconds=delay)
        for delay in (0, 900)
    ),
    *(
        refused(
            f"a delay of {delay}",
            RECORDED,
            "SendMessage",
            INVALID,
            f"Value {delay} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.",
            **S,
            MessageBody="b",
            DelaySeconds=delay,
        )
        for delay in (901, -1)
    ),
    refused(
        "a delay on a FIFO queue",
        RECORDED,
        "SendMessage",
        INVALID,
        f"Value 2 for parameter DelaySeconds is invalid. Reason: {TYPE_TEXT}",
        **F,
        MessageBody="b",
        MessageGroupId="g",
        DelaySeconds=2,
    ),
    answered(
        "no delay on a FIFO queue",
        RECORDED,
        "SendMessage",
        **F,
        MessageBody="b",
        MessageGroupId="g",
        DelaySeconds=0,
    ),
    refused(
        "no group on a FIFO queue",
        RECORDED,
        "SendMessage",
        MISSING,
        "The request must contain the parameter MessageGroupId.",
        **F,
        MessageBody="b",
    ),
    refused(
        "no deduplication id",
        RECORDED,
        "SendMessage",
        INVALID,
        NO_DEDUPLICATION,
        **P,
        MessageBody="b",
        MessageGroupId="g",
    ),
    answered(
        "its own deduplication id",
        GUIDE,
        "SendMessage",
        **P,
        MessageBody="b",
        MessageGroupId="g",
        MessageDeduplicationId="d",
    ),
    answered(
        "a group on a standard queue", GUIDE, "SendMessage", **S, MessageBody="b", MessageGroupId="tenant-1"
    ),
    answered(
        "a deduplication id on a standard queue",
        RECORDED,
        "ReceiveMessage",
        {"Messages": [{"Attributes": {"MessageDeduplicationId": "d"}}]},
        before=[send("std", MessageDeduplicationId="d")],
        **S,
        AttributeNames=["All"],
    ),
    *(
        refused(
            f"{parameter} {value[:6]!r} on {queue}",
            RECORDED,
            "SendMessage",
            INVALID,
            f"Value {value} for parameter {parameter} is invalid. Reason: {parameter} {ID_TEXT}",
            QueueUrl=q(queue),
            MessageBody="b",
            **ids(parameter, value),
        )
        for parameter in ("MessageGroupId", "MessageDeduplicationId")
        for value in ("", "a b", "x" * 129, "\u00e9")
        for queue in ("std", "cbd.fifo")
    ),
    answered(
        "the longest ids, with punctuation",
        GUIDE,
        "SendMessage",
        **F,
        MessageBody="b",
        MessageGroupId="x" * 128,
        MessageDeduplicationId="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    ),
    answered(
        "a duplicate is answered with the first",
        RECORDED,
        "SendMessage",
        {"SequenceNumber": "10000000000000000000"},
        before=[send_fifo()],
        **F,
        MessageBody="hello",
        MessageGroupId="other",
    ),
    answered(
        "and no duplicate after five minutes",
        RECORDED,
        "SendMessage",
        {"SequenceNumber": "10000000000000000001"},
        before=[send_fifo(), 301],
        **F,
        MessageBody="hello",
        MessageGroupId="g",
    ),
    # The MD5s of these are public vectors of other SDKs' tests.
    answered(
        "a trace header",
        RECORDED,
        "SendMessage",
        {"MD5OfMessageSystemAttributes": "5ae4d5d7636402d80f4eb6d213245a88"},
        **S,
        MessageBody="b",
        MessageSystemAttributes={
            "AWSTraceHeader": text_attribute(
                "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
            )
        },
    ),
    refused(
        "another system attribute",
        OURS,
        "SendMessage",
        INVALID,
        "Message system attribute name 'SenderId' is invalid.",
        **S,
        MessageBody="b",
        MessageSystemAttributes={"SenderId": text_attribute()},
    ),
]

NAME_INVALID = "The message attribute name '{}' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."
ATTRIBUTES = [
    *(
        attributes_case(
            f"the attribute name {name!r}", RECORDED, NAME_INVALID.format(name), {name: text_attribute()}
        )
        for name in ("a b", "a/b", "\u00e9", "a$")
    ),
    *(
        attributes_case(f"the attribute name {name[:8]!r}", GUIDE, text, {name: text_attribute()})
        for name, text in (
            (".a", "Invalid message attribute name starting with character '.' was found."),
            ("a.", "Invalid message attribute name ending with character '.' was found."),
            ("a..b", "Message attribute name can not have successive '.' characters."),
            ("AWS.a", "^You can't use message attribute names beginning with 'AWS\\.' or 'Amazon\\.'"),
            ("amazon.a", "^You can't use message attribute names beginning"),
            ("n" * 257, "Message (user) attribute name cannot be longer than 256 UTF-8 characters."),
        )
    ),
    attributes_case(
        "an empty value",
        RECORDED,
        "Message (user) attribute 'a' must contain a non-empty value of type 'String'.",
        {"a": text_attribute("")},
    ),
    attributes_case(
        "no value",
        RECORDED,
        "Message (user) attribute 'a' must contain a non-empty value of type 'Number'.",
        {"a": {"DataType": "Number"}},
    ),
    attributes_case(
        "an empty binary value",
        RECORDED,
        "Message (user) attribute 'a' must contain a non-empty value of type 'Binary'.",
        {"a": {"DataType": "Binary"}},
    ),
    attributes_case(
        "no type",
        GUIDE,
        "^The message \\(user\\) attribute 'a' must contain a non-empty message attribute type",
        {"a": {"StringValue": "v"}},
    ),
    *(
        attributes_case(
            f"the type {data_type!r}",
            GUIDE,
            "^The type of message \\(user\\) attribute 'a' is invalid\\. You must use only the following supported type prefixes",
            {"a": text_attribute("v", data_type)},
        )
        for data_type in ("Text", "string", "String.", "S", "Number" + "x" * 257)
    ),
    attributes_case(
        "a number that is none",
        GUIDE,
        "Can't cast the value of message (user) attribute 'a' to a number.",
        {"a": text_attribute("five", "Number")},
    ),
    attributes_case(
        "eleven attributes",
        GUIDE,
        "Number of message attributes [11] exceeds the allowed maximum [10].",
        {f"a{number}": text_attribute() for number in range(11)},
    ),
    refused(
        "a value that has no characters of messages",
        GUIDE,
        "SendMessage",
        "InvalidMessageContents",
        FORBIDDEN,
        **S,
        MessageBody="b",
        MessageAttributes={"a": text_attribute("\x01")},
    ),
    *(
        answered(
            f"an attribute {value['DataType']}",
            GUIDE,
            "ReceiveMessage",
            {"Messages": [{"MessageAttributes": {"a.b-c_1": value}, "MD5OfMessageAttributes": ANY}]},
            before=[send("std", MessageAttributes={"a.b-c_1": value})],
            **S,
            MessageAttributeNames=["All"],
        )
        for value in (
            text_attribute(),
            text_attribute("-1.5e3", "Number"),
            text_attribute("v", "String.custom"),
            text_attribute("7", "Number.byte"),
            {"DataType": "Binary", "BinaryValue": "AAEC/w=="},
            {"DataType": "Binary.png", "BinaryValue": "aGVsbG8="},
        )
    ),
    answered(
        "an attribute that is named as headers are",
        OURS,
        "ReceiveMessage",
        {"Messages": [{"MessageAttributes": {"rw.delay.ms": text_attribute("9")}}]},
        before=[send("std", MessageAttributes={"rw.delay.ms": text_attribute("9")})],
        **S,
        MessageAttributeNames=["All"],
    ),
    *(
        answered(
            f"asked for {names}",
            GUIDE,
            "ReceiveMessage",
            {"Messages": [{"MessageAttributes": {name: text_attribute() for name in found}}]}
            if found
            else {},
            before=[send("std", MessageAttributes={name: text_attribute() for name in ("a.b", "a.c", "d")})],
            **S,
            MessageAttributeNames=names,
        )
        for names, found in (
            (["All"], ["a.b", "a.c", "d"]),
            ([".*"], ["a.b", "a.c", "d"]),
            (["a.*"], ["a.b", "a.c"]),
            (["d"], ["d"]),
            (["d", "a.c"], ["a.c", "d"]),
            (["none"], []),
        )
    ),
]


def entries(*items: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [{"Id": f"id_{number}", **item} for number, item in enumerate(items, 1)]


BATCHED: dict[str, dict[str, Any]] = {
    "SendMessageBatch": {"MessageBody": "b"},
    "DeleteMessageBatch": {"ReceiptHandle": "h"},
    "ChangeMessageVisibilityBatch": {"ReceiptHandle": "h", "VisibilityTimeout": 1},
}
BAD_ID = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
BATCHES = [
    *(
        refused(
            "no entries",
            RECORDED,
            action,
            PREFIX + "EmptyBatchRequest",
            f"There should be at least one {action}RequestEntry in the request.",
            **S,
        )
        for action in BATCHED
    ),
    *(
        refused(
            "eleven entries",
            RECORDED,
            action,
            PREFIX + "TooManyEntriesInBatchRequest",
            "Maximum number of entries per request are 10. You have sent 11.",
            **S,
            Entries=entries(*[entry] * 11),
        )
        for action, entry in BATCHED.items()
    ),
    *(
        refused(
            f"an id {entry_id[:6]!r}",
            RECORDED,
            action,
            PREFIX + "InvalidBatchEntryId",
            BAD_ID,
            **S,
            Entries=[{**entry, "Id": entry_id}],
        )
        for action, entry in BATCHED.items()
        for entry_id in ("a b", "a.b", "x" * 81)
    ),
    *(
        refused(
            "an id twice",
            RECORDED,
            action,
            PREFIX + "BatchEntryIdsNotDistinct",
            "Id id_2 repeated.",
            **S,
            Entries=[{**entry, "Id": entry_id} for entry_id in ("id_1", "id_2", "id_3", "id_2", "id_1")],
        )
        for action, entry in BATCHED.items()
    ),
    answered(
        "ten messages",
        RECORDED,
        "SendMessageBatch",
        {"Successful": [{"Id": f"id_{number}", "MD5OfMessageBody": ANY} for number in range(1, 11)]},
        **S,
        Entries=entries(*[{"MessageBody": "hello"}] * 10),
    ),
    answered(
        "one entry fails by itself",
        RECORDED,
        "SendMessageBatch",
        {
            "Successful": [{"Id": "id_1"}],
            "Failed": [
                {
                    "Id": "id_2",
                    "SenderFault": True,
                    "Code": INVALID,
                    "Message": "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.",
                }
            ],
        },
        QueueUrl=q("small"),
        Entries=entries({"MessageBody": "b"}, {"MessageBody": "b" * 1025}),
    ),
    answered(
        "a delay fails by itself",
        RECORDED,
        "SendMessageBatch",
        {
            "Successful": [{"Id": "id_1"}],
            "Failed": [
                {
                    "Id": "id_2",
                    "Code": INVALID,
                    "Message": "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.",
                }
            ],
        },
        **S,
        Entries=entries({"MessageBody": "b"}, {"MessageBody": "b", "DelaySeconds": 901}),
    ),
    refused(
        "more than a mebibyte in all",
        RECORDED,
        "SendMessageBatch",
        PREFIX + "BatchRequestTooLong",
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
        **S,
        Entries=entries({"MessageBody": "b" * 1_048_576}, {"MessageBody": "b"}),
    ),
    refused(
        "no group in a batch",
        RECORDED,
        "SendMessageBatch",
        INVALID,
        "The request must contain the parameter MessageGroupId.",
        **F,
        Entries=entries({"MessageBody": "a", "MessageGroupId": "g"}, {"MessageBody": "b"}),
    ),
    refused(
        "no deduplication id in a batch",
        RECORDED,
        "SendMessageBatch",
        INVALID,
        NO_DEDUPLICATION,
        **P,
        Entries=entries({"MessageBody": "a", "MessageGroupId": "g"}),
    ),
    answered(
        "sequence numbers in a batch",
        RECORDED,
        "SendMessageBatch",
        {
            "Successful": [
                {"Id": "id_1", "SequenceNumber": "10000000000000000000"},
                {"Id": "id_2", "SequenceNumber": "10000000000000000001"},
            ]
        },
        **F,
        Entries=entries(
            {"MessageBody": "a", "MessageGroupId": "g"}, {"MessageBody": "b", "MessageGroupId": "g"}
        ),
    ),
    answered(
        "handles of a batch that cannot be read",
        RECORDED,
        "DeleteMessageBatch",
        {
            "Failed": [
                {
                    "Id": "id_1",
                    "SenderFault": True,
                    "Code": "ReceiptHandleIsInvalid",
                    "Message": 'The input receipt handle "garbage" is not a valid receipt handle.',
                }
            ]
        },
        **S,
        Entries=entries({"ReceiptHandle": "garbage"}),
    ),
    answered(
        "a batch of deletes",
        RECORDED,
        "DeleteMessageBatch",
        {"Successful": [{"Id": "id_1"}]},
        before=[send("std"), receive("std")],
        **S,
        Entries=entries({"ReceiptHandle": HANDLE}),
    ),
    answered(
        "a batch of changes",
        RECORDED,
        "ChangeMessageVisibilityBatch",
        {"Successful": [{"Id": "id_1"}], "Failed": [{"Id": "id_2", "Code": "ReceiptHandleIsInvalid"}]},
        before=[send("std"), receive("std")],
        **S,
        Entries=entries(
            {"ReceiptHandle": HANDLE, "VisibilityTimeout": 5}, {"ReceiptHandle": "x", "VisibilityTimeout": 5}
        ),
    ),
    answered(
        "a change that is too long fails by itself",
        RECORDED,
        "ChangeMessageVisibilityBatch",
        {"Failed": [{"Id": "id_1", "Code": INVALID}]},
        before=[send("std"), receive("std")],
        **S,
        Entries=entries({"ReceiptHandle": HANDLE, "VisibilityTimeout": 43_201}),
    ),
]

WHOLE = {
    "MessageId": ANY,
    "ReceiptHandle": ANY,
    "MD5OfBody": HELLO_MD5,
    "Body": "hello",
}
RECEIVING = [
    answered("nothing", RECORDED, "ReceiveMessage", absent=("Messages",), **S),
    answered(
        "a message, whole", RECORDED, "ReceiveMessage", {"Messages": [WHOLE]}, before=[send("std")], **S
    ),
    *(
        refused(
            f"{count} at once",
            RECORDED,
            "ReceiveMessage",
            INVALID,
            f"Value {count} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
            **S,
            MaxNumberOfMessages=count,
        )
        for count in (0, 11, -1)
    ),
    *(
        refused(
            f"a wait of {wait}",
            RECORDED,
            "ReceiveMessage",
            INVALID,
            f"Value {wait} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.",
            **S,
            WaitTimeSeconds=wait,
        )
        for wait in (21, -1)
    ),
    *(
        refused(
            f"a visibility of {visibility}",
            GUIDE,
            "ReceiveMessage",
            INVALID,
            f"Value {visibility} for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided.",
            **S,
            VisibilityTimeout=visibility,
        )
        for visibility in (43_201, -1)
    ),
    answered(
        "as many as may be",
        MODEL,
        "ReceiveMessage",
        {"Messages": [WHOLE] * 10},
        before=[send("std")] * 11,
        **S,
        MaxNumberOfMessages=10,
    ),
    answered(
        "one unless more are asked for",
        MODEL,
        "ReceiveMessage",
        {"Messages": [WHOLE]},
        before=[send("std")] * 2,
        **S,
    ),
    answered("a long poll in vain", MODEL, "ReceiveMessage", absent=("Messages",), **S, WaitTimeSeconds=20),
    answered(
        "a long poll hears of what becomes visible",
        RECORDED,
        "ReceiveMessage",
        {"Messages": [WHOLE]},
        before=[send("std", DelaySeconds=5)],
        **S,
        WaitTimeSeconds=20,
    ),
    answered(
        "the queue's own delay",
        MODEL,
        "ReceiveMessage",
        absent=("Messages",),
        before=[send("slow")],
        QueueUrl=q("slow"),
    ),
    answered(
        "which ends",
        MODEL,
        "ReceiveMessage",
        {"Messages": [WHOLE]},
        before=[send("slow"), 6],
        QueueUrl=q("slow"),
    ),
    answered(
        "hidden once received",
        MODEL,
        "ReceiveMessage",
        absent=("Messages",),
        before=[send("std"), receive("std")],
        **S,
    ),
    answered(
        "visible again after its time",
        MODEL,
        "ReceiveMessage",
        {"Messages": [{**WHOLE, "Attributes": {"ApproximateReceiveCount": "2"}}]},
        before=[send("std"), receive("std"), 31],
        **S,
        AttributeNames=["ApproximateReceiveCount"],
    ),
    answered(
        "the queue's own visibility",
        MODEL,
        "ReceiveMessage",
        {"Messages": [WHOLE]},
        before=[send("slow", DelaySeconds=0), receive("slow"), 8],
        QueueUrl=q("slow"),
    ),
    answered(
        "a visibility of its own",
        MODEL,
        "ReceiveMessage",
        {"Messages": [WHOLE]},
        before=[send("std"), receive("std", VisibilityTimeout=2), 3],
        **S,
    ),
    answered(
        "all system attributes",
        RECORDED,
        "ReceiveMessage",
        {
            "Messages": [
                {
                    "Attributes": {
                        "SenderId": "AKIDEXAMPLE",
                        "SentTimestamp": ANY,
                        "ApproximateReceiveCount": "1",
                        "ApproximateFirstReceiveTimestamp": ANY,
                    }
                }
            ]
        },
        before=[send("std")],
        **S,
        AttributeNames=["All"],
    ),
    answered(
        "all of a FIFO queue",
        RECORDED,
        "ReceiveMessage",
        {
            "Messages": [
                {
                    "Attributes": {
                        "SequenceNumber": "10000000000000000000",
                        "MessageGroupId": "g",
                        "MessageDeduplicationId": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
                    }
                }
            ]
        },
        before=[send_fifo()],
        **F,
        MessageSystemAttributeNames=["All"],
    ),
    answered(
        "the trace header",
        RECORDED,
        "ReceiveMessage",
        {"Messages": [{"Attributes": {"AWSTraceHeader": "Root=1"}}]},
        before=[send("std", MessageSystemAttributes={"AWSTraceHeader": text_attribute("Root=1")})],
        **S,
        AttributeNames=["AWSTraceHeader"],
    ),
    answered(
        "blanks around a name",
        RECORDED,
        "ReceiveMessage",
        {"Messages": [{"Attributes": {"SenderId": "AKIDEXAMPLE"}}]},
        before=[send("std")],
        **S,
        AttributeNames=[" SenderId"],
    ),
    refused(
        "a system attribute that there is not",
        OURS,
        "ReceiveMessage",
        NAME,
        "Unknown Attribute Nonsense.",
        **S,
        MessageSystemAttributeNames=["Nonsense"],
    ),
    refused(
        "an attempt id on a standard queue",
        GUIDE,
        "ReceiveMessage",
        INVALID,
        f"Value r for parameter ReceiveRequestAttemptId is invalid. Reason: {TYPE_TEXT}",
        **S,
        ReceiveRequestAttemptId="r",
    ),
    answered("an attempt id on a FIFO queue", GUIDE, "ReceiveMessage", **F, ReceiveRequestAttemptId="r"),
    refused(
        "an attempt id with a blank",
        GUIDE,
        "ReceiveMessage",
        INVALID,
        f"Value a b for parameter ReceiveRequestAttemptId is invalid. Reason: ReceiveRequestAttemptId {ID_TEXT}",
        **F,
        ReceiveRequestAttemptId="a b",
    ),
    answered(
        "a group in flight waits",
        RECORDED,
        "ReceiveMessage",
        absent=("Messages",),
        before=[send_fifo("a"), send_fifo("b"), receive("cbd.fifo")],
        **F,
    ),
    answered(
        "another group does not",
        RECORDED,
        "ReceiveMessage",
        {"Messages": [{"Body": "b"}]},
        before=[send_fifo("a"), send_fifo("b", "h"), receive("cbd.fifo")],
        **F,
    ),
    answered(
        "a dead letter",
        RECORDED,
        "ReceiveMessage",
        {
            "Messages": [
                {
                    **WHOLE,
                    "Attributes": {"DeadLetterQueueSourceArn": ARN + "src", "ApproximateReceiveCount": "2"},
                    "MessageAttributes": {"a": text_attribute()},
                }
            ]
        },
        before=[
            send("src", MessageAttributes={"a": text_attribute()}),
            receive("src", VisibilityTimeout=1),
            2,
            receive("src"),
        ],
        QueueUrl=q("dlq"),
        AttributeNames=["All"],
        MessageAttributeNames=["All"],
    ),
]

BY_HANDLE: dict[str, dict[str, Any]] = {
    "DeleteMessage": {},
    "ChangeMessageVisibility": {"VisibilityTimeout": 1},
}
UNREADABLE = "The input receipt handle is invalid."
EXPIRED = (
    "^Value [\\w-]+ for parameter ReceiptHandle is invalid\\. Reason: The receipt handle has expired\\.$"
)
GONE = "^Value [\\w-]+ for parameter ReceiptHandle is invalid\\. Reason: Message does not exist or is not available for visibility timeout change\\.$"
SETTLING = [
    answered(
        "a message goes",
        RECORDED,
        "DeleteMessage",
        before=[send("std"), receive("std")],
        **S,
        ReceiptHandle=HANDLE,
    ),
    answered(
        "twice is fine",
        RECORDED,
        "DeleteMessage",
        before=[send("std"), receive("std"), ("DeleteMessage", {**S, "ReceiptHandle": HANDLE})],
        **S,
        ReceiptHandle=HANDLE,
    ),
    answered(
        "after its time, on a standard queue",
        RECORDED,
        "DeleteMessage",
        before=[send("std"), receive("std"), 31],
        **S,
        ReceiptHandle=HANDLE,
    ),
    answered(
        "by an older attempt, on a standard queue",
        RECORDED,
        "DeleteMessage",
        before=[send("std"), receive("std"), 31, receive("std")],
        **S,
        ReceiptHandle=OLD_HANDLE,
    ),
    refused(
        "after its time, on a FIFO queue",
        RECORDED,
        "DeleteMessage",
        INVALID,
        EXPIRED,
        before=[send_fifo(), receive("cbd.fifo"), 31],
        **F,
        ReceiptHandle=HANDLE,
    ),
    refused(
        "by an older attempt, on a FIFO queue",
        RECORDED,
        "DeleteMessage",
        INVALID,
        EXPIRED,
        before=[send_fifo(), receive("cbd.fifo"), 31, receive("cbd.fifo")],
        **F,
        ReceiptHandle=OLD_HANDLE,
    ),
    answered(
        "within an extended time, on a FIFO queue",
        RECORDED,
        "DeleteMessage",
        before=[
            send_fifo(),
            receive("cbd.fifo"),
            ("ChangeMessageVisibility", {**F, "ReceiptHandle": HANDLE, "VisibilityTimeout": 60}),
            31,
        ],
        **F,
        ReceiptHandle=HANDLE,
    ),
    *(
        refused(
            f"the handle {handle[:12]!r}",
            RECORDED,
            action,
            "ReceiptHandleIsInvalid",
            UNREADABLE,
            **S,
            **rest,
            ReceiptHandle=handle,
        )
        for handle in ("garbage", "A" * 44, "\u00e9" * 44, "x" * 2000, "SQS/BACKDOOR/ACCESS")
        for action, rest in BY_HANDLE.items()
    ),
    refused(
        "another queue's handle",
        GUIDE,
        "DeleteMessage",
        "ReceiptHandleIsInvalid",
        UNREADABLE,
        before=[send("small"), receive("small")],
        **S,
        ReceiptHandle=HANDLE,
    ),
    refused(
        "a handle of a queue that was made again",
        OURS,
        "DeleteMessage",
        "ReceiptHandleIsInvalid",
        UNREADABLE,
        before=[send("std"), receive("std"), ("DeleteQueue", S), ("CreateQueue", {"QueueName": "std"})],
        **S,
        ReceiptHandle=HANDLE,
    ),
    *(
        answered(
            f"a visibility of {visibility}",
            MODEL,
            "ChangeMessageVisibility",
            before=[send("std"), receive("std")],
            **S,
            ReceiptHandle=HANDLE,
            VisibilityTimeout=visibility,
        )
        for visibility in (0, 1, 43_199)
    ),
    *(
        refused(
            f"a visibility of {visibility}",
            GUIDE,
            "ChangeMessageVisibility",
            INVALID,
            f"Value {visibility} for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided.",
            before=[send("std"), receive("std")],
            **S,
            ReceiptHandle=HANDLE,
            VisibilityTimeout=visibility,
        )
        for visibility in (43_201, -1)
    ),
    refused(
        "more than twelve hours in all",
        RECORDED,
        "ChangeMessageVisibility",
        INVALID,
        "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]",
        before=[send("std"), receive("std"), 5],
        **S,
        ReceiptHandle=HANDLE,
        VisibilityTimeout=43_200,
    ),
    refused(
        "of a message that is gone",
        RECORDED,
        "ChangeMessageVisibility",
        INVALID,
        GONE,
        before=[send("std"), receive("std"), ("DeleteMessage", {**S, "ReceiptHandle": HANDLE})],
        **S,
        ReceiptHandle=HANDLE,
        VisibilityTimeout=5,
    ),
    answered(
        "by an older attempt, on a standard queue",
        RECORDED,
        "ChangeMessageVisibility",
        before=[send("std"), receive("std"), 31, receive("std")],
        **S,
        ReceiptHandle=OLD_HANDLE,
        VisibilityTimeout=5,
    ),
    answered(
        "shown again at once",
        MODEL,
        "ReceiveMessage",
        {"Messages": [WHOLE]},
        before=[
            send("std"),
            receive("std"),
            ("ChangeMessageVisibility", {**S, "ReceiptHandle": HANDLE, "VisibilityTimeout": 0}),
        ],
        **S,
    ),
]


def start_move(**more: Any) -> Step:
    return "StartMessageMoveTask", {"SourceArn": ARN + "dlq", **more}


def move_handle(task_id: str, source_arn: str) -> str:
    return b64encode(json.dumps({"taskId": task_id, "sourceArn": source_arn}).encode()).decode()


DEAD: Sequence[Step | int] = [
    send("src"),
    receive("src", VisibilityTimeout=1),
    2,
    receive("src", VisibilityTimeout=1),
]
MOVE_DONE = {"Status": "COMPLETED", "SourceArn": ARN + "dlq", "StartedTimestamp": ANY}
NO_ARN = "^You must use this format to specify the ARN"
MOVING = [
    refused("no ARN", OURS, "StartMessageMoveTask", INVALID, NO_ARN, SourceArn="nonsense"),
    refused(
        "no such source",
        RECORDED,
        "StartMessageMoveTask",
        "ResourceNotFoundException",
        "The resource that you specified for the SourceArn parameter doesn't exist.",
        status=404,
        SourceArn=ARN + "none",
    ),
    refused(
        "no such destination",
        RECORDED,
        "StartMessageMoveTask",
        "ResourceNotFoundException",
        "The resource that you specified for the DestinationArn parameter doesn't exist.",
        status=404,
        SourceArn=ARN + "dlq",
        DestinationArn=ARN + "none",
    ),
    refused(
        "nobody's dead-letter queue",
        RECORDED,
        "StartMessageMoveTask",
        INVALID,
        "Source queue must be configured as a Dead Letter Queue.",
        SourceArn=ARN + "std",
    ),
    *(
        refused(
            f"{count} a second",
            GUIDE,
            "StartMessageMoveTask",
            INVALID,
            f"^Value {count} for parameter MaxNumberOfMessagesPerSecond is invalid",
            SourceArn=ARN + "dlq",
            MaxNumberOfMessagesPerSecond=count,
        )
        for count in (0, 501)
    ),
    refused(
        "to itself",
        OURS,
        "StartMessageMoveTask",
        INVALID,
        "messages of dlq cannot be moved to dlq itself",
        SourceArn=ARN + "dlq",
        DestinationArn=ARN + "dlq",
    ),
    refused(
        "while another one runs",
        RECORDED,
        "StartMessageMoveTask",
        INVALID,
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
        before=[start_move(MaxNumberOfMessagesPerSecond=1)],
        SourceArn=ARN + "dlq",
        DestinationArn=ARN + "std",
    ),
    answered(
        "back to where they came from",
        RECORDED,
        "StartMessageMoveTask",
        {"TaskHandle": ANY},
        SourceArn=ARN + "dlq",
    ),
    answered(
        "to another queue, slowly",
        RECORDED,
        "StartMessageMoveTask",
        {"TaskHandle": ANY},
        SourceArn=ARN + "dlq",
        DestinationArn=ARN + "std",
        MaxNumberOfMessagesPerSecond=500,
    ),
    answered(
        "a task that is done",
        RECORDED,
        "ListMessageMoveTasks",
        {"Results": [{**MOVE_DONE, "ApproximateNumberOfMessagesMoved": 1}]},
        before=[*DEAD, start_move()],
        SourceArn=ARN + "dlq",
    ),
    answered(
        "what a task that is done moved",
        RECORDED,
        "ReceiveMessage",
        {"Messages": [{"Body": "hello", "Attributes": {"ApproximateReceiveCount": "1"}}]},
        before=[*DEAD, start_move()],
        QueueUrl=q("src"),
        AttributeNames=["ApproximateReceiveCount"],
    ),
    answered(
        "a task that runs",
        RECORDED,
        "ListMessageMoveTasks",
        {
            "Results": [
                {
                    "Status": "RUNNING",
                    "TaskHandle": ANY,
                    "SourceArn": ARN + "dlq",
                    "DestinationArn": ARN + "std",
                    "MaxNumberOfMessagesPerSecond": 1,
                    "ApproximateNumberOfMessagesMoved": 0,
                    "ApproximateNumberOfMessagesToMove": 1,
                    "StartedTimestamp": ANY,
                }
            ]
        },
        before=[*DEAD, start_move(MaxNumberOfMessagesPerSecond=1, DestinationArn=ARN + "std")],
        SourceArn=ARN + "dlq",
    ),
    answered(
        "a task that failed",
        GUIDE,
        "ListMessageMoveTasks",
        {"Results": [{"Status": "FAILED", "FailureReason": "CouldNotDetermineMessageSource"}]},
        before=[send("dlq"), start_move()],
        SourceArn=ARN + "dlq",
    ),
    answered(
        "one task unless more are wanted",
        MODEL,
        "ListMessageMoveTasks",
        {"Results": [MOVE_DONE]},
        before=[start_move(), start_move()],
        SourceArn=ARN + "dlq",
    ),
    answered(
        "as many tasks as are wanted",
        MODEL,
        "ListMessageMoveTasks",
        {"Results": [MOVE_DONE, MOVE_DONE, MOVE_DONE]},
        before=[start_move(), start_move(), start_move()],
        SourceArn=ARN + "dlq",
        MaxResults=10,
    ),
    answered(
        "a task that runs is cancelled",
        RECORDED,
        "CancelMessageMoveTask",
        {"ApproximateNumberOfMessagesMoved": 0},
        before=[*DEAD, start_move(MaxNumberOfMessagesPerSecond=1)],
        TaskHandle=HANDLE,
    ),
    answered(
        "a task that was cancelled",
        RECORDED,
        "ListMessageMoveTasks",
        {"Results": [{"Status": "CANCELLED", "MaxNumberOfMessagesPerSecond": 1}]},
        before=[
            *DEAD,
            *DEAD,
            start_move(MaxNumberOfMessagesPerSecond=1),
            ("CancelMessageMoveTask", {"TaskHandle": HANDLE}),
        ],
        SourceArn=ARN + "dlq",
    ),
    refused(
        "a task that is over",
        OURS,
        "CancelMessageMoveTask",
        PREFIX + "UnsupportedOperation",
        "Only a task in status RUNNING can be cancelled.",
        before=[start_move()],
        TaskHandle=HANDLE,
    ),
    refused(
        "a task of a queue that there is not",
        RECORDED,
        "CancelMessageMoveTask",
        "ResourceNotFoundException",
        "The resource that you specified for the SourceArn parameter doesn't exist.",
        status=404,
        TaskHandle=move_handle("00000000-0000-0000-0000-000000000000", ARN + "none"),
    ),
    refused(
        "a task that never was",
        RECORDED,
        "CancelMessageMoveTask",
        "ResourceNotFoundException",
        "Task does not exist.",
        status=404,
        TaskHandle=move_handle("10f57157-fc38-4da9-a113-4de7e12d05aa", ARN + "dlq"),
    ),
    answered("no tasks", RECORDED, "ListMessageMoveTasks", SourceArn=ARN + "dlq"),
    refused("tasks of no ARN", OURS, "ListMessageMoveTasks", INVALID, NO_ARN, SourceArn="nonsense"),
    refused(
        "tasks of no queue",
        RECORDED,
        "ListMessageMoveTasks",
        "ResourceNotFoundException",
        "The resource that you specified for the SourceArn parameter doesn't exist.",
        status=404,
        SourceArn=ARN + "none",
    ),
    *(
        refused(
            f"{count} tasks",
            GUIDE,
            "ListMessageMoveTasks",
            INVALID,
            f"^Value {count} for parameter MaxResults",
            SourceArn=ARN + "dlq",
            MaxResults=count,
        )
        for count in (0, 11)
    ),
    refused(
        "a handle that is none",
        RECORDED,
        "CancelMessageMoveTask",
        INVALID,
        "Value for parameter TaskHandle is invalid.",
        TaskHandle="nonsense",
    ),
    refused(
        "a task that there is not",
        RECORDED,
        "CancelMessageMoveTask",
        "ResourceNotFoundException",
        "Task does not exist.",
        status=404,
        TaskHandle="eyJ0YXNrSWQiOiJ4Iiwic291cmNlQXJuIjoiYXJuOmF3czpzcXM6ZXUtd2VzdC0xOjAwMDAwMDAwMDAwMDpkbHEifQ==",
    ),
]

CASES = [
    *UNKNOWN_QUEUES,
    *WITHOUT_QUEUES,
    *LACKING,
    *CREATING,
    *BOUNDED,
    *SETTING,
    *GETTING,
    *LISTING,
    *ENDING,
    *TAGGING,
    *PERMITTING,
    *SENDING,
    *ATTRIBUTES,
    *BATCHES,
    *RECEIVING,
    *SETTLING,
    *MOVING,
]


@pytest.mark.parametrize("protocol", ["json", "query"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.action}: {case.name} ({case.source})")
def test_sqs_answers_so(case: Case, protocol: str) -> None:
    async def story(visit: Visit) -> Heard:
        for action, parameters in QUEUES:
            assert (await visit.json(action, **parameters)).status == 200
        handles = [""]
        for step in case.before:
            if isinstance(step, int):
                await visit.sleep(step)
                continue
            heard = await visit.call(protocol, step[0], **filled(step[1], handles))
            assert heard.status == 200, heard
            handles += [message["ReceiptHandle"] for message in heard.said.get("Messages", ())]
            handles += [heard.said["TaskHandle"]] if "TaskHandle" in heard.said else []
        return await visit.call(protocol, case.action, **filled(case.parameters, handles))

    check(case, visiting(story))


def check(case: Case, heard: Heard) -> None:
    assert (heard.status, heard.code) == (case.status, case.code), (case.name, heard)
    if case.text.startswith("^"):
        assert re.match(case.text, heard.text), (case.name, heard.text)
    else:
        assert heard.text == case.text, case.name
    assert heard.headers["x-amzn-requestid"]
    _check_within(case.said, heard.said)
    assert not set(case.absent) & heard.said.keys(), case.name


def filled(value: Any, handles: Sequence[str]) -> Any:
    """With the handles that were heard in the places kept for them."""
    match value:
        case dict():
            return {key: filled(content, handles) for key, content in value.items()}
        case list():
            return [filled(content, handles) for content in value]
        case str() if value == HANDLE:
            return handles[-1]
        case str() if value == OLD_HANDLE:
            return handles[-2]
        case _:
            return value


def _check_within(expected: Any, found: Any) -> None:
    if expected == ANY:
        assert found
    elif isinstance(expected, Mapping):
        for key, value in expected.items():
            assert key in found, f"{key} is not in {found}"
            _check_within(value, found[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            _check_within(one, other)
    else:
        assert found == expected


def test_every_action_has_its_cases() -> None:
    assert {case.action for case in CASES} == {action.name for action in ACTIONS}
    assert len(ACTIONS) == 23
    assert 2 * len(CASES) >= 350
