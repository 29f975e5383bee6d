"""ListPartitionReassignments: which partitions are being moved.

Behaviour worth knowing
    Partitions that are named and are not being moved, or do not exist, are left out, as in Kafka.
    Observers are not Kafka's and never among the replicas.
"""

from ropewalk.broker.administration.leadership import Leadership
from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Partition
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    request: ListPartitionReassignmentsRequest, caller: Caller, *, leadership: Leadership
) -> ListPartitionReassignmentsResponse:
    del caller
    asked = None
    if request.topics is not None:
        asked = {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
    moving: dict[str, list[OngoingPartitionReassignment]] = {}
    for topic, partition in leadership.moves():
        if asked is None or (topic.name, partition.index) in asked:
            moving.setdefault(topic.name, []).append(_told(partition))
    return ListPartitionReassignmentsResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name, tuple(partitions)) for name, partitions in moving.items()
        ),
    )


def _told(partition: Partition) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        index=partition.index,
        replicas=partition.replicas,
        adding_replicas=partition.adding,
        removing_replicas=partition.removing,
    )
