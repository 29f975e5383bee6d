"""Queues as those see them who look after them: create, list, describe, purge, delete, and what becomes of dead letters.

What a reader could get wrong
    Counts are approximate: they are of the moment at which each partition was asked.
    `adopt`, `explain` and `rewind` are actions of Ropewalk's own. Other servers refuse them.
"""

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ports import ClientPorts
from ropewalk.client.connections.security import NO_SECURITY, ClientSecurity
from ropewalk.client.queues import endpoints
from ropewalk.client.queues.calling import OWN, Caller, listed
from ropewalk.client.queues.explaining import Explained, read_explanation
from ropewalk.client.queues.message import Content, read_content

LIST_MAX: Final = 1_000
"""Of one page; the SQS API's own."""
PEEK_PATH: Final = "/_aws/sqs/messages"
_COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_NOTHING: Final[Mapping[str, str]] = {}


class Counts(Struct, frozen=True, gc=False):
    visible: int
    in_flight: int
    delayed: int


class Described(Struct, frozen=True):
    name: str
    url: str
    attributes: Mapping[str, str]
    """As the server names them, without the counts."""
    counts: Counts
    tags: Mapping[str, str]
    sources: Sequence[str]
    """Names of the queues whose dead letters come here."""


class MoveTask(Struct, frozen=True):
    handle: str | None
    """Only while it runs."""
    status: str
    moved: int
    to_move: int | None
    failure: str | None
    target: str | None = None
    """None: each goes to the queue it came from."""
    per_second_max: int | None = None
    started_at_ms: int | None = None


class Queues:
    """Over one connection or a few; `open_queues` makes it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def create(
        self, name: str, attributes: Mapping[str, str] = _NOTHING, tags: Mapping[str, str] = _NOTHING
    ) -> str:
        """Its address. One that is there with the same attributes is no failure; otherwise `QueueExistsOtherwise`."""
        fields = {"QueueName": name, "Attributes": attributes, "tags": tags}
        return _text(await self._caller.call("CreateQueue", fields), "QueueUrl")

    async def adopt(
        self, name: str, topic: str, attributes: Mapping[str, str] = _NOTHING, *, from_latest: bool
    ) -> str:
        """Make a queue of a topic that is there: of all that it holds, or of what comes from now on."""
        begin = "latest" if from_latest else "earliest"
        fields = {"QueueName": name, "Topic": topic, "From": begin, "Attributes": attributes}
        return _text(await self._caller.call("AdoptTopic", fields, target=OWN), "QueueUrl")

    async def names(self, prefix: str = "") -> list[str]:
        """In their order."""
        found: list[str] = []
        token: str | None = None
        while True:
            fields = {"QueueNamePrefix": prefix or None, "NextToken": token, "MaxResults": LIST_MAX}
            answer = await self._caller.call("ListQueues", fields)
            found += [_name_in(url) for url in listed(answer, "QueueUrls")]
            token = answer.get("NextToken")
            if not token:
                return sorted(found)

    async def url(self, name: str) -> str:
        """Raises `QueueMissing`."""
        return _text(await self._caller.call("GetQueueUrl", {"QueueName": name}), "QueueUrl")

    async def counts(self, name: str) -> Counts:
        return _counts(await self._attributes(await self.url(name), _COUNTS))

    async def describe(self, name: str) -> Described:
        url = await self.url(name)
        attributes = await self._attributes(url, ("All",))
        tags = await self._caller.call("ListQueueTags", {"QueueUrl": url})
        sources = await self._caller.call("ListDeadLetterSourceQueues", {"QueueUrl": url})
        return Described(
            name,
            url,
            {key: value for key, value in sorted(attributes.items()) if key not in _COUNTS},
            _counts(attributes),
            {str(key): str(value) for key, value in (tags.get("Tags") or {}).items()},
            [_name_in(each) for each in listed(sources, "queueUrls", "QueueUrls")],
        )

    async def delete(self, name: str) -> None:
        await self._caller.call("DeleteQueue", {"QueueUrl": await self.url(name)})

    async def purge(self, name: str) -> None:
        """Everything in it is gone. Once in a minute."""
        await self._caller.call("PurgeQueue", {"QueueUrl": await self.url(name)}, repeatable=False)

    async def peek(self, name: str) -> list[Content]:
        """What is in it, hidden or not, without taking it."""
        query = {"QueueUrl": await self.url(name), "ShowInvisible": "true", "ShowDelayed": "true"}
        answer = await self._caller.get(PEEK_PATH, query)
        return [read_content(_as_received(entry)) for entry in _peeked(answer)]

    async def explain(self, name: str, message_id: str) -> Explained:
        """Where a message is, and why nobody is given it. One that the log no longer has is refused as not there."""
        fields = {"QueueUrl": await self.url(name), "MessageId": message_id}
        answer = await self._caller.call("ExplainMessage", fields, target=OWN)
        dead_in = await self._dead_in(name, message_id) if answer.get("State") == "settled" else None
        return read_explanation(message_id, answer, dead_in=dead_in)

    async def _dead_in(self, name: str, message_id: str) -> str | None:
        """The dead-letter queue of the queue, if the message is among the first that are there."""
        attributes = await self._attributes(await self.url(name), ("RedrivePolicy",))
        policy = attributes.get("RedrivePolicy")
        target = None if policy is None else _name_in_arn(json.loads(policy).get("deadLetterTargetArn"))
        if target is None or target not in await self.names(target):  # it may have been deleted
            return None
        is_there = any(content.message_id == message_id for content in await self.peek(target))
        return target if is_there else None

    async def rewind(self, name: str, *, to_ms: int) -> None:
        """As if nothing that was sent since had been deleted."""
        fields = {"QueueUrl": await self.url(name), "Timestamp": to_ms}
        await self._caller.call("RewindQueue", fields, target=OWN)

    async def start_moving(self, source: str, target: str | None, *, per_second_max: int | None) -> str:
        """The task's handle. Without a target each message goes back to the queue that it came from."""
        fields = {
            "SourceArn": await self.arn(source),
            "DestinationArn": None if target is None else await self.arn(target),
            "MaxNumberOfMessagesPerSecond": per_second_max,
        }
        return _text(await self._caller.call("StartMessageMoveTask", fields, repeatable=False), "TaskHandle")

    async def move_tasks(self, source: str) -> list[MoveTask]:
        """The latest first."""
        fields = {"SourceArn": await self.arn(source), "MaxResults": 10}
        answer = await self._caller.call("ListMessageMoveTasks", fields)
        return [
            MoveTask(
                entry.get("TaskHandle"),
                str(entry.get("Status")),
                int(entry.get("ApproximateNumberOfMessagesMoved") or 0),
                entry.get("ApproximateNumberOfMessagesToMove"),
                entry.get("FailureReason"),
                _name_in_arn(entry.get("DestinationArn")),
                entry.get("MaxNumberOfMessagesPerSecond"),
                entry.get("StartedTimestamp"),
            )
            for entry in listed(answer, "Results")
        ]

    async def cancel_moving(self, handle: str) -> None:
        await self._caller.call("CancelMessageMoveTask", {"TaskHandle": handle})

    async def arn(self, name: str) -> str:
        """What dead-letter policies and move tasks call a queue."""
        attributes = await self._attributes(await self.url(name), ("QueueArn",))
        return attributes.get("QueueArn", "")

    async def _attributes(self, url: str, names: Sequence[str]) -> dict[str, str]:
        fields = {"QueueUrl": url, "AttributeNames": list(names)}
        answer = await self._caller.call("GetQueueAttributes", fields)
        return {str(key): str(value) for key, value in (answer.get("Attributes") or {}).items()}


