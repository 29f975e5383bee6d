"""Rights at the SQS door: every action in both protocols without each right that it needs, and what is hidden, revoked or easily got wrong.

The cases are generated from what `sqs/actions.py` says that an action needs.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import pytest
from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.broker.access import Access
from ropewalk.http1.message import Request
from ropewalk.metadata.image import Image
from ropewalk.metadata.queues import Queue
from ropewalk.metadata.records import AclAdded, AclRemoved
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.security.access import (
    CLUSTER_NAME,
    Asker,
    Operation,
    Pattern,
    Permission,
    Policy,
    ResourceType,
    Rule,
)
from ropewalk.security.identity import BY_SIGNATURE
from ropewalk.security.identity import Identity as Owner
from ropewalk.sqs.actions import ACTIONS, OWN_ACTIONS, Action
from ropewalk.sqs.authentication import Identity, Key, KnownKeys
from ropewalk.sqs.credentials import parse_keys
from ropewalk.sqs.desk import DeskRules
from ropewalk.sqs.needs import Creation, Listing, OnQueue
from tests.http.client import Line, Page
from tests.kafka.door import Door, at_the_door
from tests.kafka.rights_world import RightsWorld, rule
from tests.sqs.test_sqs_keys import KEY, SECRET, SetClock, signed
from tests.sqs.visits import ACCOUNT, AUTHORIZATION, RULES, Heard, Visit, visiting

T = TypeVar("T")

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE, CREATE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.CREATE
DELETE, ALTER, ALTER_CONFIGS = Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS
DENY = Permission.DENY
ASKED, SOURCE, TARGET, SECRET_QUEUE = "asked-queue", "asked-source", "asked-target", "secret-queue"
NEW: Final = "asked-new"
ADMIN_KEY: Final = "AKADMIN"
"""Whoever signs with it is a super user of the tests' world; all others are alice."""
ADMIN_SIGNS: Final = AUTHORIZATION.replace("AKIDEXAMPLE", ADMIN_KEY)


class Signed:
    """Signatures are believed, and whose keys they are."""

    def identify(self, request: Request) -> Identity:
        is_admin = ADMIN_KEY in request.headers.get("authorization", "")
        owner = Owner("User:admin" if is_admin else "User:alice", method=BY_SIGNATURE)
        return Identity("AKIDEXAMPLE", "eu-west-1", False, owner)


class Handles(Struct, frozen=True):
    """What requests need that only answers tell."""

    receipt: str
    message_id: str
    task: str


class RightsVisit:
    """A door where rules decide, with queues behind it that are asked for and one that nobody asks for."""

    def __init__(self, visit: Visit, image: Image, access: Access) -> None:
        self.visit, self.image, self.access = visit, image, access

    def rule_by(self, rules: Iterable[Rule]) -> None:
        """These and no others."""
        for each in list(self.image.acls):
            self.image.acls.remove(each)
        self.access.follow((_REMOVED,))
        self.allow(*rules)

    def allow(self, *rules: Rule) -> None:
        for each in rules:
            self.image.acls.add(each)
        self.access.follow((_ADDED,))

    async def as_admin(self, action: str, **parameters: Any) -> dict[str, Any]:
        headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Authorization": ADMIN_SIGNS}
        page = await self.visit.raw("POST", "/", headers, json.dumps(parameters).encode())
        assert page.status == 200, page
        said: dict[str, Any] = json.loads(page.body or b"{}")
        return said

    async def ask(self, protocol: str, action: str, **parameters: Any) -> Heard:
        if protocol == "own":
            return await self.visit.target(f"Ropewalk.{action}", json.dumps(parameters).encode())
        return await self.visit.call(protocol, action, **parameters)

    async def plant(self) -> Handles:
        """`asked-queue` has the dead letters of two others, one of them secret."""
        await self.as_admin("CreateQueue", QueueName=ASKED, tags={"a": "b"})
        redrive = json.dumps({"deadLetterTargetArn": arn(ASKED), "maxReceiveCount": 5})
        for name in (SOURCE, SECRET_QUEUE):
            await self.as_admin("CreateQueue", QueueName=name, Attributes={"RedrivePolicy": redrive})
        await self.as_admin("CreateQueue", QueueName=TARGET)
        for name in (ASKED, SECRET_QUEUE):
            await self.as_admin("SendMessage", QueueUrl=name, MessageBody=f"of {name}")
        await self.as_admin(
            "AddPermission", QueueUrl=ASKED, Label="l", AWSAccountIds=[ACCOUNT], Actions=["*"]
        )
        (message,) = (await self.as_admin("ReceiveMessage", QueueUrl=ASKED))["Messages"]
        started = await self.as_admin(
            "StartMessageMoveTask",
            SourceArn=arn(ASKED),
            DestinationArn=arn(SECRET_QUEUE),
            MaxNumberOfMessagesPerSecond=1,
        )
        return Handles(message["ReceiptHandle"], message["MessageId"], started["TaskHandle"])

    @property
    def state(self) -> str:
        engine = self.visit.engine
        logs = {key: (log.messages, log.purged_at_ms) for key, log in engine._logs.items()}
        return repr((engine._queues, logs, engine.moves))


_ADDED: Final = AclAdded(TOPIC, "x", Pattern.LITERAL, "User:x", "*", READ, Permission.ALLOW)
_REMOVED: Final = AclRemoved(TOPIC, "x", Pattern.LITERAL, "User:x", "*", READ, Permission.ALLOW)


def arn(name: str) -> str:
    return f"arn:aws:sqs:eu-west-1:{ACCOUNT}:{name}"


def where_rules_decide(
    story: Callable[[RightsVisit], Awaitable[T]], *, rules: DeskRules = RULES, topics: tuple[str, ...] = ()
) -> T:
    image = Image()
    access = Access(image, Policy(super_users=frozenset({"User:admin"})))

    async def begin(visit: Visit) -> T:
        return await story(RightsVisit(visit, image, access))

    return visiting(
        begin, authentication=lambda _: Signed(), access=lambda _: access, rules=rules, topics=topics
    )


_BATCH = {"Entries": [{"Id": "e", "MessageBody": "b"}]}
PARAMETERS: Final[dict[str, Callable[[str, Handles], dict[str, Any]]]] = {
    "AddPermission": lambda name, _: {
        "QueueUrl": name,
        "Label": "m",
        "AWSAccountIds": [ACCOUNT],
        "Actions": ["SendMessage"],
    },
    "CancelMessageMoveTask": lambda name, handles: {"TaskHandle": _of(name, handles.task)},
    "ChangeMessageVisibility": lambda name, handles: {
        "QueueUrl": name,
        "ReceiptHandle": handles.receipt,
        "VisibilityTimeout": 60,
    },
    "ChangeMessageVisibilityBatch": lambda name, handles: {
        "QueueUrl": name,
        "Entries": [{"Id": "e", "ReceiptHandle": handles.receipt, "VisibilityTimeout": 60}],
    },
    "CreateQueue": lambda name, _: {"QueueName": name},
    "DeleteMessage": lambda name, handles: {"QueueUrl": name, "ReceiptHandle": handles.receipt},
    "DeleteMessageBatch": lambda name, handles: {
        "QueueUrl": name,
        "Entries": [{"Id": "e", "ReceiptHandle": handles.receipt}],
    },
    "DeleteQueue": lambda name, _: {"QueueUrl": name},
    "GetQueueAttributes": lambda name, _: {"QueueUrl": name, "AttributeNames": ["All"]},
    "GetQueueUrl": lambda name, _: {"QueueName": name},
    "ListDeadLetterSourceQueues": lambda name, _: {"QueueUrl": name},
    "ListMessageMoveTasks": lambda name, _: {"SourceArn": arn(name)},
    "ListQueueTags": lambda name, _: {"QueueUrl": name},
    "ListQueues": lambda _name, _: {},
    "PurgeQueue": lambda name, _: {"QueueUrl": name},
    "ReceiveMessage": lambda name, _: {"QueueUrl": name},
    "RemovePermission": lambda name, _: {"QueueUrl": name, "Label": "l"},
    "SendMessage": lambda name, _: {"QueueUrl": name, "MessageBody": "b"},
    "SendMessageBatch": lambda name, _: {"QueueUrl": name, **_BATCH},
    "SetQueueAttributes": lambda name, _: {
        "QueueUrl": name,
        "Attributes": {"DelaySeconds": "1", "Policy": "{}"},
    },
    "StartMessageMoveTask": lambda name, _: {"SourceArn": arn(name)},
    "TagQueue": lambda name, _: {"QueueUrl": name, "Tags": {"c": "d"}},
    "UntagQueue": lambda name, _: {"QueueUrl": name, "TagKeys": ["a"]},
    "AdoptTopic": lambda name, _: {"QueueName": name, "Topic": "adopted-topic"},
    "ExplainMessage": lambda name, handles: {"QueueUrl": name, "MessageId": handles.message_id},
    "RewindQueue": lambda name, _: {"QueueUrl": name, "Timestamp": 0},
}
"""By action: a request about one queue that needs all the rights of the action's entry."""


