"""Hostile SQS requests, in AWS JSON and in Query: whole HTTP requests that follow from the seed and their number alone.

They begin as requests that a client could send, with the parameters of their action, and most values are such that the action is
carried out: what is refused at the first look reaches nothing. Then values are replaced by hostile ones, dropped, doubled or nested,
and some bodies are mutated byte by byte. The HTTP around them is sound: that is the other campaign's business.

Where keys are wanted, requests are signed, some of them wrongly (`sqs_signatures.py`).
"""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote_plus

from msgspec import Struct

from tests.fuzz.sqs_signatures import Signatures

QUEUES: Final = ("fuzz", "fuzz-dead", "fuzz.fifo", "nobody", "", "a" * 81, "fuzz/../x", "ü", "fuzz%00")
_BAD_NAMES: Final = tuple(name for name in QUEUES if name != "nobody")
"""A queue that is made anew is not ready at once, and says so with a status that blames the node: nobody is not made."""
_GOOD_SHARE: Final = 0.9
"""Of the values in a request."""

_ATTRIBUTES: Final = (
    "All", "DelaySeconds", "VisibilityTimeout", "MessageRetentionPeriod", "RedrivePolicy", "RedriveAllowPolicy", "Policy", "FifoQueue",
    "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit", "MaximumMessageSize", "KmsMasterKeyId", "QueueArn",
    "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled", "ApproximateNumberOfMessages", "Nonsense", " DelaySeconds ", "",
)  # fmt: skip
_SETTINGS: Final = (
    ("DelaySeconds", "0"), ("DelaySeconds", "1"), ("VisibilityTimeout", "0"), ("VisibilityTimeout", "30"), ("MessageRetentionPeriod", "60"),
    ("MaximumMessageSize", "1024"), ("MaximumMessageSize", "262144"), ("ReceiveMessageWaitTimeSeconds", "0"), ("Policy", ""),
    ("RedrivePolicy", '{"deadLetterTargetArn":"arn:aws:sqs:r:000000000000:fuzz-dead","maxReceiveCount":3}'), ("RedrivePolicy", ""),
    ("RedriveAllowPolicy", '{"redrivePermission":"denyAll"}'), ("RedriveAllowPolicy", '{"redrivePermission":"allowAll"}'),
    ("ContentBasedDeduplication", "true"), ("ContentBasedDeduplication", "false"), ("FifoQueue", "true"), ("SqsManagedSseEnabled", "true"),
    ("DeduplicationScope", "messageGroup"), ("FifoThroughputLimit", "perMessageGroupId"), ("KmsMasterKeyId", "alias/x"),
)  # fmt: skip
_TEXTS: Final = (
    "", "x", "0", "-1", "1", "30", "900", "901", "43200", "43201", "99999999999999999999", "1e3", "0x10", "true", "false", "null", "NaN",
    "é", "\x00", "\x0b", "\ud7ff", "\ufffe", "😀", "a b", "a" * 129, "{}", "[]", '{"deadLetterTargetArn":"arn:aws:sqs:r:000000000000:fuzz-dead","maxReceiveCount":3}',
    '{"redrivePermission":"denyAll"}', "arn:aws:sqs:us-east-1:000000000000:fuzz", "http://x/000000000000/nobody", "<a>&amp;", "%", "'\"",
    " 1", "+1", "１", "1_0", "-0", "1.0", "0" * 5000 + "1", "]]>", "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/hostname'>]><a>&b;</a>",
    "AAEC", "AAE=", "AAE", "A-_=", "AA E=", "====", "\u2028", "a\u0301", "\r\n", "\t", "\x7f", "\x85", "İ", "null\x00",
    '{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:r:000000000000:fuzz"]}', '{"maxReceiveCount":"1e9"}', "[" * 2000,
    '{"Version":"2012-10-17","Statement":[{}]}', '{"Statement":5}',
)  # fmt: skip
_VALUES: Final[tuple[Any, ...]] = (
    *_TEXTS, None, True, False, 0, 1, -1, 10, 11, 21, 2**31, 2**63, -(2**63), 2**64, 10**30, 1.5, 1e308, [], {}, [[]], {"a": {}}, ["x"] * 11,
    {"x": 1}, [None], {"Id": None}, [{"Id": "1"}] * 3, {"": ""},
)  # fmt: skip
_HANDLES: Final = ("", "AAAA", "AQ" * 40, "0" * 1000, "é", "{}", "A" * 44, "-" * 44, "AA=A" * 11)
_JSON_PIECES: Final = (
    b'"', b"{", b"[", b"\\u0000", b"\xff", b"\\ud800", b"\\udc00\\ud800", b",", b":", b"1" * 400, b"1e999", b"[" * 3000, b'{"a":' * 1500,
    b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"NaN", b'"Id":"1",', b"\x00",
)  # fmt: skip
_FORM_PIECES: Final = (
    b"&", b"=", b"%", b"%zz", b"%00", b"%ff", b"%C0%80", b"%ED%A0%80", b";", b"+", b".", b"..", b".1", b".1.1.1.1.1.1.1.1.1", b".999999999",
    b"&Attribute.1.Name=a", b"&Action=ListQueues", b"&" * 500, b"\xff", b"=" * 500, b".-1.", b".\xd9\xa1.",
)  # fmt: skip
_SEPARATE: Final = frozenset({"DeleteQueue"})
"""Of these no queue is named by the address."""


