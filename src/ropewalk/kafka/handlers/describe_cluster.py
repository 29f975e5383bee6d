"""DescribeCluster: the brokers and which of them to ask for changes.

Behaviour worth knowing
    Brokers that are fenced are named, and marked, only to those who ask for them.
"""

from typing import Final

from ropewalk.kafka.brokers import controller_for_clients, reachable_brokers, registered_brokers
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.operations import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerState
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
    known = registered_brokers(image) if request.include_fenced_brokers else reachable_brokers(image)
    brokers = tuple(
        DescribeClusterBroker(
            broker.node_id,
            endpoint.host,
            endpoint.port,
            broker.rack,
            is_fenced=broker.state is BrokerState.FENCED,
        )
        for broker, endpoint in known
    )
    return DescribeClusterResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=image.cluster_id or "",
        controller_id=controller_for_clients(image),
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )
