"""AdoptTopic: make a queue of a topic that is there; an action of Ropewalk's own.

Behaviour worth knowing
    As `NAME.fifo` the record's key is the message group. Deleting the queue leaves the topic.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import field

from ropewalk.sqs import tags as tag_rules
from ropewalk.sqs.attributes import FIFO_QUEUE, TRUE
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import invalid
from ropewalk.sqs.handlers.create_queue import checked_attributes
from ropewalk.sqs.shapes import KEY_AND_VALUE, NAME_AND_VALUE, Input, Output


class AdoptTopicRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_name", "topic")

    queue_name: str = ""
    topic: str = ""
    begin: str = field(name="From", default="earliest")
    attributes: Annotated[Mapping[str, str] | None, NAME_AND_VALUE] = None
    tags: Annotated[Mapping[str, str] | None, KEY_AND_VALUE] = None


class AdoptTopicResult(Output, frozen=True, kw_only=True):
    queue_url: str


async def handle(request: AdoptTopicRequest, desk: Desk, caller: Caller) -> AdoptTopicResult:
    desk.require_admin(caller, "AdoptTopic")
    name = request.queue_name
    if request.begin not in ("earliest", "latest"):
        raise invalid("From", request.begin, "Must be earliest or latest.")
    given = dict(request.attributes or {})
    if name.endswith(".fifo"):
        given.setdefault(FIFO_QUEUE, TRUE)
    attributes = checked_attributes(name, given, desk)
    tag_rules.check(request.tags or {}, {}, name=name)
    await desk.engine.changes.create(
        name,
        attributes={key: value for key, value in attributes.items() if value is not None},
        tags=request.tags or {},
        owner=caller.access_key or None,
        topic=request.topic,
        from_latest=request.begin == "latest",
        mandate=caller.mandate("AdoptTopic"),
    )
    return AdoptTopicResult(queue_url=desk.url(caller, name))