class SqsRequest(Struct, frozen=True):
    raw: bytes
    is_json: bool
    is_forged: bool = False
    """Signed so that it must not be carried out."""


class Known(Struct, frozen=True):
    """What the node gave out, to be shown again in right and wrong places."""

    handles: Sequence[str] = ()
    ids: Sequence[str] = ()


NOTHING: Final = Known()
Shape = Callable[[random.Random, Known], dict[str, Any]]


def request(
    seed: int, number: int, known: Known = NOTHING, signatures: Signatures | None = None
) -> SqsRequest:
    """`signatures`: who signs it; None: nobody."""
    rng = random.Random(seed << 40 | number)
    chance = rng.random()
    action = rng.choice(
        _OFTEN if chance < _OFTEN_SHARE else _ACTIONS if chance < 1 - _SELDOM_SHARE else _SELDOM
    )
    if action == _PEEK:
        return _as_peek(rng, signatures)
    body = _SHAPES[action](rng, known)
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 2, 4))):
        _spoil(rng, body)
    if rng.random() < 0.02:
        action = rng.choice(("", "Nonsense", action.lower(), "SendMessage\x00", "Batch"))
    if action in _OWN or rng.random() < 0.6:
        return _as_json(rng, action, body, signatures)
    return _as_query(rng, action, body, signatures)


def _pick(rng: random.Random, good: Sequence[Any], bad: Sequence[Any]) -> Any:
    return rng.choice(good if rng.random() < _GOOD_SHARE else bad)


def _queue(rng: random.Random) -> str:
    name = _pick(rng, QUEUES[:3], QUEUES)
    return str(
        rng.choice(
            (
                f"http://127.0.0.1/000000000000/{name}",
                f"/000000000000/{name}",
                name,
                f"https://other:1/1/2/3/{name}",
            )
        )
    )


def _handle(rng: random.Random, known: Known) -> str:
    if not known.handles or rng.random() > _GOOD_SHARE:
        return rng.choice(_HANDLES)
    handle = rng.choice(known.handles)
    if rng.random() < 0.2:
        position = rng.randrange(len(handle))
        return handle[:position] + rng.choice("AZaz09-_=+/ é") + handle[position + 1 :]
    return handle


def _message(rng: random.Random) -> dict[str, Any]:
    message: dict[str, Any] = {"MessageBody": _pick(rng, ("x", "two words", "y" * 100, "é😀"), _BODIES)}
    if rng.random() < 0.1:
        message["DelaySeconds"] = _pick(rng, (0, 1, 2), (0, 900, 901, -1))
    if rng.random() < 0.6:
        message["MessageGroupId"] = _pick(rng, ("g", "h", "i"), ("", "x" * 129, "a b"))
        message["MessageDeduplicationId"] = _pick(rng, (str(rng.random()), "d"), ("", "ü", "x" * 129))
    if rng.random() < 0.2:
        message["MessageAttributes"] = dict(_attribute(rng) for _ in range(_pick(rng, (1, 2), (11,))))
    if rng.random() < 0.05:
        message["MessageSystemAttributes"] = {
            rng.choice(("AWSTraceHeader", "X")): {"DataType": "String", "StringValue": rng.choice(_TEXTS)}
        }
    return message


_BODIES: Final = (*_TEXTS, "x" * 1_000, "x" * 70_000, "é" * 3_000)


