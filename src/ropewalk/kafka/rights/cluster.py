"""Refusals of what needs a right on the cluster, and the guards of settings and of what the cluster tells of itself."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.config_resources import GROUP, TOPIC
from ropewalk.kafka.operations import OPERATIONS_NOT_ASKED
from ropewalk.kafka.refusals import REFUSALS
from ropewalk.kafka.rights.needs import Guard, OnCluster, RefuseAll
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.security.access import Operation
from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_configs,
    alter_replica_log_dirs,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_log_dirs,
    describe_user_scram_credentials,
    incremental_alter_configs,
    list_config_resources,
    list_partition_reassignments,
    write_txn_markers,
)
from ropewalk.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ropewalk.wire.types import Message

WHY: Final = "not authorized on the cluster"
_CODE: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_LOG_DIRS_SAY_SINCE: Final = 3


def on_cluster(api: AnyApi, *operations: Operation) -> OnCluster:
    """One of the operations, and the refusal in the API's own terms."""
    return OnCluster(operations, _refusal(api))


def _refusal(api: AnyApi) -> RefuseAll:
    refuse = _REFUSALS.get(api.key)
    if refuse is not None:
        return refuse
    of_all = REFUSALS[api.key]
    return lambda request, _: of_all(request, _CODE, WHY)


def _describe_log_dirs(_request: Any, version: int) -> Message:
    return describe_log_dirs.DescribeLogDirsResponse(
        throttle_ms=0, error_code=_CODE if version >= _LOG_DIRS_SAY_SINCE else ErrorCode.NONE
    )


def _alter_replica_log_dirs(
    request: alter_replica_log_dirs.AlterReplicaLogDirsRequest, _version: int
) -> Message:
    indexes: dict[str, list[int]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            indexes.setdefault(topic.name, []).extend(topic.partitions)
    return alter_replica_log_dirs.AlterReplicaLogDirsResponse(
        throttle_ms=0,
        results=tuple(
            alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
                name,
                tuple(
                    alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(index, _CODE) for index in each
                ),
            )
            for name, each in indexes.items()
        ),
    )


def _write_txn_markers(request: write_txn_markers.WriteTxnMarkersRequest, _version: int) -> Message:
    return write_txn_markers.WriteTxnMarkersResponse(
        tuple(
            write_txn_markers.WritableTxnMarkerResult(
                marker.producer_id,
                tuple(
                    write_txn_markers.WritableTxnMarkerTopicResult(
                        topic.name,
                        tuple(
                            write_txn_markers.WritableTxnMarkerPartitionResult(index, _CODE)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


_REFUSALS: Final[dict[int, RefuseAll]] = {
    alter_replica_log_dirs.API.key: _alter_replica_log_dirs,
    describe_acls.API.key: lambda _request, _version: describe_acls.DescribeAclsResponse(0, _CODE, WHY, ()),
    describe_client_quotas.API.key: lambda _request, _version: (
        describe_client_quotas.DescribeClientQuotasResponse(0, _CODE, WHY, None)
    ),
    describe_log_dirs.API.key: _describe_log_dirs,
    describe_user_scram_credentials.API.key: lambda _request, _version: (
        describe_user_scram_credentials.DescribeUserScramCredentialsResponse(0, _CODE, WHY, ())
    ),
    list_config_resources.API.key: lambda _request, _version: (
        list_config_resources.ListConfigResourcesResponse(0, _CODE)
    ),
    list_partition_reassignments.API.key: lambda _request, _version: (
        list_partition_reassignments.ListPartitionReassignmentsResponse(0, _CODE, WHY, ())
    ),
    write_txn_markers.API.key: _write_txn_markers,
}
"""Of those that no node forwards to the controller; the others are in `kafka/refusals.py`."""


async def describe_cluster(
    request: DescribeClusterRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    """Nodes, losses and complaints, which name topics, are for those who may describe the cluster."""
    if request.include_nodes and not rights.cluster(caller, Operation.DESCRIBE):
        request = structs.replace(request, include_nodes=False)
    answer = await handle(request, caller)
    if (
        isinstance(answer, DescribeClusterResponse)
        and answer.cluster_authorized_operations != OPERATIONS_NOT_ASKED
    ):
        return structs.replace(answer, cluster_authorized_operations=rights.cluster_bits(caller))
    return answer


def _of_settings(
    operation: Operation, answers: str, refused: Callable[[Any, ErrorCode, str], Message], empty: Message
) -> Guard:
    """Settings of topics and groups are theirs; all others are the cluster's."""

    async def guard(request: Any, caller: Caller, rights: Rights, handle: Handle) -> Message | None:
        allowed: list[Any] = []
        refusals: list[Message] = []
        for resource in request.resources:
            code = _refused_setting(resource, caller, rights, operation)
            if code is None:
                allowed.append(resource)
            else:
                refusals.append(refused(resource, code, "not authorized on the resource"))
        if not refusals:
            return await handle(request, caller)
        answer: Message | None = empty
        if allowed:
            answer = await handle(structs.replace(request, resources=tuple(allowed)), caller)
        assert answer is not None, "it is always answered"
        return structs.replace(answer, **{answers: (*getattr(answer, answers), *refusals)})

    return guard


def _refused_setting(resource: Any, caller: Caller, rights: Rights, operation: Operation) -> ErrorCode | None:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        return None if rights.topic(caller, operation, name) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource.resource_type == GROUP:
        return None if rights.group(caller, operation, name) else ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None if rights.cluster(caller, operation) else _CODE


DESCRIBE_CONFIGS: Final = _of_settings(
    Operation.DESCRIBE_CONFIGS,
    "results",
    lambda resource, code, why: describe_configs.DescribeConfigsResult(
        code, why, resource.resource_type, resource.resource_name, ()
    ),
    describe_configs.DescribeConfigsResponse(0, ()),
)
ALTER_CONFIGS: Final = _of_settings(
    Operation.ALTER_CONFIGS,
    "responses",
    lambda resource, code, why: alter_configs.AlterConfigsResourceResponse(
        code, why, resource.resource_type, resource.resource_name
    ),
    alter_configs.AlterConfigsResponse(0, ()),
)
INCREMENTAL_ALTER_CONFIGS: Final = _of_settings(
    Operation.ALTER_CONFIGS,
    "responses",
    lambda resource, code, why: incremental_alter_configs.AlterConfigsResourceResponse(
        code, why, resource.resource_type, resource.resource_name
    ),
    incremental_alter_configs.IncrementalAlterConfigsResponse(0, ()),
)
