"""The SQS door over an engine in memory: addresses and protocols, keys, peeking, our own actions, and hostile input."""

import asyncio
import json
from base64 import b64encode
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.errors import QueueNotReady
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import World
from ropewalk.sqs.actions import ACTIONS, BY_TARGET
from ropewalk.sqs.authentication import Authentication, Key, KnownKeys
from ropewalk.sqs.desk import DeskRules
from ropewalk.sqs.errors import SqsRefusal
from tests.http.client import Page
from tests.security.test_sigv4 import Signed, sign
from tests.sqs.visits import AUTHORIZATION, Heard, Visit, heard_xml, visiting

JSON = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "words"),
    [
        ("POST", "/", JSON, b"{}", 200, b"QueueUrls"),
        ("POST", "/", JSON, b"", 200, b"QueueUrls"),
        ("POST", "/anywhere", JSON, b"{}", 200, b"QueueUrls"),
        ("POST", "/", {**JSON, "X-Amz-Target": "AmazonSQS.Fly"}, b"{}", 400, b"UnknownOperationException"),
        ("POST", "/", {**JSON, "X-Amz-Target": "Ropewalk.Fly"}, b"{}", 400, b"UnknownOperationException"),
        ("POST", "/", JSON, b"{", 400, b"SerializationException"),
        ("POST", "/", JSON, b"[]", 400, b"SerializationException"),
        ("POST", "/", JSON, b"null", 400, b"SerializationException"),
        ("POST", "/", JSON, b'{"MaxResults": "many"}', 400, b"SerializationException"),
        ("POST", "/", JSON, b'{"MaxResults": 1e400}', 400, b"SerializationException"),
        ("POST", "/", JSON, b"\xff\xfe", 400, b"SerializationException"),
        ("POST", "/", JSON, b"[" * 100_000, 400, b"SerializationException"),
        (
            "POST",
            "/",
            FORM,
            b"Action=ListQueues",
            200,
            b"<QueueUrl>http://node:9324/000000000000/q</QueueUrl>",
        ),
        ("POST", "/", FORM, b"Action=ListQueues&Version=2012-11-05", 200, b"ListQueuesResponse"),
        ("POST", "/", FORM, b"Action=ListQueues&Version=2009-02-01", 400, b"NoSuchVersion"),
        ("POST", "/", FORM, b"Action=Fly", 400, b"InvalidAction"),
        ("POST", "/", FORM, b"Version=2012-11-05", 400, b"MissingParameter"),
        ("POST", "/", FORM, b"Action=ListQueues&MaxResults=many", 400, b"InvalidParameterValue"),
        ("POST", "/", FORM, b"Action=%ff", 400, b"MalformedInput"),
        ("POST", "/", FORM, b"&".join(b"a%d=b" % n for n in range(3000)), 400, b"MalformedInput"),
        ("GET", "/?Action=ListQueues", {}, b"", 200, b"ListQueuesResponse"),
        ("GET", "/000000000000/q?Action=SendMessage&MessageBody=b", {}, b"", 200, b"<MessageId>"),
        ("GET", "/queue/q?Action=GetQueueAttributes&AttributeName.1=All", {}, b"", 200, b"VisibilityTimeout"),
        ("GET", "/000000000000/none?Action=SendMessage&MessageBody=b", {}, b"", 400, b"NonExistentQueue"),
        ("POST", "/000000000000/q", FORM, b"Action=SendMessage&MessageBody=a%26b", 200, b"<MessageId>"),
        (
            "POST",
            "/",
            FORM,
            b"Action=SetQueueAttributes&QueueUrl=q&Attribute.x.Name=a",
            400,
            b"no place in a list",
        ),
        (
            "POST",
            "/",
            FORM,
            b"Action=SetQueueAttributes&QueueUrl=q&Attribute.1.Value=a",
            400,
            b"without a Name",
        ),
        ("POST", "/", FORM, b"Action=GetQueueAttributes&QueueUrl=q&AttributeName=All", 200, b"QueueArn"),
        ("GET", "/", {}, b"", 403, b"MissingAuthenticationToken"),
        ("DELETE", "/", {}, b"", 405, b"takes GET"),
        ("OPTIONS", "*", {}, b"", 405, b"takes GET"),
        ("GET", "/livez", {}, b"", 200, b"ok"),
        ("GET", "/_aws/sqs/messages", {}, b"", 400, b"MissingParameter"),
        ("GET", "/_aws/sqs/messages?QueueUrl=none", {}, b"", 400, b"NonExistentQueue"),
    ],
)
def test_every_address_has_its_answer(
    method: str, path: str, headers: dict[str, str], body: bytes, status: int, words: bytes
) -> None:
    async def story(visit: Visit) -> Page:
        await visit.json("CreateQueue", QueueName="q")
        return await visit.raw(method, path, headers, body)

    page = visiting(story)
    assert (page.status, words in page.body) == (status, True), page