def _of(name: str, handle: str) -> str:
    """The handle of the same task of another queue."""
    said = json.loads(b64decode(handle))
    return b64encode(json.dumps({**said, "sourceArn": arn(name)}).encode()).decode()


def needed(action: Action, world: RightsVisit) -> list[Rule]:
    """A rule for each right, as the entry has them for the request above."""
    needs, rules = action.needs, list[Rule]()
    queue: Queue | None = None
    match needs:
        case OnQueue(rights=rights):
            queue = world.visit.engine.get(ASKED)
            names = {TOPIC: ASKED, GROUP: f"sqs.{ASKED}"}
            rules = [rule(each.resource_type, names[each.resource_type], each.operation) for each in rights]
        case Creation():
            rules = [rule(TOPIC, NEW, CREATE)]
        case Listing():
            return []
    if needs.besides is not None:
        name = NEW if isinstance(needs, Creation) else ASKED
        asked = action.decode_json(json.dumps(PARAMETERS[action.name](name, Handles("", "", _TASK))).encode())
        for operation, topic in needs.besides(asked, queue, world.visit.engine):
            rules.append(rule(TOPIC, topic, operation))
    return rules


_TASK: Final = "e30="


def denying(each: Rule) -> Rule:
    return rule(each.resource_type, each.name, each.operation, permission=DENY)


def refused_cases(action: Action, world: RightsVisit) -> Iterator[tuple[str, list[Rule]]]:
    """Where more than to describe the queue is needed, all of them may describe it."""
    rules = needed(action, world)
    if not rules:
        return
    seeing = [] if rules[0].operation is DESCRIBE else [rule(TOPIC, ASKED, DESCRIBE)]
    yield "only seen", seeing
    yield "of somebody else", [*seeing, *[_of_bob(each) for each in rules]]
    for each in rules:
        said = f"{each.operation.name} {each.resource_type.name} {each.name}"
        yield f"without {said}", [*seeing, *[other for other in rules if other != each]]
        yield f"denied {said}", [*seeing, *rules, denying(each)]
        everybody = rule(each.resource_type, "*", Operation.ALL, principal="User:*", permission=DENY)
        yield f"everybody denied {said}", [*seeing, *rules, everybody]


def _of_bob(each: Rule) -> Rule:
    return rule(each.resource_type, each.name, each.operation, principal="User:bob")


WAYS: Final = [
    *[(each, protocol) for each in ACTIONS for protocol in ("json", "query")],
    *[(each, "own") for each in OWN_ACTIONS],
]
every_way = pytest.mark.parametrize(
    ("action", "protocol"), [pytest.param(*each, id=f"{each[0].name}-{each[1]}") for each in WAYS]
)


@every_way
def test_without_a_right_it_is_denied_and_with_all_it_is_not(action: Action, protocol: str) -> None:
    async def story(world: RightsVisit) -> None:
        handles = await world.plant()
        name = NEW if isinstance(action.needs, Creation) else ASKED
        parameters = PARAMETERS[action.name](name, handles)
        before = world.state
        for case, rules in refused_cases(action, world):
            world.rule_by(rules)
            heard = await world.ask(protocol, action.name, **parameters)
            hides = not isinstance(action.needs, Creation) and _hides(world)
            expected = (400, "AWS.SimpleQueueService.NonExistentQueue") if hides else (403, "AccessDenied")
            if hides and action.name.endswith(("MoveTask", "MoveTasks")):
                expected = (404, "ResourceNotFoundException")
            assert (heard.status, heard.code) == expected, (case, heard)
            assert b"secret" not in heard.body, case
            assert world.state == before, case
        world.rule_by([*needed(action, world), rule(TOPIC, ASKED, DESCRIBE)])
        heard = await world.ask(protocol, action.name, **parameters)
        assert heard.code not in ("AccessDenied", "AWS.SimpleQueueService.NonExistentQueue"), heard
        assert b"secret" not in heard.body

    where_rules_decide(story, topics=("adopted-topic",))


