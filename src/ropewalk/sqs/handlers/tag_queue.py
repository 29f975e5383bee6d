"""TagQueue: give a queue tags, or others of the same names."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from ropewalk.sqs import tags as tag_rules
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.shapes import EMPTY, KEY_AND_VALUE, Empty, Input


class TagQueueRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "tags")

    queue_url: str = ""
    tags: Annotated[Mapping[str, str], KEY_AND_VALUE] = {}


async def handle(request: TagQueueRequest, desk: Desk, caller: Caller) -> Empty:
    queue = desk.queue(request.queue_url)
    tag_rules.check(request.tags, queue.tags, name=queue.name)
    await desk.engine.changes.tag(queue.name, request.tags, mandate=caller.mandate("TagQueue"))
    return EMPTY