def test_a_queue_is_addressed_as_its_client_addressed_the_door() -> None:
    async def story(visit: Visit) -> list[str]:
        await visit.json("CreateQueue", QueueName="q")
        urls = []
        for headers in ({}, {"X-Forwarded-Proto": "https"}):
            page = await visit.raw("POST", "/", {**JSON, **headers}, b"{}")
            urls += json.loads(page.body)["QueueUrls"]
        return urls

    assert visiting(story) == ["http://node:9324/000000000000/q", "https://node:9324/000000000000/q"]


def test_pages_of_queues_follow_each_other() -> None:
    async def story(visit: Visit) -> list[str]:
        for number in range(7):
            await visit.json("CreateQueue", QueueName=f"q{number}")
        names: list[str] = []
        token: dict[str, Any] = {}
        while True:
            heard = await visit.json("ListQueues", MaxResults=3, **token)
            names += [url.rpartition("/")[2] for url in heard.said["QueueUrls"]]
            if "NextToken" not in heard.said:
                return names
            token = {"NextToken": heard.said["NextToken"]}

    assert visiting(story) == [f"q{number}" for number in range(7)]


@pytest.mark.parametrize("accept", ["application/xml", "application/json"])
def test_a_look_takes_nothing(accept: str) -> None:
    async def look(visit: Visit, query: str = "") -> int:
        page = await visit.raw("GET", f"/_aws/sqs/messages?QueueUrl=q{query}", {"Accept": accept})
        assert page.status == 200
        return page.body.count(b"SQS/BACKDOOR/ACCESS")

    async def story(visit: Visit) -> list[int]:
        await visit.json("CreateQueue", QueueName="q")
        await visit.json(
            "SendMessage",
            QueueUrl="q",
            MessageBody="one",
            MessageAttributes={"a": {"DataType": "String", "StringValue": "b"}},
        )
        await visit.json("SendMessage", QueueUrl="q", MessageBody="two")
        await visit.json("SendMessage", QueueUrl="q", MessageBody="three", DelaySeconds=60)
        seen = [await look(visit)]
        await visit.json("ReceiveMessage", QueueUrl="q")
        seen += [
            await look(visit),
            await look(visit, "&ShowInvisible=true"),
            await look(visit, "&ShowDelayed=true"),
        ]
        heard = await visit.json("ReceiveMessage", QueueUrl="q", AttributeNames=["All"])
        assert heard.said["Messages"][0]["Attributes"]["ApproximateReceiveCount"] == "1"
        page = await visit.raw("GET", "/_aws/sqs/messages/eu-west-1/000000000000/q", {"Accept": accept})
        return [*seen, page.status]

    assert visiting(story) == [2, 1, 2, 2, 200]


@pytest.mark.parametrize(
    ("record", "body", "attributes"),
    [
        (
            Record(value=b"text", headers=(("h", b"v"),)),
            "text",
            {"h": {"StringValue": "v", "DataType": "String"}},
        ),
        (
            Record(value=b"\xff\x00", headers=(("h", b"\xff"),)),
            b64encode(b"\xff\x00").decode(),
            {
                "h": {"BinaryValue": "/w==", "DataType": "Binary"},
                "ropewalk.encoding": {"StringValue": "base64", "DataType": "String"},
            },
        ),
        (
            Record(value=b"\x01"),
            "AQ==",
            {"ropewalk.encoding": {"StringValue": "base64", "DataType": "String"}},
        ),
        (Record(value=None), "", None),
        (Record(value=b"x", headers=(("no name", b"v"),)), "x", None),
    ],
)
def test_records_of_kafka_producers_are_messages(record: Record, body: str, attributes: object) -> None:
    async def story(visit: Visit) -> Heard:
        await visit.json("CreateQueue", QueueName="q")
        visit.engine.write("q", record)
        return await visit.json("ReceiveMessage", QueueUrl="q", MessageAttributeNames=["All"])

    (message,) = visiting(story).said["Messages"]
    assert (message["Body"], message.get("MessageAttributes")) == (body, attributes)


