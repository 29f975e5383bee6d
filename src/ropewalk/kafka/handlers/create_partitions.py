"""CreatePartitions: only ever more of them; one result for each topic asked for. One named twice is refused."""

from collections import Counter
from typing import Final

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.topics import CreatePartitions
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.create_partitions import (
    API,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_SINCE: Final = 3
"""Older clients would not understand that they come too often, so they are only made to wait (KIP-599)."""


async def handle(
    request: CreatePartitionsRequest, caller: Caller, *, topics: Topics
) -> CreatePartitionsResponse:
    names = Counter(asked.name for asked in request.topics)
    results: list[CreatePartitionsTopicResult] = []
    mandate = caller.mandate(API.name)
    with caller.hold():
        for asked in {asked.name: asked for asked in request.topics}.values():
            try:
                if names[asked.name] > 1:
                    raise InvalidRequest(f"{asked.name!r} is named {names[asked.name]} times")
                if caller.version >= STRICT_SINCE:
                    caller.check_mutations()
                added = await topics.add_partitions(
                    _command(asked), mandate, validate_only=request.validate_only
                )
                if not request.validate_only:
                    caller.charge_mutations(added)
            except RopewalkError as error:
                results.append(CreatePartitionsTopicResult(asked.name, code_for(error), str(error)))
            else:
                results.append(CreatePartitionsTopicResult(asked.name, ErrorCode.NONE))
    return CreatePartitionsResponse(throttle_ms=0, results=tuple(results))


def _command(asked: CreatePartitionsTopic) -> CreatePartitions:
    assignments = None
    if asked.assignments is not None:
        assignments = [tuple(map(NodeId, assignment.broker_ids)) for assignment in asked.assignments]
    return CreatePartitions(name=asked.name, partition_count=asked.count, assignments=assignments)
