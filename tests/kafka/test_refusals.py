"""Refusing a whole request: every item that was asked for is answered, and nothing else."""

import pytest

from ropewalk.kafka.apis import SERVED_APIS
from ropewalk.kafka.refusals import REFUSALS
from ropewalk.wire.api import AnyApi
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

REQUESTS: list[tuple[AnyApi, Message]] = [
    (
        create_topics.API,
        create_topics.CreateTopicsRequest((create_topics.CreatableTopic("t", 1, 1),)),
    ),
    (
        delete_topics.API,
        delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState("t"),), ("t",)),
    ),
    (
        create_partitions.API,
        create_partitions.CreatePartitionsRequest(
            (create_partitions.CreatePartitionsTopic("t", 2, None),), 1000, validate_only=False
        ),
    ),
    (
        alter_configs.API,
        alter_configs.AlterConfigsRequest(
            (alter_configs.AlterConfigsResource(2, "t", ()),), validate_only=False
        ),
    ),
    (
        incremental_alter_configs.API,
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            (incremental_alter_configs.AlterConfigsResource(2, "t", ()),), validate_only=False
        ),
    ),
    (
        alter_client_quotas.API,
        alter_client_quotas.AlterClientQuotasRequest(
            (alter_client_quotas.EntryData((alter_client_quotas.EntityData("user", "t"),), ()),),
            validate_only=False,
        ),
    ),
    (
        alter_user_scram_credentials.API,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            (alter_user_scram_credentials.ScramCredentialDeletion("t", 1),),
            (alter_user_scram_credentials.ScramCredentialUpsertion("t", 2, 4096, b"", b""),),
        ),
    ),
    (
        elect_leaders.API,
        elect_leaders.ElectLeadersRequest(0, (elect_leaders.TopicPartitions("t", (0,)),)),
    ),
    (
        alter_partition_reassignments.API,
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(),
    ),
    (
        create_acls.API,
        create_acls.CreateAclsRequest((create_acls.AclCreation(2, "t", 3, "User:a", "*", 3, 3),)),
    ),
    (
        delete_acls.API,
        delete_acls.DeleteAclsRequest((delete_acls.DeleteAclsFilter(1, None, 1, None, None, 1, 1),)),
    ),
    (unregister_broker.API, unregister_broker.UnregisterBrokerRequest(1)),
    (update_features.API, update_features.UpdateFeaturesRequest(1000, ())),
    (describe_quorum.API, describe_quorum.DescribeQuorumRequest(())),
    (issue_token.API, issue_token.IssueTokenRequest("t", -1)),
    (replace_token_key.API, replace_token_key.ReplaceTokenKeyRequest()),
]


def test_every_forwarded_api_is_in_this_table() -> None:
    assert {api.key for api, _ in REQUESTS} == REFUSALS.keys()
    assert REFUSALS.keys() <= {api.key for api in SERVED_APIS}


@pytest.mark.parametrize(("api", "request_"), [pytest.param(*each, id=each[0].name) for each in REQUESTS])
def test_the_refusal_says_why_in_every_version(api: AnyApi, request_: Message) -> None:
    refusal = REFUSALS[api.key](request_, ErrorCode.NOT_CONTROLLER, "nobody decides")
    for version in api.versions:
        body = b"".join(api.encode_response(version, refusal))
        decoded = api.decode_response(version, memoryview(body), 0, len(body))
        assert f"error_code={ErrorCode.NOT_CONTROLLER.value}" in repr(decoded), version
    assert "nobody decides" in repr(refusal)
    if api not in (
        alter_partition_reassignments.API,
        create_acls.API,
        delete_acls.API,
        unregister_broker.API,
        update_features.API,
        describe_quorum.API,
        issue_token.API,
        replace_token_key.API,
    ):
        assert "'t'" in repr(refusal)