def test_a_body_that_is_not_text_says_so_to_those_who_asked_for_no_attributes() -> None:
    async def story(visit: Visit) -> Heard:
        await visit.json("CreateQueue", QueueName="q")
        visit.engine.write("q", Record(value=b"\xff", headers=(("h", b"v"),)))
        return await visit.json("ReceiveMessage", QueueUrl="q")

    (message,) = visiting(story).said["Messages"]
    assert message["MessageAttributes"].keys() == {"ropewalk.encoding"}


def test_a_client_that_leaves_while_it_waits_takes_nothing() -> None:
    async def story(visit: Visit) -> Heard:
        await visit.json("CreateQueue", QueueName="q")
        line = await visit.new_line()
        body = json.dumps({"QueueUrl": "q", "WaitTimeSeconds": 20}).encode()
        head = f"POST / HTTP/1.1\r\nHost: n\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: {len(body)}\r\n\r\n"
        line.send(head.encode() + body)
        await asyncio.sleep(5)
        line.transport.abort()
        await asyncio.sleep(1)
        await visit.json("SendMessage", QueueUrl="q", MessageBody="b")
        return await visit.json("ReceiveMessage", QueueUrl="q")

    assert visiting(story).said["Messages"][0]["Body"] == "b"


@pytest.mark.parametrize("protocol", ["json", "query"])
def test_a_queue_that_is_not_ready_is_asked_again(protocol: str) -> None:
    async def story(visit: Visit) -> Heard:
        await visit.json("CreateQueue", QueueName="q")
        visit.engine.unavailable = QueueNotReady("its state is being read")
        return await visit.call(protocol, "SendMessage", QueueUrl="q", MessageBody="b")

    heard = visiting(story)
    assert (heard.status, heard.code, heard.text) == (503, "ServiceUnavailable", "its state is being read")


@pytest.mark.parametrize("protocol", ["json", "query"])
def test_too_many_in_flight_are_over_the_limit(protocol: str) -> None:
    async def story(visit: Visit) -> Heard:
        await visit.json("CreateQueue", QueueName="q")
        for _ in range(2):
            await visit.json("SendMessage", QueueUrl="q", MessageBody="b")
        await visit.json("ReceiveMessage", QueueUrl="q")
        return await visit.call(protocol, "ReceiveMessage", QueueUrl="q")

    heard = visiting(story, in_flight_max=1)
    assert (heard.status, heard.code) == (403, "OverLimit")


def test_our_own_actions() -> None:
    async def own(visit: Visit, action: str, **parameters: object) -> Heard:
        return await visit.target(f"Ropewalk.{action}", json.dumps(parameters).encode())

    async def story(visit: Visit) -> None:
        heard = await own(visit, "AdoptTopic", QueueName="orders.fifo", Topic="orders", From="latest")
        assert heard.said == {"QueueUrl": visit.url("orders.fifo")}
        heard = await own(visit, "AdoptTopic", QueueName="x", Topic="none")
        assert (heard.status, heard.text) == (400, "there is no topic none")
        heard = await own(visit, "AdoptTopic", QueueName="x", Topic="compacted")
        assert heard.code == "InvalidParameterValue"
        heard = await own(visit, "AdoptTopic", QueueName="x", Topic="orders", From="here")
        assert heard.text == "Value here for parameter From is invalid. Reason: Must be earliest or latest."
        await visit.json("CreateQueue", QueueName="q")
        sent = await visit.json("SendMessage", QueueUrl="q", MessageBody="b", MessageGroupId="g")
        found = await own(visit, "ExplainMessage", QueueUrl="q", MessageId=sent.said["MessageId"])
        assert (found.said["State"], found.said["MessageGroupId"]) == ("visible", "g")
        received = await visit.json("ReceiveMessage", QueueUrl="q")
        found = await own(visit, "ExplainMessage", QueueUrl="q", MessageId=sent.said["MessageId"])
        assert found.said["State"] == "in flight"
        assert found.said["VisibleTimestamp"] - found.said["FirstReceiveTimestamp"] == 30_000
        handle = received.said["Messages"][0]["ReceiptHandle"]
        await visit.json("DeleteMessage", QueueUrl="q", ReceiptHandle=handle)
        found = await own(visit, "ExplainMessage", QueueUrl="q", MessageId=sent.said["MessageId"])
        assert found.said["State"] == "settled"
        assert (await own(visit, "RewindQueue", QueueUrl="q", Timestamp=0)).status == 200
        assert (await visit.json("ReceiveMessage", QueueUrl="q")).said["Messages"]
        assert (await own(visit, "RewindQueue", QueueUrl="q")).code == "MissingParameter"
        for moment in (-1, 2**63, 10**30):
            assert (await own(visit, "RewindQueue", QueueUrl="q", Timestamp=moment)).status == 400
        assert (await own(visit, "ExplainMessage", QueueUrl="q", MessageId="x")).status == 404

    visiting(story, topics=("orders", "compacted"))