def _attribute(rng: random.Random) -> tuple[str, dict[str, str]]:
    name = _pick(rng, ("a", "b.c", "d_e"), ("AWS.x", ".a", "é", "a" * 257, ""))
    kind, value, text = _pick(
        rng,
        (
            ("String", "StringValue", "x"),
            ("Number", "StringValue", "-1.5e3"),
            ("Binary", "BinaryValue", "AAEC"),
            ("String.x", "StringValue", "<&>"),
        ),
        (
            ("Number", "StringValue", rng.choice(_TEXTS)),
            ("Binary", "BinaryValue", rng.choice(_TEXTS)),
            ("Nothing", "Other", "x"),
            ("", "StringValue", ""),
        ),
    )
    return name, {"DataType": kind, value: text}


def _entries(rng: random.Random, make: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
    count = _pick(rng, (1, 1, 2, 3), (0, 10, 11))
    return [{"Id": _pick(rng, (str(index),), ("same", "", "a b")), **make()} for index in range(count)]


def _settings(rng: random.Random) -> dict[str, Any]:
    return dict(
        rng.choice(_SETTINGS) if rng.random() < _GOOD_SHARE else (rng.choice(_ATTRIBUTES), rng.choice(_TEXTS))
        for _ in range(rng.choice((0, 1, 2)))
    )


def _receive(rng: random.Random, _: Known) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "QueueUrl": _queue(rng),
        "MaxNumberOfMessages": _pick(rng, (1, 10), (0, 11)),
        "VisibilityTimeout": _pick(rng, (0, 1, 60), (43_200, 43_201)),
        "WaitTimeSeconds": 0 if rng.random() < 0.98 else rng.choice((1, 21)),
        "AttributeNames": [_pick(rng, ("All",), _ATTRIBUTES)],
        "MessageAttributeNames": [_pick(rng, ("All", ".*", "a.*", "b"), ("", "é"))],
    }
    if asked["QueueUrl"].endswith(".fifo") or rng.random() > _GOOD_SHARE:
        asked["ReceiveRequestAttemptId"] = _pick(rng, (str(rng.randrange(50)), "s"), ("", "x" * 129))
    return asked


