"""Changes of queues by the SQS door leave who asked for them, once each, whether the door's node decides or forwards them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.metadata.records import SQS_LISTENER
from ropewalk.sqs.actions import ACTIONS
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.http.client import Line
from tests.sqs.visits import Guest

PORT = 9324
ARN = "arn:aws:sqs:eu-west-1:000000000000:"

STEPS: tuple[tuple[str, Mapping[str, Any], tuple[tuple[str, str], ...]], ...] = (
    (
        "CreateQueue",
        {"QueueName": "jobs", "Attributes": {"DelaySeconds": "1"}, "tags": {"team": "a"}},
        (
            ("topic.created", "Topic:jobs"),
            ("queue.created", "Queue:jobs"),
            ("queue.attribute", "Queue:jobs:DelaySeconds"),
            ("queue.tag", "Queue:jobs:team"),
            ("topic.partitions", "Topic:jobs"),
        ),
    ),
    (
        "SetQueueAttributes",
        {"QueueUrl": "jobs", "Attributes": {"DelaySeconds": "2"}},
        (("queue.attribute", "Queue:jobs:DelaySeconds"),),
    ),
    ("TagQueue", {"QueueUrl": "jobs", "Tags": {"more": "1"}}, (("queue.tag", "Queue:jobs:more"),)),
    ("UntagQueue", {"QueueUrl": "jobs", "TagKeys": ["team"]}, (("queue.tag", "Queue:jobs:team"),)),
    (
        "AddPermission",
        {"QueueUrl": "jobs", "Label": "l", "AWSAccountIds": ["123456789012"], "Actions": ["SendMessage"]},
        (("queue.attribute", "Queue:jobs:Policy"),),
    ),
    (
        "RemovePermission",
        {"QueueUrl": "jobs", "Label": "l"},
        (("queue.attribute", "Queue:jobs:Policy"),),
    ),
    ("StartMessageMoveTask", {"SourceArn": f"{ARN}dead"}, (("queue.move", "Queue:dead"),)),
    ("CancelMessageMoveTask", {}, (("queue.move", "Queue:dead"),)),
    (
        "DeleteQueue",
        {"QueueUrl": "jobs"},
        (("queue.deleted", "Queue:jobs"), ("topic.deleted", "Topic:jobs")),
    ),
)
NO_CHANGES = {
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
    "DeleteMessage",
    "DeleteMessageBatch",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListDeadLetterSourceQueues",
    "ListMessageMoveTasks",
    "ListQueueTags",
    "ListQueues",
    "PurgeQueue",
    "ReceiveMessage",
    "SendMessage",
    "SendMessageBatch",
}
"""Of the cluster's facts. What becomes of messages is in no audit."""


class NodeGuest(Guest):
    def __init__(self, nodes: Nodes, node_id: int) -> None:
        super().__init__(nodes.world)
        self._host = f"node{node_id}"

    async def new_line(self) -> Line:
        return await Line.open(self.world.network.host("visitor"), self._host, PORT)


def test_every_action_changes_something_or_does_not() -> None:
    assert {name for name, _, _ in STEPS} | NO_CHANGES == {action.name for action in ACTIONS}


@pytest.mark.parametrize("node_id", [0, 1])
def test_every_change_by_the_sqs_door_tells_once_who_asked_for_it(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        guest, image = NodeGuest(nodes, node_id), nodes[0].image
        for name in ("dead", "source"):
            assert (await guest.json("CreateQueue", QueueName=name)).status == 200
        redrive = {"RedrivePolicy": f'{{"deadLetterTargetArn": "{ARN}dead", "maxReceiveCount": 3}}'}
        await guest.json("SetQueueAttributes", QueueUrl="source", Attributes=redrive)
        for number in range(20):
            await guest.json("SendMessage", QueueUrl="dead", MessageBody=str(number))
        handle = ""
        for action, parameters, details in STEPS:
            before = image.audit.newest_number
            said = dict(parameters)
            if action == "StartMessageMoveTask":
                said |= {"DestinationArn": f"{ARN}source", "MaxNumberOfMessagesPerSecond": 1}
            if action == "CancelMessageMoveTask":
                said = {"TaskHandle": handle}
            heard = await guest.json(action, **said)
            assert heard.status == 200, (action, heard)
            handle = heard.said.get("TaskHandle", handle)
            (change,) = image.audit.after(before)
            assert (change.operation, change.client_id) == (action, "AKIDEXAMPLE")
            assert (change.principal, change.listener) == ("User:ANONYMOUS", SQS_LISTENER), (
                "keys are not checked"
            )
            assert change.host
            assert change.forwarded_by == (NodeId(node_id) if node_id else None)
            told = tuple(
                (each.kind, each.resource) for each in change.details if each.kind != "topic.setting"
            )
            assert sorted(told) == sorted(details), action
        ended = image.audit.newest_number
        await asyncio.sleep(5)
        assert image.audit.newest_number == ended, "that a task has ended is nobody's wish"

    doors = {each: (f"sqs.listen=node{each}:{PORT}", "sqs.insecure=true") for each in (0, 1)}
    in_a_cluster(story, nodes=2, differing=doors)


def test_a_topic_that_is_adopted_tells_who_asked_for_it() -> None:
    async def story(nodes: Nodes) -> None:
        guest, image = NodeGuest(nodes, 0), nodes[0].image
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 1, 1)])
        before = image.audit.newest_number
        heard = await guest.target("Ropewalk.AdoptTopic", b'{"QueueName": "q", "Topic": "orders"}')
        assert heard.status == 200, heard
        (change,) = image.audit.after(before)
        assert change.operation == "AdoptTopic"
        assert [(each.kind, each.after) for each in change.details][-1] == ("queue.created", "adopted")

    in_a_cluster(story, f"sqs.listen=node0:{PORT}", "sqs.insecure=true", nodes=1)
