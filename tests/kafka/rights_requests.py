"""For every API that is served, requests that need all the rights that its entry in `kafka/apis.py` names.

They are about one topic, one group and one transactional id, and about everything where an API can be asked so. Beside these there are
others with names that nobody asks for, and that no answer may contain.
"""

from collections.abc import Callable
from typing import Final

from ropewalk.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    issue_token,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    replace_token_key,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from ropewalk.wire.types import UUID_ZERO, Message
from tests.kafka.door import batch_of

TOPIC: Final = "asked-topic"
GROUP: Final = "asked-group"
ID: Final = "asked-id"
USER: Final = "asked-user"
TYPE_TOPIC, TYPE_BROKER, TYPE_GROUP = 2, 4, 32

Requests = tuple[Message, ...]


class Asked:
    """What is known of the world when requests are made."""

    def __init__(self, topic_id: bytes) -> None:
        self.topic_id = topic_id

    def by(self, version: int, since: int) -> tuple[str, bytes]:
        """The topic's name or its id, as a version has it."""
        return ("", self.topic_id) if version >= since else (TOPIC, UUID_ZERO)


def _produce(version: int, asked: Asked) -> Requests:
    name, topic_id = asked.by(version, 13)
    data = produce.PartitionProduceData(0, bytes(batch_of("a")))
    return (produce.ProduceRequest(ID, -1, 1000, (produce.TopicProduceData(name, topic_id, (data,)),)),)


def _fetch(version: int, asked: Asked) -> Requests:
    name, topic_id = asked.by(version, 13)
    topic = fetch.FetchTopic(name, topic_id, (fetch.FetchPartition(0, partition_max_bytes=1 << 20),))
    whole = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
    return (whole,)


def _metadata(version: int, asked: Asked) -> Requests:
    by_name = metadata.MetadataRequest(
        (metadata.MetadataRequestTopic(name=TOPIC),),
        include_cluster_authorized_operations=8 <= version <= 10,
        include_topic_authorized_operations=version >= 8,
    )
    everything = metadata.MetadataRequest(None if version else ())
    if version < 12:
        return (by_name, everything)
    by_id = metadata.MetadataRequest((metadata.MetadataRequestTopic(asked.topic_id),))
    return (by_name, everything, by_id)


def _offset_commit(version: int, asked: Asked) -> Requests:
    name, topic_id = asked.by(version, 10)
    partitions = (offset_commit.OffsetCommitRequestPartition(0, 1),)
    topics = (offset_commit.OffsetCommitRequestTopic(name, topic_id, partitions),)
    return (offset_commit.OffsetCommitRequest(GROUP, topics=topics),)


def _offset_fetch(version: int, asked: Asked) -> Requests:
    name, topic_id = asked.by(version, 10)
    if version < 8:
        named = offset_fetch.OffsetFetchRequest(GROUP, (offset_fetch.OffsetFetchRequestTopic(TOPIC, (0,)),))
        return (named, offset_fetch.OffsetFetchRequest(GROUP, None)) if version >= 2 else (named,)
    topics = (offset_fetch.OffsetFetchRequestTopics(name, topic_id, (0,)),)
    return tuple(
        offset_fetch.OffsetFetchRequest(groups=(offset_fetch.OffsetFetchRequestGroup(GROUP, topics=each),))
        for each in (topics, None)
    )


def _find_coordinator(version: int, _: Asked) -> Requests:
    if version == 0:
        return (find_coordinator.FindCoordinatorRequest(GROUP),)
    if version < 4:
        return (
            find_coordinator.FindCoordinatorRequest(GROUP, 0),
            find_coordinator.FindCoordinatorRequest(ID, 1),
        )
    return (
        find_coordinator.FindCoordinatorRequest("", 0, (GROUP,)),
        find_coordinator.FindCoordinatorRequest("", 1, (ID,)),
    )


def _delete_topics(version: int, asked: Asked) -> Requests:
    if version < 6:
        return (delete_topics.DeleteTopicsRequest((), (TOPIC,), 1000),)
    return (
        delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState(None, asked.topic_id),), (), 1000),
        delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState(TOPIC),), (), 1000),
    )


def _add_partitions(version: int, _: Asked) -> Requests:
    if version >= 4:
        return ()  # refused to every client
    topics = (add_partitions_to_txn.AddPartitionsToTxnTopic(TOPIC, (0,)),)
    return (add_partitions_to_txn.AddPartitionsToTxnRequest((), ID, 1, 0, topics),)


def _txn_offset_commit(version: int, asked: Asked) -> Requests:
    name, topic_id = asked.by(version, 6)
    partitions = (txn_offset_commit.TxnOffsetCommitRequestPartition(0, 1),)
    topics = (txn_offset_commit.TxnOffsetCommitRequestTopic(name, topic_id, partitions),)
    return (txn_offset_commit.TxnOffsetCommitRequest(ID, GROUP, 1, 0, topics=topics),)