def _hides(world: RightsVisit) -> bool:
    """Whether the queue that is asked for is not to be seen: where even to describe it is denied."""
    return not world.access.allows(Asker(("User:alice",), "nowhere"), DESCRIBE, TOPIC, ASKED)


@every_way
def test_a_queue_that_may_not_be_described_cannot_be_told_from_one_that_is_not_there(
    action: Action, protocol: str
) -> None:
    async def story(world: RightsVisit) -> None:
        handles = await world.plant()
        world.rule_by([rule(TOPIC, SOURCE, Operation.ALL), rule(GROUP, "*", Operation.ALL)])
        before = world.state
        there, absent = [
            await world.ask(protocol, action.name, **PARAMETERS[action.name](name, handles))
            for name in (ASKED, "other-queue")
        ]
        if not isinstance(action.needs, Listing):
            assert there.status >= 400
        told = [(heard.status, heard.code, heard.text) for heard in (there, absent)]
        assert told[0] == (told[1][0], told[1][1], told[1][2].replace("other-queue", ASKED))
        for heard in (there, absent):
            assert b"secret" not in heard.body
        assert world.state == before

    where_rules_decide(story, topics=("adopted-topic",))


def test_every_action_has_a_request_and_the_matrix_is_as_large_as_it_is_said_to_be() -> None:
    assert PARAMETERS.keys() == {each.name for each in (*ACTIONS, *OWN_ACTIONS)}

    async def story(world: RightsVisit) -> int:
        await world.plant()
        return sum(len(list(refused_cases(action, world))) + 3 for action, _ in WAYS)

    assert where_rules_decide(story) >= 400


_OF_THE_QUEUE: Final = {
    "SendMessage": "WRITE",
    "SendMessageBatch": "WRITE",
    "ReceiveMessage": "READ, READ group",
    "DeleteMessage": "READ, READ group",
    "DeleteMessageBatch": "READ, READ group",
    "ChangeMessageVisibility": "READ, READ group",
    "ChangeMessageVisibilityBatch": "READ, READ group",
    "DeleteQueue": "DELETE",
    "PurgeQueue": "DELETE",
    "GetQueueAttributes": "DESCRIBE",
    "GetQueueUrl": "DESCRIBE",
    "ListDeadLetterSourceQueues": "DESCRIBE",
    "ListMessageMoveTasks": "DESCRIBE",
    "ListQueueTags": "DESCRIBE",
    "SetQueueAttributes": "ALTER_CONFIGS",
    "TagQueue": "ALTER_CONFIGS",
    "UntagQueue": "ALTER_CONFIGS",
    "StartMessageMoveTask": "READ, DELETE",
    "CancelMessageMoveTask": "READ, DELETE",
    "AddPermission": "ALTER",
    "RemovePermission": "ALTER",
    "ExplainMessage": "READ",
    "RewindQueue": "ALTER",
}


def test_what_actions_need_is_what_aws_and_kafka_would_have_them_need() -> None:
    """By a table written by hand: the matrix asks for what the entries say."""
    told = {
        each.name: ", ".join(
            f"{right.operation.name}{' group' if right.resource_type is GROUP else ''}"
            for right in each.needs.rights
        )
        for each in (*ACTIONS, *OWN_ACTIONS)
        if isinstance(each.needs, OnQueue)
    }
    assert told == _OF_THE_QUEUE
    kinds = {each.name: type(each.needs) for each in (*ACTIONS, *OWN_ACTIONS) if each.name not in told}
    assert kinds == {"CreateQueue": Creation, "AdoptTopic": Creation, "ListQueues": Listing}
    deletions = {each.name for each in ACTIONS if isinstance(each.needs, OnQueue) and each.needs.is_deletion}
    assert deletions == {"DeleteQueue", "PurgeQueue"}


def test_a_denial_is_told_in_the_words_of_aws() -> None:
    async def story(world: RightsVisit) -> list[Heard]:
        await world.plant()
        world.rule_by([rule(TOPIC, ASKED, READ)])
        return [
            await world.ask(protocol, "SendMessage", QueueUrl=ASKED, MessageBody="b")
            for protocol in ("json", "query")
        ]

    for heard in where_rules_decide(story):
        assert heard.text == (
            f"User: arn:aws:iam::{ACCOUNT}:user/alice is not authorized to perform: sqs:sendmessage on resource: {arn(ASKED)}"
        )


