"""Answers that refuse everything that a request asks for, for the requests that are taken to the controller.

Behaviour worth knowing
    Kafka has no place for one error about a whole request in most of these: each topic, resource or entity is refused by itself.
"""

from collections.abc import Callable
from typing import Any, Final

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_quorum,
    elect_leaders,
    incremental_alter_configs,
    issue_token,
    replace_token_key,
    unregister_broker,
    update_features,
)
from ropewalk.wire.types import Message

Refuse = Callable[[Any, ErrorCode, str], Message]
"""Takes the API's own request class, which is why it says Any."""


def _create_topics(request: create_topics.CreateTopicsRequest, code: ErrorCode, why: str) -> Message:
    names = dict.fromkeys(topic.name for topic in request.topics)
    results = [create_topics.CreatableTopicResult(name, error_code=code, error_message=why) for name in names]
    return create_topics.CreateTopicsResponse(throttle_ms=0, topics=tuple(results))


def _delete_topics(request: delete_topics.DeleteTopicsRequest, code: ErrorCode, why: str) -> Message:
    named = request.topics or [delete_topics.DeleteTopicState(name) for name in request.topic_names]
    results = [
        delete_topics.DeletableTopicResult(topic.name, topic.topic_id, code, why)
        for topic in dict.fromkeys(named)
    ]
    return delete_topics.DeleteTopicsResponse(throttle_ms=0, topics=tuple(results))


def _create_partitions(
    request: create_partitions.CreatePartitionsRequest, code: ErrorCode, why: str
) -> Message:
    names = dict.fromkeys(topic.name for topic in request.topics)
    results = [create_partitions.CreatePartitionsTopicResult(name, code, why) for name in names]
    return create_partitions.CreatePartitionsResponse(throttle_ms=0, results=tuple(results))


def _alter_configs(request: alter_configs.AlterConfigsRequest, code: ErrorCode, why: str) -> Message:
    results = [
        alter_configs.AlterConfigsResourceResponse(code, why, resource.resource_type, resource.resource_name)
        for resource in request.resources
    ]
    return alter_configs.AlterConfigsResponse(throttle_ms=0, responses=tuple(results))


def _incremental_alter_configs(
    request: incremental_alter_configs.IncrementalAlterConfigsRequest, code: ErrorCode, why: str
) -> Message:
    results = [
        incremental_alter_configs.AlterConfigsResourceResponse(
            code, why, resource.resource_type, resource.resource_name
        )
        for resource in request.resources
    ]
    return incremental_alter_configs.IncrementalAlterConfigsResponse(throttle_ms=0, responses=tuple(results))


def _alter_client_quotas(
    request: alter_client_quotas.AlterClientQuotasRequest, code: ErrorCode, why: str
) -> Message:
    results = [alter_client_quotas.EntryDataResponse(code, why, entry.entity) for entry in request.entries]
    return alter_client_quotas.AlterClientQuotasResponse(throttle_ms=0, entries=tuple(results))


def _alter_user_scram_credentials(
    request: alter_user_scram_credentials.AlterUserScramCredentialsRequest, code: ErrorCode, why: str
) -> Message:
    names = dict.fromkeys(
        [deletion.name for deletion in request.deletions]
        + [upsertion.name for upsertion in request.upsertions]
    )
    results = [
        alter_user_scram_credentials.AlterUserScramCredentialsResult(name, code, why) for name in names
    ]
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        throttle_ms=0, results=tuple(results)
    )


def _elect_leaders(request: elect_leaders.ElectLeadersRequest, code: ErrorCode, why: str) -> Message:
    results = [
        elect_leaders.ReplicaElectionResult(
            topic.name,
            tuple(elect_leaders.PartitionResult(index, code, why) for index in topic.partitions),
        )
        for topic in request.topic_partitions or ()
    ]
    return elect_leaders.ElectLeadersResponse(0, code, tuple(results))


def _alter_partition_reassignments(
    request: alter_partition_reassignments.AlterPartitionReassignmentsRequest, code: ErrorCode, why: str
) -> Message:
    return alter_partition_reassignments.AlterPartitionReassignmentsResponse(
        throttle_ms=0,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=code,
        error_message=why,
    )


def _unregister_broker(
    _request: unregister_broker.UnregisterBrokerRequest, code: ErrorCode, why: str
) -> Message:
    return unregister_broker.UnregisterBrokerResponse(throttle_ms=0, error_code=code, error_message=why)


def _update_features(_request: update_features.UpdateFeaturesRequest, code: ErrorCode, why: str) -> Message:
    return update_features.UpdateFeaturesResponse(throttle_ms=0, error_code=code, error_message=why)


def _describe_quorum(_request: describe_quorum.DescribeQuorumRequest, code: ErrorCode, why: str) -> Message:
    return describe_quorum.DescribeQuorumResponse(error_code=code, error_message=why)


def _create_acls(request: create_acls.CreateAclsRequest, code: ErrorCode, why: str) -> Message:
    results = [create_acls.AclCreationResult(code, why) for _ in request.creations]
    return create_acls.CreateAclsResponse(throttle_ms=0, results=tuple(results))


def _delete_acls(request: delete_acls.DeleteAclsRequest, code: ErrorCode, why: str) -> Message:
    results = [delete_acls.DeleteAclsFilterResult(code, why, ()) for _ in request.filters]
    return delete_acls.DeleteAclsResponse(throttle_ms=0, filter_results=tuple(results))


def _issue_token(_request: issue_token.IssueTokenRequest, code: ErrorCode, why: str) -> Message:
    return issue_token.IssueTokenResponse(throttle_ms=0, error_code=code, error_message=why)


def _replace_token_key(
    _request: replace_token_key.ReplaceTokenKeyRequest, code: ErrorCode, why: str
) -> Message:
    return replace_token_key.ReplaceTokenKeyResponse(throttle_ms=0, error_code=code, error_message=why)


REFUSALS: Final[dict[int, Refuse]] = {
    create_topics.API.key: _create_topics,
    delete_topics.API.key: _delete_topics,
    create_partitions.API.key: _create_partitions,
    alter_configs.API.key: _alter_configs,
    incremental_alter_configs.API.key: _incremental_alter_configs,
    alter_client_quotas.API.key: _alter_client_quotas,
    alter_user_scram_credentials.API.key: _alter_user_scram_credentials,
    create_acls.API.key: _create_acls,
    delete_acls.API.key: _delete_acls,
    elect_leaders.API.key: _elect_leaders,
    alter_partition_reassignments.API.key: _alter_partition_reassignments,
    unregister_broker.API.key: _unregister_broker,
    update_features.API.key: _update_features,
    describe_quorum.API.key: _describe_quorum,
    issue_token.API.key: _issue_token,
    replace_token_key.API.key: _replace_token_key,
}
"""By API key: everything that only the controller can carry out, or knows."""
