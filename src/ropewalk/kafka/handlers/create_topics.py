"""CreateTopics: each topic by itself; one that fails does not stop the others.

Behaviour worth knowing
    A name that appears twice in one request is refused once, with INVALID_REQUEST.
    What is only validated is described as it would be, but for the id.
    The answer comes when the partitions are ready to be written to.
    From v5 on the answer tells the settings the topic got, defaults included.
    Two things that Kafka's topics do not have come as settings, and are none afterwards: `ropewalk.owner`, a name, and
    `ropewalk.observers`, how many copies of each partition there are beside the replicas.
"""

from collections import Counter
from typing import Final

from ropewalk.base.errors import InvalidReplicaAssignment, InvalidRequest, RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, NodeId
from ropewalk.base.limits import CREATED_TOPICS_MAX
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.topics import CreateTopic
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Topic
from ropewalk.metadata.settings.setting import Change
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.create_topics import (
    API,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

STRICT_SINCE: Final = 6
"""Older clients would not understand that they come too often, so they are only made to wait (KIP-599)."""

OWNER: Final = "ropewalk.owner"
OBSERVERS: Final = "ropewalk.observers"


async def handle(request: CreateTopicsRequest, caller: Caller, *, topics: Topics) -> CreateTopicsResponse:
    names = Counter(asked.name for asked in request.topics)
    outcomes: dict[str, Topic | RopewalkError] = {}
    mandate = caller.mandate(API.name)
    with caller.hold():
        for asked in {asked.name: asked for asked in request.topics}.values():
            await caller.next_item()
            try:
                if len(names) > CREATED_TOPICS_MAX:
                    raise InvalidRequest(
                        f"{len(names)} topics in one request, {CREATED_TOPICS_MAX} are allowed"
                    )
                if names[asked.name] > 1:
                    raise InvalidRequest(f"{asked.name!r} is named {names[asked.name]} times")
                if caller.version >= STRICT_SINCE:
                    caller.check_mutations()
                topic = await topics.create_unopened(
                    _command(asked), mandate, validate_only=request.validate_only
                )
                if not request.validate_only:
                    caller.charge_mutations(len(topic.partitions))
                outcomes[asked.name] = topic
            except RopewalkError as error:
                outcomes[asked.name] = error
        if not request.validate_only:
            await _open(outcomes, topics)
    results: list[CreatableTopicResult] = []
    for name, outcome in outcomes.items():
        await caller.next_item()
        if isinstance(outcome, RopewalkError):
            results.append(_failed(name, outcome))
        else:
            results.append(_created(outcome, topics, validate_only=request.validate_only))
    return CreateTopicsResponse(throttle_ms=0, topics=tuple(results))


async def _open(outcomes: dict[str, Topic | RopewalkError], topics: Topics) -> None:
    """Wait for all that were made; if the node cannot say whether they are ready, none is said to be."""
    try:
        await topics.opened()
    except RopewalkError as error:
        for name, outcome in outcomes.items():
            if not isinstance(outcome, RopewalkError):
                outcomes[name] = error


def _command(asked: CreatableTopic) -> CreateTopic:
    assignments: dict[int, tuple[NodeId, ...]] = {}
    for assignment in asked.assignments:
        if assignment.index in assignments:
            raise InvalidReplicaAssignment(f"{asked.name}: partition {assignment.index} is assigned twice")
        assignments[assignment.index] = tuple(map(NodeId, assignment.broker_ids))
    settings = {setting.name: setting.value for setting in asked.configs}
    return CreateTopic(
        name=asked.name,
        partition_count=asked.num_partitions,
        replication_factor=asked.replication_factor,
        assignments=assignments,
        owner=settings.pop(OWNER, None),
        observer_count=_count(settings.pop(OBSERVERS, None)),
        settings=settings,
    )


def _count(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidRequest(f"{OBSERVERS} is {text!r}, must be a number")
    return int(text)


def _created(topic: Topic, topics: Topics, *, validate_only: bool) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=TOPIC_ID_NONE if validate_only else topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=tuple(
            CreatableTopicConfigs(
                name=name,
                value=(effective := topics.view.of_topic(topic, name)).value,
                read_only=effective.setting.change is Change.READ_ONLY,
                config_source=effective.source,
            )
            for name in TOPIC_SETTINGS
        ),
    )


def _failed(name: str, error: RopewalkError) -> CreatableTopicResult:
    code = code_for(error)
    return CreatableTopicResult(
        name=name,
        error_code=code,
        error_message=str(error),
        topic_config_error_code=ErrorCode.NONE,
        configs=(),
    )