def test_lists_have_what_may_be_described_and_nothing_else() -> None:
    async def story(world: RightsVisit) -> list[object]:
        await world.plant()
        seen: list[object] = []
        for rules in ([], [rule(TOPIC, ASKED, DESCRIBE), rule(TOPIC, SOURCE, READ)]):
            world.rule_by(rules)
            for protocol in ("json", "query"):
                listed = await world.ask(protocol, "ListQueues")
                seen.append([url.rpartition("/")[2] for url in listed.said.get("QueueUrls", [])])
        sources = await world.ask("json", "ListDeadLetterSourceQueues", QueueUrl=ASKED)
        seen.append([url.rpartition("/")[2] for url in sources.said["queueUrls"]])
        (task,) = (await world.ask("json", "ListMessageMoveTasks", SourceArn=arn(ASKED))).said["Results"]
        seen.append(task.get("DestinationArn"))
        world.allow(rule(TOPIC, SECRET_QUEUE, DESCRIBE))
        (task,) = (await world.ask("json", "ListMessageMoveTasks", SourceArn=arn(ASKED))).said["Results"]
        seen.append(task.get("DestinationArn"))
        return seen

    mine = [ASKED, SOURCE]
    assert where_rules_decide(story) == [[], [], mine, mine, [SOURCE], None, arn(SECRET_QUEUE)]


def test_pages_of_queues_that_may_be_described_are_full() -> None:
    async def story(world: RightsVisit) -> list[list[str]]:
        for number in range(6):
            await world.as_admin("CreateQueue", QueueName=f"q{number}")
        world.rule_by([rule(TOPIC, f"q{number}", DESCRIBE) for number in (0, 2, 3, 5)])
        pages, token = [], dict[str, str]()
        while True:
            said = (await world.ask("json", "ListQueues", MaxResults=2, **token)).said
            pages.append([url.rpartition("/")[2] for url in said["QueueUrls"]])
            if "NextToken" not in said:
                return pages
            token = {"NextToken": said["NextToken"]}

    assert where_rules_decide(story) == [["q0", "q2"], ["q3", "q5"]]


@pytest.mark.parametrize("way", ["CreateQueue", "SetQueueAttributes", "AdoptTopic", "StartMessageMoveTask"])
def test_messages_go_only_where_their_sender_may_write(way: str) -> None:
    """A dead-letter queue that may not be described is not there, and one that may not be written to is refused."""

    async def story(world: RightsVisit) -> list[tuple[int, str]]:
        await world.plant()
        await world.as_admin("CreateQueue", QueueName="elsewhere")
        policy = json.dumps({"deadLetterTargetArn": arn("elsewhere"), "maxReceiveCount": "3"})
        requests: dict[str, dict[str, Any]] = {
            "CreateQueue": {"QueueName": NEW, "Attributes": {" RedrivePolicy": policy}},
            "SetQueueAttributes": {"QueueUrl": TARGET, "Attributes": {"RedrivePolicy": policy}},
            "AdoptTopic": {"QueueName": NEW, "Topic": "adopted", "Attributes": {"RedrivePolicy": policy}},
            "StartMessageMoveTask": {"SourceArn": arn(ASKED), "DestinationArn": arn("elsewhere")},
        }
        everything = [
            rule(TOPIC, name, Operation.ALL) for name in (ASKED, TARGET, NEW, "adopted", SOURCE, SECRET_QUEUE)
        ]
        task = (await world.as_admin("ListMessageMoveTasks", SourceArn=arn(ASKED)))["Results"][0]
        await world.as_admin("CancelMessageMoveTask", TaskHandle=task["TaskHandle"])
        told = []
        for extra in ([], [rule(TOPIC, "elsewhere", READ)], [rule(TOPIC, "elsewhere", WRITE)]):
            world.rule_by([*everything, *extra])
            protocol = "own" if way == "AdoptTopic" else "json"
            heard = await world.ask(protocol, way, **requests[way])
            told.append((heard.status, heard.code))
        return told

    hidden, denied, allowed = where_rules_decide(story, topics=("adopted",))
    assert hidden == (
        (404, "ResourceNotFoundException")
        if way == "StartMessageMoveTask"
        else (400, "InvalidParameterValue")
    )
    assert denied == (403, "AccessDenied")
    assert allowed == (200, "")