# Keys


def _keys(world: World) -> Authentication:
    """The world begins when botocore's signature of this test was made."""
    keys = {
        "AKIDEXAMPLE": Key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", is_admin=True),
        "AKIDPLAIN": Key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    }
    return KnownKeys(_Now(SIGNED.at_ms), keys)


class _Now:
    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return 0.0


SIGNED = sign(
    "POST",
    "http://node:9324/",
    {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"},
    b"{}",
)
PRESIGNED = sign("GET", "http://node:9324/?Action=ListQueues", body=b"", expires_s=60)
SIGNED_FORM = sign("POST", "http://node:9324/", FORM, b"Action=ListQueues")
WRONG = sign("POST", "http://node:9324/", FORM, b"Action=ListQueues", service="s3")


def _sent(signed: Signed, **changes: str) -> tuple[str, str, dict[str, str], bytes]:
    method, target, headers, body, _ = signed
    kept = {name: value for name, value in headers.items() if name not in ("host", "content-length")}
    return method, target, {**kept, **changes}, body


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (_sent(SIGNED), 200, b"{}"),
        (_sent(PRESIGNED), 200, b"ListQueuesResponse"),
        (_sent(SIGNED_FORM), 200, b"ListQueuesResponse"),
        ((*_sent(SIGNED)[:3], b'{"MaxResults":1}'), 403, b"InvalidSignatureException"),
        ((*_sent(SIGNED_FORM)[:3], b"Action=ListQueues&x=y"), 403, b"<Code>SignatureDoesNotMatch</Code>"),
        (
            _sent(
                SIGNED,
                authorization=AUTHORIZATION.replace("AKIDEXAMPLE", "AKIDNOBODY").replace("20270115", "2"),
            ),
            403,
            b"Date in",
        ),
        (_sent(SIGNED, authorization=""), 400, b"IncompleteSignatureException"),
        (_sent(WRONG), 403, b"scoped to correct service"),
        (("POST", "/", JSON, b"{}"), 403, b"MissingAuthenticationTokenException"),
        (("POST", "/", FORM, b"Action=ListQueues"), 403, b"<Code>MissingAuthenticationToken</Code>"),
        (("GET", "/?Action=ListQueues", {}, b""), 403, b"MissingAuthenticationToken"),
        (("GET", "/_aws/sqs/messages?QueueUrl=q", {}, b""), 403, b"MissingAuthenticationToken"),
        (("GET", "/livez", {}, b""), 200, b"ok"),
    ],
)
def test_with_keys_only_who_signs_is_served(
    sent: tuple[str, str, dict[str, str], bytes], status: int, words: bytes
) -> None:
    async def story(visit: Visit) -> Page:
        return await visit.raw(*sent)

    page = visiting(story, authentication=_keys)
    assert (page.status, words in page.body) == (status, True), page


def test_an_unknown_key_is_told_so() -> None:
    async def story(visit: Visit) -> list[Page]:
        pages = []
        for signed in (SIGNED, SIGNED_FORM):
            authorization = signed.headers["authorization"].replace("AKIDEXAMPLE", "AKIDNOBODY")
            pages.append(await visit.raw(*_sent(signed, authorization=authorization)))
        return pages

    in_json, in_xml = visiting(story, authentication=_keys)
    assert in_json.status == in_xml.status == 403
    assert json.loads(in_json.body) == {
        "__type": "com.amazon.coral.service#UnrecognizedClientException",
        "message": "The security token included in the request is invalid.",
    }
    assert in_json.headers["x-amzn-query-error"] == "InvalidClientTokenId;Sender"
    heard = heard_xml(in_xml)
    assert (heard.code, heard.text) == (
        "InvalidClientTokenId",
        "The security token included in the request is invalid.",
    )


def sign_as(key: str, headers: dict[str, str], body: bytes) -> Signed:
    request = AWSRequest(method="POST", url="http://node:9324/", headers=headers, data=body)
    SigV4Auth(Credentials(key, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), "sqs", "eu-west-1").add_auth(
        request
    )
    return Signed("POST", "/", {name.lower(): value for name, value in request.headers.items()}, body, 0)