def _always(*requests: Message) -> Callable[[int, Asked], Requests]:
    return lambda _version, _asked: requests


_MARKER: Final = write_txn_markers.WritableTxnMarker(
    1, 0, False, (write_txn_markers.WritableTxnMarkerTopic(TOPIC, (0,)),), 0
)

REQUESTS: Final[dict[int, Callable[[int, Asked], Requests]]] = {
    produce.API.key: _produce,
    fetch.API.key: _fetch,
    list_offsets.API.key: _always(
        list_offsets.ListOffsetsRequest(
            -1,
            topics=(
                list_offsets.ListOffsetsTopic(TOPIC, (list_offsets.ListOffsetsPartition(0, timestamp=-1),)),
            ),
        )
    ),
    metadata.API.key: _metadata,
    offset_commit.API.key: _offset_commit,
    offset_fetch.API.key: _offset_fetch,
    find_coordinator.API.key: _find_coordinator,
    join_group.API.key: lambda version, _: (
        join_group.JoinGroupRequest(
            GROUP,
            10_000,
            10_000 if version else -1,
            "",
            None,
            "consumer",
            (join_group.JoinGroupRequestProtocol("range", b""),),
        ),
    ),
    heartbeat.API.key: _always(heartbeat.HeartbeatRequest(GROUP, 1, "m")),
    leave_group.API.key: lambda version, _: (
        leave_group.LeaveGroupRequest(GROUP, "m")
        if version < 3
        else leave_group.LeaveGroupRequest(GROUP, members=(leave_group.MemberIdentity("m"),)),
    ),
    sync_group.API.key: lambda version, _: (
        sync_group.SyncGroupRequest(
            GROUP,
            1,
            "m",
            protocol_type="consumer" if version >= 5 else None,
            protocol_name="range" if version >= 5 else None,
        ),
    ),
    describe_groups.API.key: lambda version, _: (
        describe_groups.DescribeGroupsRequest((GROUP,), include_authorized_operations=version >= 3),
    ),
    list_groups.API.key: _always(list_groups.ListGroupsRequest()),
    sasl_handshake.API.key: _always(),  # about the connection, which has no part in rights
    sasl_authenticate.API.key: _always(),
    api_versions.API.key: _always(api_versions.ApiVersionsRequest("a", "1")),
    create_topics.API.key: _always(
        create_topics.CreateTopicsRequest((create_topics.CreatableTopic(TOPIC, 1, 1),), 1000)
    ),
    delete_topics.API.key: _delete_topics,
    delete_records.API.key: _always(
        delete_records.DeleteRecordsRequest(
            (delete_records.DeleteRecordsTopic(TOPIC, (delete_records.DeleteRecordsPartition(0, 1),)),), 1000
        )
    ),
    init_producer_id.API.key: _always(init_producer_id.InitProducerIdRequest(ID, 60_000)),
    offset_for_leader_epoch.API.key: _always(
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=(
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    TOPIC, (offset_for_leader_epoch.OffsetForLeaderPartition(0),)
                ),
            )
        )
    ),
    describe_configs.API.key: _always(
        describe_configs.DescribeConfigsRequest(
            (
                describe_configs.DescribeConfigsResource(TYPE_TOPIC, TOPIC, None),
                describe_configs.DescribeConfigsResource(TYPE_GROUP, GROUP, None),
                describe_configs.DescribeConfigsResource(TYPE_BROKER, "0", None),
            )
        )
    ),
    alter_configs.API.key: _always(
        alter_configs.AlterConfigsRequest(
            (
                alter_configs.AlterConfigsResource(
                    TYPE_TOPIC, TOPIC, (alter_configs.AlterableConfig("retention.ms", "1000"),)
                ),
                alter_configs.AlterConfigsResource(TYPE_GROUP, GROUP, ()),
                alter_configs.AlterConfigsResource(TYPE_BROKER, "0", ()),
            ),
            validate_only=False,
        )
    ),
    incremental_alter_configs.API.key: _always(
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            (
                incremental_alter_configs.AlterConfigsResource(
                    TYPE_TOPIC, TOPIC, (incremental_alter_configs.AlterableConfig("retention.ms", 0, "1000"),)
                ),
                incremental_alter_configs.AlterConfigsResource(TYPE_GROUP, GROUP, ()),
                incremental_alter_configs.AlterConfigsResource(TYPE_BROKER, "0", ()),
            ),
            validate_only=False,
        )
    ),
    create_partitions.API.key: _always(
        create_partitions.CreatePartitionsRequest(
            (create_partitions.CreatePartitionsTopic(TOPIC, 9, None),), 1000, validate_only=False
        )
    ),
    delete_groups.API.key: _always(delete_groups.DeleteGroupsRequest((GROUP,))),
    offset_delete.API.key: _always(
        offset_delete.OffsetDeleteRequest(
            GROUP,
            (
                offset_delete.OffsetDeleteRequestTopic(
                    TOPIC, (offset_delete.OffsetDeleteRequestPartition(0),)
                ),
            ),
        )
    ),
    describe_cluster.API.key: _always(
        describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    ),
    describe_acls.API.key: _always(describe_acls.DescribeAclsRequest(1, None, 1, None, None, 1, 1)),
    create_acls.API.key: _always(
        create_acls.CreateAclsRequest((create_acls.AclCreation(2, "x", 3, "User:x", "*", 3, 3),))
    ),
    delete_acls.API.key: _always(
        delete_acls.DeleteAclsRequest((delete_acls.DeleteAclsFilter(1, "x", 1, None, None, 1, 1),))
    ),
    describe_log_dirs.API.key: _always(describe_log_dirs.DescribeLogDirsRequest(None)),
    elect_leaders.API.key: _always(
        elect_leaders.ElectLeadersRequest(0, (elect_leaders.TopicPartitions(TOPIC, (0,)),))
    ),
    alter_partition_reassignments.API.key: _always(
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(),
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(balance=True, validate_only=True),
    ),
    unregister_broker.API.key: _always(unregister_broker.UnregisterBrokerRequest(77)),
    update_features.API.key: _always(update_features.UpdateFeaturesRequest(1000, ())),
    list_partition_reassignments.API.key: _always(
        list_partition_reassignments.ListPartitionReassignmentsRequest()
    ),
    describe_client_quotas.API.key: _always(
        describe_client_quotas.DescribeClientQuotasRequest((), strict=False)
    ),
    alter_client_quotas.API.key: _always(
        alter_client_quotas.AlterClientQuotasRequest(
            (
                alter_client_quotas.EntryData(
                    (alter_client_quotas.EntityData("user", "x"),),
                    (alter_client_quotas.OpData("producer_byte_rate", 1e6, remove=False),),
                ),
            ),
            validate_only=False,
        )
    ),
    describe_user_scram_credentials.API.key: _always(
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(None)
    ),
    issue_token.API.key: _always(issue_token.IssueTokenRequest(USER, -1)),
    replace_token_key.API.key: _always(replace_token_key.ReplaceTokenKeyRequest()),
    alter_user_scram_credentials.API.key: _always(
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            (alter_user_scram_credentials.ScramCredentialDeletion("x", 1),), ()
        )
    ),
    describe_producers.API.key: _always(
        describe_producers.DescribeProducersRequest((describe_producers.TopicRequest(TOPIC, (0,)),))
    ),
    describe_topic_partitions.API.key: _always(
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            (describe_topic_partitions.TopicRequest(TOPIC),)
        ),
        describe_topic_partitions.DescribeTopicPartitionsRequest(()),
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            (), cursor=describe_topic_partitions.Cursor("a", 0)
        ),
    ),
    add_partitions_to_txn.API.key: _add_partitions,
    add_offsets_to_txn.API.key: _always(add_offsets_to_txn.AddOffsetsToTxnRequest(ID, 1, 0, GROUP)),
    end_txn.API.key: _always(end_txn.EndTxnRequest(ID, 1, 0, committed=True)),
    txn_offset_commit.API.key: _txn_offset_commit,
    write_txn_markers.API.key: _always(write_txn_markers.WriteTxnMarkersRequest((_MARKER,))),
    describe_transactions.API.key: _always(describe_transactions.DescribeTransactionsRequest((ID,))),
    list_transactions.API.key: _always(list_transactions.ListTransactionsRequest((), ())),
    consumer_group_heartbeat.API.key: lambda version, _: (
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            GROUP,
            "" if version == 0 else "m",
            0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=(TOPIC,),
            topic_partitions=(),
        ),
    ),
    consumer_group_describe.API.key: _always(
        consumer_group_describe.ConsumerGroupDescribeRequest((GROUP,), include_authorized_operations=True)
    ),
    list_config_resources.API.key: _always(list_config_resources.ListConfigResourcesRequest()),
    describe_quorum.API.key: _always(
        describe_quorum.DescribeQuorumRequest(
            (describe_quorum.QuorumTopic("__cluster_metadata", (describe_quorum.QuorumPartition(0),)),)
        )
    ),
    alter_replica_log_dirs.API.key: _always(
        alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            (
                alter_replica_log_dirs.AlterReplicaLogDir(
                    "/data", (alter_replica_log_dirs.AlterReplicaLogDirTopic(TOPIC, (0,)),)
                ),
            )
        )
    ),
}
"""By API key: what is asked in a version. All of the requests together need all the rights."""