_PEEK: Final = "a look"
_SHAPES: Final[dict[str, Shape]] = {
    "SendMessage": lambda rng, _: {"QueueUrl": _queue(rng), **_message(rng)},
    "SendMessageBatch": lambda rng, _: {
        "QueueUrl": _queue(rng),
        "Entries": _entries(rng, lambda: _message(rng)),
    },
    "ReceiveMessage": _receive,
    "DeleteMessage": lambda rng, known: {"QueueUrl": _queue(rng), "ReceiptHandle": _handle(rng, known)},
    "DeleteMessageBatch": lambda rng, known: {
        "QueueUrl": _queue(rng),
        "Entries": _entries(rng, lambda: {"ReceiptHandle": _handle(rng, known)}),
    },
    "ChangeMessageVisibility": lambda rng, known: {
        "QueueUrl": _queue(rng),
        "ReceiptHandle": _handle(rng, known),
        "VisibilityTimeout": _pick(rng, (0, 5), (-1, 43_200, 43_201)),
    },
    "ChangeMessageVisibilityBatch": lambda rng, known: {
        "QueueUrl": _queue(rng),
        "Entries": _entries(rng, lambda: {"ReceiptHandle": _handle(rng, known), "VisibilityTimeout": 3}),
    },
    "CreateQueue": lambda rng, _: {
        "QueueName": _pick(rng, (f"fuzz-{rng.randrange(20)}", f"fuzz-{rng.randrange(20)}.fifo"), _BAD_NAMES),
        "Attributes": _settings(rng),
        "tags": {_pick(rng, ("a", "b"), _TEXTS): _pick(rng, ("c", ""), _TEXTS)},
    },
    "DeleteQueue": lambda rng, _: {"QueueUrl": f"fuzz-{rng.randrange(20)}{rng.choice(('', '.fifo'))}"},
    "GetQueueUrl": lambda rng, _: {"QueueName": _pick(rng, QUEUES[:3], QUEUES)},
    "ListQueues": lambda rng, _: {
        "QueueNamePrefix": rng.choice(("fuzz", "", "é")),
        "MaxResults": _pick(rng, (1, 1000), (0, 1001)),
        **({"NextToken": rng.choice(_TEXTS)} if rng.random() > _GOOD_SHARE else {}),
    },
    "GetQueueAttributes": lambda rng, _: {
        "QueueUrl": _queue(rng),
        "AttributeNames": [rng.choice(_ATTRIBUTES)],
    },
    "SetQueueAttributes": lambda rng, _: {"QueueUrl": _queue(rng), "Attributes": _settings(rng)},
    "PurgeQueue": lambda rng, _: {"QueueUrl": _queue(rng)},
    "TagQueue": lambda rng, _: {
        "QueueUrl": _queue(rng),
        "Tags": {_pick(rng, ("a", "b"), _TEXTS): _pick(rng, ("c", ""), _TEXTS)},
    },
    "UntagQueue": lambda rng, _: {"QueueUrl": _queue(rng), "TagKeys": [_pick(rng, ("a", "b"), _TEXTS)]},
    "ListQueueTags": lambda rng, _: {"QueueUrl": _queue(rng)},
    "AddPermission": lambda rng, _: {
        "QueueUrl": _queue(rng),
        "Label": _pick(rng, ("l", "m"), _TEXTS),
        "AWSAccountIds": ["000000000000"],
        "Actions": [rng.choice(("SendMessage", "*", "RemovePermission"))] * rng.choice((1, 8)),
    },
    "RemovePermission": lambda rng, _: {"QueueUrl": _queue(rng), "Label": _pick(rng, ("l", "m"), _TEXTS)},
    "ListDeadLetterSourceQueues": lambda rng, _: {"QueueUrl": _queue(rng), "MaxResults": rng.choice((1, 0))},
    "StartMessageMoveTask": lambda rng, _: {
        "SourceArn": _pick(rng, ("arn:aws:sqs:r:000000000000:fuzz-dead",), _TEXTS),
        "MaxNumberOfMessagesPerSecond": _pick(rng, (1, 500), (0, 501)),
    },
    "ListMessageMoveTasks": lambda rng, _: {
        "SourceArn": _pick(rng, ("arn:aws:sqs:r:000000000000:fuzz-dead",), _TEXTS),
        "MaxResults": _pick(rng, (1, 10), (11,)),
    },
    "CancelMessageMoveTask": lambda rng, _: {"TaskHandle": rng.choice(_TEXTS)},
    "AdoptTopic": lambda rng, _: {
        "QueueName": _pick(rng, (f"fuzz-{rng.randrange(20)}", f"fuzz-{rng.randrange(20)}.fifo"), _BAD_NAMES),
        "Topic": _pick(rng, ("fuzz", "fuzz-1", "none"), _TEXTS),
        "From": rng.choice(("earliest", "latest", "then")),
    },
    "ExplainMessage": lambda rng, known: {
        "QueueUrl": _queue(rng),
        "MessageId": _pick(rng, known.ids or ("x",), _TEXTS),
    },
    "RewindQueue": lambda rng, _: {
        "QueueUrl": _queue(rng),
        "Timestamp": rng.choice((0, -1, 2**40, 2**63, 2**64, 10**30)),
    },
}
_OWN: Final = frozenset({"AdoptTopic", "ExplainMessage", "RewindQueue"})
_OFTEN: Final = (
    "SendMessage", "SendMessageBatch", "ReceiveMessage", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch", "GetQueueAttributes", "ListQueues", "GetQueueUrl", "ListQueueTags", "ExplainMessage",
)  # fmt: skip
_OFTEN_SHARE: Final = 0.93
"""The others change facts of the cluster, most of them: each costs as much as ten of these."""
_ACTIONS: Final = tuple(name for name in _SHAPES if name != "RewindQueue")
_SELDOM: Final = ("RewindQueue", _PEEK)
_SELDOM_SHARE: Final = 0.004
"""They cost as much as a hundred others."""


def _spoil(rng: random.Random, body: dict[str, Any]) -> None:
    if not body:
        return
    name = rng.choice(list(body))
    match rng.randrange(4):
        case 0:
            del body[name]
        case 1:
            body[rng.choice(("Nonsense", name.lower(), name + " "))] = body[name]
        case _:
            body[name] = rng.choice(_VALUES)


def _as_json(
    rng: random.Random, action: str, body: dict[str, Any], signatures: Signatures | None
) -> SqsRequest:
    data = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode(errors="replace")
    if rng.random() < 0.08:
        data = _mutated(rng, data, _JSON_PIECES)
    kind = rng.choice(("application/x-amz-json-1.0", "application/x-amz-json-1.0", "application/json"))
    family = "Ropewalk" if action in _OWN else "AmazonSQS"
    target = f"{family}.{quote_plus(action, safe='')}"
    headers = {"host": "n", "content-type": kind, "x-amz-target": target}
    return _sent(rng, "POST", "/", "", headers, data, signatures, is_json=True)


