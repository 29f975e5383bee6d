"""DescribeCluster: the brokers and which of them to ask for changes.

Behaviour worth knowing
    Brokers that are fenced are named, and marked, only to those who ask for them. So are, with fields of our own, nodes that
    are no brokers, who decides, what was lost, how old the answer is, what is wrong with this node, and its alerts.
"""

from collections.abc import Callable
from typing import Final

from msgspec import structs

from ropewalk.broker.watching.cluster_health import NodeAccount
from ropewalk.kafka.brokers import controller_for_clients, reachable_brokers, registered_brokers
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.operations import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED
from ropewalk.metadata.image import Broker, Image
from ropewalk.metadata.records import BrokerState
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_cluster import (
    AlertLabel,
    ClusterLoss,
    ClusterNode,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    NodeAlert,
    NodeDoor,
    NodeProblem,
)

_BROKERS: Final = 1


async def handle(
    request: DescribeClusterRequest, caller: Caller, *, image: Image, account: Callable[[], NodeAccount]
) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            throttle_ms=0,
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="controllers have no listener for clients here",
        )
    brokers_known = registered_brokers if request.include_fenced_brokers else reachable_brokers
    brokers = tuple(
        DescribeClusterBroker(
            broker.node_id,
            endpoint.host,
            endpoint.port,
            broker.rack,
            is_fenced=broker.state is BrokerState.FENCED,
        )
        for broker, endpoint in brokers_known(image, caller.listener)
    )
    response = DescribeClusterResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=image.cluster_id or "",
        controller_id=controller_for_clients(image, caller.listener),
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )
    return _with_nodes(response, image, account()) if request.include_nodes else response


def _state(broker: Broker) -> str:
    """In a word. Of one that is to leave it is no trouble that it is gone, and no help that it is there."""
    if not broker.is_leaving:
        return broker.state.value
    return "left" if broker.state is BrokerState.FENCED else "leaving"


def _with_nodes(
    response: DescribeClusterResponse, image: Image, account: NodeAccount
) -> DescribeClusterResponse:
    return structs.replace(
        response,
        nodes=tuple(
            ClusterNode(
                node_id=broker.node_id,
                epoch=broker.epoch,
                state=_state(broker),
                roles=broker.roles,
                rack=broker.rack,
                doors=tuple(NodeDoor(each.listener, each.host, each.port) for each in broker.endpoints),
                version=broker.version,
                level_min=broker.level_min,
                level_max=broker.level_max,
                in_maintenance=broker.in_maintenance,
            )
            for broker in image.brokers.values()
        ),
        deciding_id=-1 if image.controller_id is None else image.controller_id,
        deciding_epoch=image.controller_epoch,
        metadata_offset=account.metadata_offset,
        answering_id=account.node_id,
        answering_version=account.version,
        decides=account.decides,
        age_ms=account.age_ms,
        controller_offset=account.controller_offset,
        session_timeout_ms=account.session_timeout_ms,
        problems=tuple(NodeProblem(each.check, each.problem) for each in account.complaints),
        warnings=account.warnings,
        level=image.level,
        finalize=account.finalize,
        alerts=tuple(
            NodeAlert(
                name=alert.name,
                severity=alert.severity,
                state=alert.state,
                summary=alert.summary,
                labels=tuple(AlertLabel(name, value) for name, value in alert.labels),
                since_ms=alert.since_ms,
                silenced_until_ms=-1 if alert.silenced_until_ms is None else alert.silenced_until_ms,
            )
            for alert in account.alerts
        ),
        losses=tuple(
            ClusterLoss(
                topic_name=topic.name if (topic := image.topics_by_id.get(loss.topic_id)) is not None else "",
                index=loss.index,
                leader_id=loss.leader,
                leader_epoch=loss.leader_epoch,
                at_ms=loss.at_ms,
                reason=loss.reason,
            )
            for loss in image.losses
        ),
    )