@asynccontextmanager
async def open_queues(
    ports: ClientPorts,
    *,
    endpoint: str | None,
    bootstrap: str | None,
    timeout_ms: int,
    patience_ms: int,
    security: ClientSecurity = NO_SECURITY,
) -> AsyncIterator[Queues]:
    """At an endpoint, or among the nodes of a cluster; keys and region are those of the environment.

    `patience_ms` is for how long anybody is looked for, `timeout_ms` for a whole call.
    """
    caller = Caller(
        endpoints.finder(endpoint, bootstrap, ports, os.environ, timeout_ms=patience_ms, security=security),
        endpoints.credentials(None, None, None, os.environ),
        region=endpoints.region(None, os.environ),
        ports=ports,
        timeout_ms=timeout_ms,
        patience_ms=patience_ms,
        tls=endpoints.tls_for_https(security, os.environ),
    )
    try:
        yield Queues(caller)
    finally:
        caller.close()


def _counts(attributes: Mapping[str, str]) -> Counts:
    visible, in_flight, delayed = (int(attributes.get(name) or 0) for name in _COUNTS)
    return Counts(visible, in_flight, delayed)


def _name_in(url: object) -> str:
    return str(url).rpartition("/")[2]


def _name_in_arn(arn: str | None) -> str | None:
    return arn.rpartition(":")[2] if arn else None


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise ProtocolError(f"the answer has no {name}")
    return value


def _peeked(answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """LocalStack's shape: the XML of ReceiveMessage with an object for each element. One message alone may come without its list."""
    found: Any = answer
    for name in ("ReceiveMessageResponse", "ReceiveMessageResult"):
        found = found.get(name) if isinstance(found, Mapping) else None
    messages = found.get("Message") if isinstance(found, Mapping) else None
    return [messages] if isinstance(messages, Mapping) else messages or []


def _as_received(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Attributes in the XML are lists of names and values."""
    return {
        **entry,
        "Attributes": _by_name(entry.get("Attribute") or entry.get("Attributes")),
        "MessageAttributes": _by_name(entry.get("MessageAttribute") or entry.get("MessageAttributes")),
    }


def _by_name(entries: Any) -> Mapping[str, Any]:
    if isinstance(entries, Mapping):
        return {entries["Name"]: entries["Value"]} if set(entries) == {"Name", "Value"} else entries
    return {str(entry.get("Name")): entry.get("Value") for entry in entries or ()}