def test_a_receive_that_waits_is_denied_when_the_right_is_revoked() -> None:
    async def story(world: RightsVisit) -> tuple[Heard, float, list[object]]:
        await world.as_admin("CreateQueue", QueueName=ASKED)
        world.rule_by([rule(TOPIC, ASKED, READ), rule(GROUP, f"sqs.{ASKED}", READ)])
        begun_s = world.visit.world.now_s
        waiting = asyncio.ensure_future(
            world.ask("json", "ReceiveMessage", QueueUrl=ASKED, WaitTimeSeconds=20)
        )
        await asyncio.sleep(3)
        world.allow(rule(TOPIC, "other", READ))
        await asyncio.sleep(3)
        assert not waiting.done(), "a rule about something else ends no wait"
        world.rule_by([rule(TOPIC, ASKED, READ)])
        heard = await waiting
        took_s = world.visit.world.now_s - begun_s
        line = await world.visit.new_line()
        headers = {"X-Amz-Target": "AmazonSQS.SendMessage", "Authorization": ADMIN_SIGNS}
        body = json.dumps({"QueueUrl": ASKED, "MessageBody": "b"}).encode()
        assert (await world.visit.raw("POST", "/", headers, body, line)).status == 200
        world.allow(rule(GROUP, f"sqs.{ASKED}", READ))
        later = await world.ask("json", "ReceiveMessage", QueueUrl=ASKED, AttributeNames=["All"])
        counts = [each["Attributes"]["ApproximateReceiveCount"] for each in later.said["Messages"]]
        return heard, took_s, counts

    heard, took_s, counts = where_rules_decide(story)
    assert (heard.status, heard.code) == (403, "AccessDenied")
    assert took_s < 7
    assert counts == ["1"], "what nobody was given is nobody's"


def test_a_look_at_messages_takes_the_right_to_receive() -> None:
    async def story(world: RightsVisit) -> list[tuple[int, bool]]:
        await world.plant()
        await world.as_admin("ChangeMessageVisibility", QueueUrl=ASKED, **await _receipt(world))
        told = []
        for rules in (
            [],
            [rule(TOPIC, ASKED, READ)],
            [rule(GROUP, f"sqs.{ASKED}", READ)],
            [rule(TOPIC, ASKED, READ), rule(GROUP, f"sqs.{ASKED}", READ)],
        ):
            world.rule_by(rules)
            page = await world.visit.raw(
                "GET",
                f"/_aws/sqs/messages?QueueUrl={ASKED}&ShowInvisible=true",
                {"Authorization": AUTHORIZATION},
            )
            told.append((page.status, b"of asked-queue" in page.body))
        return told

    assert where_rules_decide(story) == [(400, False), (403, False), (400, False), (200, True)]


