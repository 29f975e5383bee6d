"""ListPartitionReassignments: what is being moved, which is nothing: replicas stay where they were made."""

from ropewalk.kafka.caller import Caller
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def handle(
    request: ListPartitionReassignmentsRequest, caller: Caller
) -> ListPartitionReassignmentsResponse:
    del request, caller
    return ListPartitionReassignmentsResponse(
        throttle_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=()
    )
