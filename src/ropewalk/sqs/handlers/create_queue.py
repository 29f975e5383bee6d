"""CreateQueue: make a queue, or find it as it is wanted.

Behaviour worth knowing
    Attributes that are not given are not compared with those of a queue that is there.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import field

from ropewalk.sqs import tags as tag_rules
from ropewalk.sqs.attributes import (
    DEDUPLICATION_SCOPE,
    FIFO_QUEUE,
    THROUGHPUT_LIMIT,
    TRUE,
    canonical,
    check_together,
    differing,
    stripped,
)
from ropewalk.sqs.desk import Caller, Desk, check_queue_name
from ropewalk.sqs.errors import INVALID_ATTRIBUTE_NAME, QUEUE_NAME_EXISTS, SqsRefusal, other_attribute
from ropewalk.sqs.shapes import KEY_AND_VALUE, NAME_AND_VALUE, Input, Output


class CreateQueueRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_name",)

    queue_name: str = ""
    attributes: Annotated[Mapping[str, str] | None, NAME_AND_VALUE] = None
    tags: Annotated[Mapping[str, str] | None, KEY_AND_VALUE] = field(name="tags", default=None)


class CreateQueueResult(Output, frozen=True, kw_only=True):
    queue_url: str


async def handle(request: CreateQueueRequest, desk: Desk, caller: Caller) -> CreateQueueResult:
    name = request.queue_name
    attributes = checked_attributes(name, request.attributes or {}, desk)
    before = desk.engine.facts.get(name)
    if before is not None:
        other = differing(attributes, before)
        if other is not None:
            raise SqsRefusal(QUEUE_NAME_EXISTS, other_attribute(other))
        return CreateQueueResult(queue_url=desk.url(caller, name))
    tags = request.tags or {}
    tag_rules.check(tags, {}, name=name)
    given = {key: value for key, value in attributes.items() if value is not None}
    await desk.engine.changes.create(
        name,
        attributes=given,
        tags=tags,
        owner=caller.access_key or None,
        partition_count=_partition_count(given, desk),
        mandate=caller.mandate("CreateQueue"),
    )
    return CreateQueueResult(queue_url=desk.url(caller, name))


def checked_attributes(name: str, given: Mapping[str, str], desk: Desk) -> dict[str, str | None]:
    """As they are stored. Whether it is a FIFO queue is said by its name then. Raises `SqsRefusal`."""
    attributes = stripped(given)
    fifo = attributes.pop(FIFO_QUEUE, None)
    if fifo is not None and fifo.lower() != TRUE:
        raise SqsRefusal(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {FIFO_QUEUE}.")
    is_fifo = fifo is not None
    check_queue_name(name, wants_fifo=is_fifo)
    checked = canonical(attributes, name=name, is_fifo=is_fifo, find=desk.target)
    return check_together(checked, {}, is_fifo=is_fifo)


def _partition_count(attributes: Mapping[str, str], desk: Desk) -> int:
    is_fast = (
        attributes.get(DEDUPLICATION_SCOPE) == "messageGroup"
        and attributes.get(THROUGHPUT_LIMIT) == "perMessageGroupId"
    )
    return desk.rules.fifo_partition_count if is_fast else 1