async def _receipt(world: RightsVisit) -> dict[str, Any]:
    await asyncio.sleep(31)
    (message,) = (await world.as_admin("ReceiveMessage", QueueUrl=ASKED))["Messages"]
    return {"ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 30}


@pytest.mark.parametrize("action", ["DeleteQueue", "PurgeQueue"])
def test_where_administrators_delete_it_takes_a_right_on_the_cluster_as_well(action: str) -> None:
    async def story(world: RightsVisit) -> list[int]:
        await world.as_admin("CreateQueue", QueueName=ASKED)
        world.rule_by([rule(TOPIC, ASKED, DELETE)])
        told = [(await world.ask("json", action, QueueUrl=ASKED)).status]
        await world.as_admin("CreateQueue", QueueName=ASKED)
        await asyncio.sleep(61)
        world.allow(rule(CLUSTER, CLUSTER_NAME, ALTER))
        told.append((await world.ask("json", action, QueueUrl=ASKED)).status)
        return told

    assert where_rules_decide(story, rules=DeskRules(ACCOUNT, deletes_need_admin=True)) == [403, 200]
    assert where_rules_decide(story) == [200, 200]


def test_a_queue_is_created_by_a_right_on_its_name_or_on_the_cluster() -> None:
    async def story(world: RightsVisit) -> list[int]:
        told = []
        for name, each in (
            ("a", rule(TOPIC, "b", CREATE)),
            ("b", rule(TOPIC, "b", CREATE)),
            ("team-a", rule(TOPIC, "team-", CREATE, pattern=Pattern.PREFIXED)),
            ("c", rule(CLUSTER, CLUSTER_NAME, CREATE)),
            ("__ours", rule(TOPIC, "*", Operation.ALL)),
        ):
            world.rule_by([each])
            told.append((await world.ask("json", "CreateQueue", QueueName=name)).status)
        return told

    assert where_rules_decide(story) == [403, 200, 200, 200, 403]


def test_a_queue_of_an_adopted_topic_goes_by_the_rights_on_the_topic() -> None:
    async def story(world: RightsVisit) -> list[tuple[int, str]]:
        world.rule_by([rule(TOPIC, "theirs", ALTER), rule(TOPIC, "jobs", Operation.ALL)])
        told = [await world.ask("own", "AdoptTopic", QueueName="jobs", Topic="theirs")]
        told.append(await world.ask("json", "SendMessage", QueueUrl="jobs", MessageBody="b"))
        world.rule_by([rule(TOPIC, "theirs", WRITE)])
        told.append(await world.ask("json", "SendMessage", QueueUrl="jobs", MessageBody="b"))
        return [(heard.status, heard.code) for heard in told]

    assert where_rules_decide(story, topics=("theirs",)) == [(200, ""), (403, "AccessDenied"), (200, "")]


def test_a_key_is_its_users_and_without_a_user_its_own() -> None:
    clock = SetClock()
    request, clock.at_ms = signed(SECRET)
    keys = KnownKeys(clock, {KEY: Key(SECRET)})
    assert keys.identify(request).owner == Owner(f"User:{KEY}", method=BY_SIGNATURE)
    keys.replace(parse_keys(f'[{KEY}]\nsecret = "{SECRET}"\nuser = "alice"\n'.encode(), "keys"))
    assert keys.identify(request).owner == Owner("User:alice", method=BY_SIGNATURE)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (f'[{KEY}]\nsecret = "s"\nuser = "*"\n', "stands for others"),
        (f'[{KEY}]\nsecret = "s"\nuser = "ANONYMOUS"\n', "stands for others"),
        ('["*"]\nsecret = "s"\n', "stands for others"),
        (f'[{KEY}]\nsecret = "s"\nuser = "a\\tb"\n', "control characters"),
    ],
)
def test_a_key_cannot_be_of_whoever_stands_for_others(keys: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        parse_keys(keys.encode(), "keys")


ON: Final = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "super.users=User:admin")


class Client:
    """Somebody at the door of a whole node."""

    def __init__(self, door: Door) -> None:
        self._network = door.world.network.host("client")

    async def ask(self, action: str, **parameters: Any) -> Page:
        line = await Line.open(self._network, "node", 9324)
        body = json.dumps(parameters).encode()
        headers = (
            "POST / HTTP/1.1",
            "Host: node:9324",
            f"X-Amz-Target: AmazonSQS.{action}",
            f"Authorization: {AUTHORIZATION.replace('AKIDEXAMPLE', 'admin')}",
            f"Content-Length: {len(body)}",
        )
        line.send("\r\n".join((*headers, "", "")).encode() + body)
        return await line.page()


def test_a_node_that_decides_by_rules_has_the_door_and_a_key_that_nobody_checks_is_nobodys() -> None:
    async def story(door: Door) -> list[int]:
        world, client = RightsWorld(door), Client(door)
        told = [(await client.ask("CreateQueue", QueueName="jobs")).status]
        await world.allow(rule(TOPIC, "jobs", Operation.ALL, principal="User:admin"))
        told.append((await client.ask("CreateQueue", QueueName="jobs")).status)
        await world.allow(rule(TOPIC, "jobs", Operation.ALL, principal="User:ANONYMOUS"))
        told.append((await client.ask("CreateQueue", QueueName="jobs")).status)
        while (await client.ask("SendMessage", QueueUrl="jobs", MessageBody="b")).status == 503:
            await asyncio.sleep(0.1)
        told.append((await client.ask("ReceiveMessage", QueueUrl="jobs")).status)
        return told

    told = at_the_door(story, *ON, "sqs.listen=node:9324", "sqs.insecure=true")
    assert told == [403, 403, 200, 403]