ADOPTS = [
    sign_as(key, {"X-Amz-Target": "Ropewalk.AdoptTopic"}, b'{"QueueName":"q","Topic":"orders"}')
    for key in ("AKIDEXAMPLE", "AKIDPLAIN")
]
"""Signed when `SIGNED` is, whose time the door's clock shows: a signature is good for fifteen minutes."""


def test_our_own_actions_take_a_key_that_may_administrate() -> None:
    async def story(visit: Visit) -> list[int]:
        await visit.raw(*_sent(SIGNED))
        return [(await visit.raw(*_sent(signed))).status for signed in ADOPTS]

    assert visiting(story, authentication=_keys, topics=("orders",)) == [200, 403]


REMOVALS = {
    action: [
        sign_as(key, {"X-Amz-Target": f"AmazonSQS.{action}"}, b'{"QueueUrl":"q"}')
        for key in ("AKIDPLAIN", "AKIDEXAMPLE")
    ]
    for action in ("PurgeQueue", "DeleteQueue")
}


@pytest.mark.parametrize("action", sorted(REMOVALS))
@pytest.mark.parametrize(("by_admin", "statuses"), [(False, [200]), (True, [403, 200])])
def test_who_may_delete_and_purge_is_a_rule_of_the_cluster(
    action: str, by_admin: bool, statuses: list[int]
) -> None:
    async def story(visit: Visit) -> list[int]:
        await visit.raw(*_sent(ADOPTS[0]))
        return [(await visit.raw(*_sent(signed))).status for signed in REMOVALS[action][: len(statuses)]]

    rules = DeskRules("000000000000", deletes_need_admin=by_admin)
    assert visiting(story, authentication=_keys, topics=("orders",), rules=rules) == statuses


# Hostile input

SCRAPS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=12), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = sorted({name for action in ACTIONS for name in action.request.__struct_encode_fields__})


@given(
    st.sampled_from(sorted(BY_TARGET)),
    st.one_of(
        st.binary(max_size=80),
        st.dictionaries(st.sampled_from(FIELDS), SCRAPS, max_size=5).map(
            lambda value: json.dumps(value).encode()
        ),
    ),
)
@settings(max_examples=500, deadline=None)
def test_no_body_does_more_to_the_json_decoder_than_be_refused(target: str, body: bytes) -> None:
    with suppress(SqsRefusal):
        BY_TARGET[target].decode_json(body)


NAMES = st.lists(
    st.one_of(
        st.sampled_from(
            [*FIELDS, "Attribute", "Tag", "Name", "Value", "SendMessageBatchRequestEntry", "Key"]
        ),
        st.integers(-1, 12).map(str),
        st.text(max_size=6),
    ),
    min_size=1,
    max_size=8,
).map(".".join)


@given(st.sampled_from(ACTIONS), st.dictionaries(NAMES, st.text(max_size=20), max_size=8))
@settings(max_examples=500, deadline=None)
def test_no_form_does_more_to_the_query_decoder_than_be_refused(
    action: object, fields: dict[str, str]
) -> None:
    with suppress(SqsRefusal):
        action.decode_query(fields)  # type: ignore[attr-defined]  # an Action


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["json", "form", "get"]),
            st.sampled_from(ACTIONS),
            st.dictionaries(st.sampled_from(FIELDS), SCRAPS, max_size=4),
            st.binary(max_size=20),
        ),
        max_size=20,
    )
)
@settings(max_examples=40, deadline=None)
def test_whatever_is_asked_is_answered_by_what_sqs_would_call_an_answer(
    requests: list[tuple[str, object, dict[str, object], bytes]],
) -> None:
    async def story(visit: Visit) -> list[Page]:
        await visit.json("CreateQueue", QueueName="q")
        pages = []
        for kind, action, parameters, scrap in requests:
            name = action.name  # type: ignore[attr-defined]  # an Action
            asked = {"QueueUrl": "q", **parameters, "WaitTimeSeconds": 0}
            if kind == "json":
                target = {"X-Amz-Target": f"AmazonSQS.{name}"}
                pages.append(await visit.raw("POST", "/", target, json.dumps(asked).encode() + scrap))
            elif kind == "form":
                body = urlencode(
                    {"Action": name, **{key: str(value) for key, value in asked.items()}}
                ).encode()
                pages.append(await visit.raw("POST", "/", FORM, body + b"&" + scrap))
            else:
                pages.append(await visit.raw("GET", f"/?Action={name}&QueueUrl=q&x={quote(scrap.hex())}", {}))
        return pages

    for page in visiting(story):
        assert page.status in (200, 400, 403, 404), page
        assert page.headers["x-amzn-requestid"]