def _as_query(
    rng: random.Random, action: str, body: dict[str, Any], signatures: Signatures | None
) -> SqsRequest:
    fields = [("Action", action), ("Version", _pick(rng, ("2012-11-05",), ("", "1")))]
    _flatten(fields, "", body, f"{action}RequestEntry")
    rng.shuffle(fields)
    text = "&".join(
        f"{quote_plus(name, safe='.')}={quote_plus(value, errors='replace')}" for name, value in fields
    )
    data = text.encode()
    if rng.random() < 0.08:
        data = _mutated(rng, data, _FORM_PIECES)
    path = (
        "/" if action in _SEPARATE else rng.choice(("/", "/", "/000000000000/fuzz", "/000000000000/nobody"))
    )
    if rng.random() < 0.2 and len(text) < 4_000:
        return _sent(rng, "GET", path, text, {"host": "n"}, b"", signatures, is_json=False)
    kind = _pick(rng, ("application/x-www-form-urlencoded",), ("text/xml", "application/json", ""))
    return _sent(rng, "POST", path, "", {"host": "n", "content-type": kind}, data, signatures, is_json=False)


def _as_peek(rng: random.Random, signatures: Signatures | None) -> SqsRequest:
    query = f"QueueUrl={quote_plus(_queue(rng))}&ShowInvisible={rng.choice(('true', 'false', '%00'))}"
    return _sent(rng, "GET", "/_aws/sqs/messages", query, {"host": "n"}, b"", signatures, is_json=False)


def _sent(
    rng: random.Random,
    method: str,
    path: str,
    query: str,
    headers: dict[str, str],
    data: bytes,
    signatures: Signatures | None,
    *,
    is_json: bool,
) -> SqsRequest:
    is_forged = False
    if signatures is not None:
        headers, query, is_forged = signatures.sign(rng, method, path, query, headers, data)
    body = data
    if method == "POST" and rng.random() < 0.05:
        headers["transfer-encoding"] = "chunked"
        middle = rng.randrange(len(data) + 1)
        pieces = [piece for piece in (data[:middle], data[middle:]) if piece]
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    elif method == "POST":
        headers["content-length"] = str(len(data))
    lines = [f"{method} {path}{'?' if query else ''}{query} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return SqsRequest("\r\n".join((*lines, "", "")).encode() + body, is_json, is_forged)


_FLAT: Final = {
    "Attributes": "Attribute",
    "AttributeNames": "AttributeName",
    "MessageAttributes": "MessageAttribute",
    "MessageAttributeNames": "MessageAttributeName",
    "TagKeys": "TagKey",
    "Tags": "Tag",
    "tags": "Tag",
    "Actions": "ActionName",
    "AWSAccountIds": "AWSAccountId",
}


def _flatten(fields: list[tuple[str, str]], prefix: str, value: Any, entry: str) -> None:
    """`entry` is what the action calls those of its batch."""
    if isinstance(value, dict):
        for name, each in value.items():
            if prefix.endswith(("Attribute", "Tag")):
                number = len(fields)
                fields.append((f"{prefix}.{number}.{'Key' if prefix == 'Tag' else 'Name'}", str(name)))
                _flatten(fields, f"{prefix}.{number}.Value", each, entry)
            else:
                flat = entry if name == "Entries" else str(_FLAT.get(name, name))
                _flatten(fields, f"{prefix}.{flat}" if prefix else flat, each, entry)
    elif isinstance(value, list):
        for number, each in enumerate(value, 1):
            _flatten(fields, f"{prefix}.{number}", each, entry)
    elif value is not None:
        fields.append((prefix, str(value)))


def _mutated(rng: random.Random, data: bytes, pieces: Sequence[bytes]) -> bytes:
    mutated = bytearray(data or b"x")
    for _ in range(rng.choice((1, 1, 3, 20))):
        position = rng.randrange(len(mutated))
        match rng.randrange(4):
            case 0:
                mutated[position] = rng.randrange(256)
            case 1:
                del mutated[position : position + rng.choice((1, 5, 50))]
                mutated = mutated or bytearray(b"x")
            case 2:
                mutated[position:position] = rng.choice(pieces)
            case _:
                mutated[position:position] = mutated[position : position + 40]
    return bytes(mutated)
