"""DescribeCluster: the brokers and which of them to ask for changes."""

from typing import Final

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.handlers.metadata import LISTENER
from ropewalk.kafka.operations import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS: Final = 1


async def handle(request: DescribeClusterRequest, caller: Caller, *, image: Image) -> DescribeClusterResponse:
    del caller
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            throttle_ms=0,
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="controllers have no listener for clients here",
        )
    brokers = tuple(
        DescribeClusterBroker(broker.node_id, endpoint.host, endpoint.port, broker.rack)
        for broker in image.brokers.values()
        if (endpoint := broker.endpoint(LISTENER)) is not None
    )
    return DescribeClusterResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=image.cluster_id or "",
        controller_id=brokers[0].broker_id if brokers else -1,
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )
