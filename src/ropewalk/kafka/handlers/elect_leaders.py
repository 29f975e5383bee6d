"""ElectLeaders: have preferred replicas lead again, or find a leader where there is none.

Behaviour worth knowing
    An unclean election takes a replica out of sync where nobody else is left, whatever the topic allows by itself; the cluster
    remembers it as a possible loss.
    On partitions that are named, ELECTION_NOT_NEEDED is an answer like any other; where all are asked for (null), those
    that need none are left out of their topic's list, as in Kafka.
"""

from typing import Final

from ropewalk.base.errors import ElectionNotNeeded, InvalidRequest, RopewalkError
from ropewalk.broker.administration.leadership import Leadership
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.elect_leaders import (
    API,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


async def handle(
    request: ElectLeadersRequest, caller: Caller, *, leadership: Leadership
) -> ElectLeadersResponse:
    mandate = caller.mandate(API.name)

    async def elect(topic: str, index: int) -> PartitionResult:
        try:
            if request.election_type not in (_PREFERRED, _UNCLEAN):
                raise InvalidRequest(f"there is no election of type {request.election_type}")
            await leadership.elect(topic, index, mandate, preferred=request.election_type == _PREFERRED)
        except RopewalkError as error:
            return PartitionResult(index, code_for(error), str(error))
        return PartitionResult(index, ErrorCode.NONE, None)

    asked = request.topic_partitions
    if asked is None:
        asked = tuple(
            TopicPartitions(topic.name, tuple(range(len(topic.partitions))))
            for topic in leadership.image.topics.values()
        )
    unneeded = code_for(ElectionNotNeeded()) if request.topic_partitions is None else None
    results: list[ReplicaElectionResult] = []
    with caller.hold():
        for topic in asked:
            elected = [await elect(topic.name, index) for index in topic.partitions]
            told = tuple(result for result in elected if result.error_code != unneeded)
            results.append(ReplicaElectionResult(topic.name, told))
    known = request.election_type in (_PREFERRED, _UNCLEAN)
    return ElectLeadersResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST,
        replica_election_results=tuple(results),
    )
