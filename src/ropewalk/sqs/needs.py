"""What an action needs of its caller: every action says it, and what it says is what is enforced (`sqs/admission.py`).

What a reader could get wrong
    Rights on a queue are rights on its topic, and on the group `sqs.NAME` for whoever receives. A queue that adopted a topic has another name than that.
    Whatever an action needs, a queue that its caller may not describe is not there for it, nor is one that it names besides.
    Messages go only where their sender may write: a dead-letter queue, or where a move task brings them, takes WRITE (`Desk.target`).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.metadata.queues import Queue
from ropewalk.security.access import Operation, ResourceType
from ropewalk.sqs.attributes import POLICY, stripped
from ropewalk.sqs.engine import Facts
from ropewalk.sqs.move_handles import parse_move_handle
from ropewalk.sqs.urls import name_in_arn, name_in_url

NameOf: TypeAlias = Callable[[Any], str | None]
"""Takes the action's own request class, which is why it says Any."""

Besides: TypeAlias = Callable[[Any, Queue | None, Facts], Iterable[tuple[Operation, str]]]
"""Operations on topics, from the request, the queue it is about, and all queues there are."""


class Right(Struct, frozen=True):
    """On the queue's topic, or on its group."""

    operation: Operation
    resource_type: ResourceType = ResourceType.TOPIC


class OnQueue(Struct, frozen=True, kw_only=True):
    """All of the rights on one queue."""

    rights: tuple[Right, ...]
    name_of: NameOf
    """None where the request names no queue, which its handler refuses."""
    is_deletion: bool = False
    """Whether it takes ALTER on the cluster as well, where `cluster.delete.by` is `admin`."""
    is_asked_again: bool = False
    """Whether the rights are needed when the answer is there, too: messages leave with it."""
    besides: Besides | None = None
    said: str = ""
    """What else there is to know, for the reference."""


class Creation(Struct, frozen=True, kw_only=True):
    """CREATE on the topic that the queue is to have, or on the cluster."""

    name_of: NameOf
    besides: Besides | None = None
    said: str = ""


class Listing(Struct, frozen=True):
    """Nothing: queues that the caller may not describe are left out."""


Needs: TypeAlias = OnQueue | Creation | Listing

DESCRIBE: Final = (Right(Operation.DESCRIBE),)
READ: Final = (Right(Operation.READ),)
RECEIVE: Final = (Right(Operation.READ), Right(Operation.READ, ResourceType.GROUP))
WRITE: Final = (Right(Operation.WRITE),)
DELETE: Final = (Right(Operation.DELETE),)
ALTER: Final = (Right(Operation.ALTER),)
ALTER_CONFIGS: Final = (Right(Operation.ALTER_CONFIGS),)
MOVE: Final = (Right(Operation.READ), Right(Operation.DELETE))


def of_url(request: Any) -> str | None:
    return name_in_url(request.queue_url)


def of_name(request: Any) -> str | None:
    name: str = request.queue_name
    return name


def of_source(request: Any) -> str | None:
    return name_in_arn(request.source_arn)


def of_handle(request: Any) -> str | None:
    try:
        return name_in_arn(parse_move_handle(request.task_handle).source_arn)
    except RopewalkError:
        return None


def at_url(rights: tuple[Right, ...], **more: Any) -> OnQueue:
    return OnQueue(rights=rights, name_of=of_url, **more)


def alter_for_a_policy(request: Any, queue: Queue | None, _facts: Facts) -> Iterable[tuple[Operation, str]]:
    if queue is not None and POLICY in stripped(request.attributes):
        yield Operation.ALTER, queue.topic


def write_where_they_came_from(
    request: Any, queue: Queue | None, facts: Facts
) -> Iterable[tuple[Operation, str]]:
    """Of a move task that brings messages back. Another destination is asked about where it is looked up."""
    if queue is not None and request.destination_arn is None:
        for name in facts.sources_of(queue.name):
            source = facts.get(name)
            if source is not None:
                yield Operation.WRITE, source.topic


def alter_the_topic(request: Any, _queue: Queue | None, _facts: Facts) -> Iterable[tuple[Operation, str]]:
    yield Operation.ALTER, request.topic
