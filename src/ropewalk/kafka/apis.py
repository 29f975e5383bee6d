"""Every API this node serves, with its versions and its handler. No listing, no API."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ids import NodeId
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.broker.administration.leadership import Leadership
from ropewalk.broker.administration.levels import Levels
from ropewalk.broker.administration.log_directories import LogDirectories
from ropewalk.broker.administration.quota_changes import QuotaChanges
from ropewalk.broker.cluster.quorum import Heard
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.coordinators.marker_writing import MarkerWriting
from ropewalk.broker.coordinators.transactions import Transactions
from ropewalk.broker.dispatch.transaction_entry import TransactionEntry
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.broker.reading.nearest import NearestReplicas
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.watching.cluster_health import NodeAccount
from ropewalk.kafka.described_topics import DescribedTopics
from ropewalk.kafka.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
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
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from ropewalk.kafka.handlers.delete_records import Trimming
from ropewalk.kafka.handlers.init_producer_id import ProducerIds
from ropewalk.kafka.refused_firsts import RefusedFirsts
from ropewalk.kafka.served import Handle, ServedApi, weigh_objects
from ropewalk.wire.api import Api
from ropewalk.wire.messages.add_offsets_to_txn import API as ADD_OFFSETS_TO_TXN
from ropewalk.wire.messages.add_partitions_to_txn import API as ADD_PARTITIONS_TO_TXN
from ropewalk.wire.messages.alter_client_quotas import API as ALTER_CLIENT_QUOTAS
from ropewalk.wire.messages.alter_configs import API as ALTER_CONFIGS
from ropewalk.wire.messages.alter_partition_reassignments import API as ALTER_PARTITION_REASSIGNMENTS
from ropewalk.wire.messages.alter_replica_log_dirs import API as ALTER_REPLICA_LOG_DIRS
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.api_versions import ApiVersion
from ropewalk.wire.messages.consumer_group_describe import API as CONSUMER_GROUP_DESCRIBE
from ropewalk.wire.messages.consumer_group_heartbeat import API as CONSUMER_GROUP_HEARTBEAT
from ropewalk.wire.messages.create_partitions import API as CREATE_PARTITIONS
from ropewalk.wire.messages.create_topics import API as CREATE_TOPICS
from ropewalk.wire.messages.delete_groups import API as DELETE_GROUPS
from ropewalk.wire.messages.delete_records import API as DELETE_RECORDS
from ropewalk.wire.messages.delete_topics import API as DELETE_TOPICS
from ropewalk.wire.messages.describe_acls import API as DESCRIBE_ACLS
from ropewalk.wire.messages.describe_client_quotas import API as DESCRIBE_CLIENT_QUOTAS
from ropewalk.wire.messages.describe_cluster import API as DESCRIBE_CLUSTER
from ropewalk.wire.messages.describe_configs import API as DESCRIBE_CONFIGS
from ropewalk.wire.messages.describe_groups import API as DESCRIBE_GROUPS
from ropewalk.wire.messages.describe_log_dirs import API as DESCRIBE_LOG_DIRS
from ropewalk.wire.messages.describe_producers import API as DESCRIBE_PRODUCERS
from ropewalk.wire.messages.describe_quorum import API as DESCRIBE_QUORUM
from ropewalk.wire.messages.describe_topic_partitions import API as DESCRIBE_TOPIC_PARTITIONS
from ropewalk.wire.messages.describe_transactions import API as DESCRIBE_TRANSACTIONS
from ropewalk.wire.messages.describe_user_scram_credentials import API as DESCRIBE_USER_SCRAM_CREDENTIALS
from ropewalk.wire.messages.elect_leaders import API as ELECT_LEADERS
from ropewalk.wire.messages.end_txn import API as END_TXN
from ropewalk.wire.messages.fetch import API as FETCH
from ropewalk.wire.messages.find_coordinator import API as FIND_COORDINATOR
from ropewalk.wire.messages.heartbeat import API as HEARTBEAT
from ropewalk.wire.messages.incremental_alter_configs import API as INCREMENTAL_ALTER_CONFIGS
from ropewalk.wire.messages.init_producer_id import API as INIT_PRODUCER_ID
from ropewalk.wire.messages.join_group import API as JOIN_GROUP
from ropewalk.wire.messages.leave_group import API as LEAVE_GROUP
from ropewalk.wire.messages.list_config_resources import API as LIST_CONFIG_RESOURCES
from ropewalk.wire.messages.list_groups import API as LIST_GROUPS
from ropewalk.wire.messages.list_offsets import API as LIST_OFFSETS
from ropewalk.wire.messages.list_partition_reassignments import API as LIST_PARTITION_REASSIGNMENTS
from ropewalk.wire.messages.list_transactions import API as LIST_TRANSACTIONS
from ropewalk.wire.messages.metadata import API as METADATA
from ropewalk.wire.messages.offset_commit import API as OFFSET_COMMIT
from ropewalk.wire.messages.offset_delete import API as OFFSET_DELETE
from ropewalk.wire.messages.offset_fetch import API as OFFSET_FETCH
from ropewalk.wire.messages.offset_for_leader_epoch import API as OFFSET_FOR_LEADER_EPOCH
from ropewalk.wire.messages.produce import API as PRODUCE
from ropewalk.wire.messages.sync_group import API as SYNC_GROUP
from ropewalk.wire.messages.txn_offset_commit import API as TXN_OFFSET_COMMIT
from ropewalk.wire.messages.unregister_broker import API as UNREGISTER_BROKER
from ropewalk.wire.messages.update_features import API as UPDATE_FEATURES
from ropewalk.wire.messages.write_txn_markers import API as WRITE_TXN_MARKERS

ADVERTISED_MIN: Final = {PRODUCE.key: 0}
"""Kafka says 0 for Produce although it understands 3 and up: older librdkafka stops compressing otherwise."""

SERVED_APIS: Final[tuple[Api[Any, Any], ...]] = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DELETE_RECORDS,
    INIT_PRODUCER_ID,
    OFFSET_FOR_LEADER_EPOCH,
    DESCRIBE_CONFIGS,
    CREATE_PARTITIONS,
    DELETE_GROUPS,
    INCREMENTAL_ALTER_CONFIGS,
    OFFSET_DELETE,
    DESCRIBE_CLUSTER,
    DESCRIBE_ACLS,
    ALTER_CONFIGS,
    DESCRIBE_LOG_DIRS,
    ELECT_LEADERS,
    ALTER_PARTITION_REASSIGNMENTS,
    UNREGISTER_BROKER,
    UPDATE_FEATURES,
    LIST_PARTITION_REASSIGNMENTS,
    DESCRIBE_CLIENT_QUOTAS,
    ALTER_CLIENT_QUOTAS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    ADD_PARTITIONS_TO_TXN,
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
    LIST_CONFIG_RESOURCES,
    DESCRIBE_QUORUM,
    ALTER_REPLICA_LOG_DIRS,
)
"""Each in all the versions its codec knows."""


def serve(
    *,
    hosted: HostedPartitions,
    topics: Topics,
    trimming: Trimming,
    producer_ids: ProducerIds,
    directories: LogDirectories,
    leadership: Leadership,
    balancing: Balancing,
    levels: Levels,
    quota_changes: QuotaChanges,
    groups: Groups,
    transactions: Transactions,
    entry: TransactionEntry,
    marker_writing: MarkerWriting,
    fetch_sessions: FetchSessions,
    budget: ByteBudget,
    pool: Pool,
    clock: Clock,
    node_id: NodeId,
    account: Callable[[], NodeAccount],
    heard: Mapping[NodeId, Heard],
) -> dict[int, ServedApi]:
    """The table by API key: each handler bound to just what it may touch."""
    image = topics.image
    handlers: dict[int, Handle] = {
        PRODUCE.key: partial(
            produce.handle, hosted=hosted, pool=pool, join=entry.join, firsts=RefusedFirsts()
        ),
        FETCH.key: partial(
            fetch.handle,
            hosted=hosted,
            sessions=fetch_sessions,
            pool=pool,
            budget=budget,
            clock=clock,
            bytes_max=topics.broker_settings.fetch_max_bytes,
            nearest=NearestReplicas(
                image, node_id, is_wanted=topics.broker_settings.replica_selector_class is not None
            ),
        ),
        LIST_OFFSETS.key: partial(list_offsets.handle, hosted=hosted, pool=pool),
        METADATA.key: partial(
            metadata.handle, image=image, creation=topics, described=DescribedTopics(image)
        ),
        OFFSET_COMMIT.key: partial(offset_commit.handle, groups=groups, image=image),
        OFFSET_FETCH.key: partial(offset_fetch.handle, groups=groups, image=image),
        FIND_COORDINATOR.key: partial(
            find_coordinator.handle, groups=groups, transactions=transactions, image=image
        ),
        JOIN_GROUP.key: partial(join_group.handle, groups=groups),
        HEARTBEAT.key: partial(heartbeat.handle, groups=groups),
        LEAVE_GROUP.key: partial(leave_group.handle, groups=groups),
        SYNC_GROUP.key: partial(sync_group.handle, groups=groups),
        DESCRIBE_GROUPS.key: partial(describe_groups.handle, groups=groups),
        CONSUMER_GROUP_HEARTBEAT.key: partial(consumer_group_heartbeat.handle, groups=groups),
        CONSUMER_GROUP_DESCRIBE.key: partial(consumer_group_describe.handle, groups=groups, image=image),
        LIST_GROUPS.key: partial(list_groups.handle, groups=groups),
        API_VERSIONS.key: partial(api_versions.handle, advertised=advertised(), image=image),
        CREATE_TOPICS.key: partial(create_topics.handle, topics=topics),
        DELETE_TOPICS.key: partial(delete_topics.handle, topics=topics),
        DELETE_RECORDS.key: partial(delete_records.handle, hosted=hosted, topics=topics, trimming=trimming),
        INIT_PRODUCER_ID.key: partial(
            init_producer_id.handle, producer_ids=producer_ids, transactions=transactions
        ),
        OFFSET_FOR_LEADER_EPOCH.key: partial(offset_for_leader_epoch.handle, hosted=hosted),
        DESCRIBE_CONFIGS.key: partial(
            describe_configs.handle, image=image, view=topics.view, node_id=node_id
        ),
        CREATE_PARTITIONS.key: partial(create_partitions.handle, topics=topics),
        INCREMENTAL_ALTER_CONFIGS.key: partial(
            incremental_alter_configs.handle, topics=topics, node_id=node_id
        ),
        DELETE_GROUPS.key: partial(delete_groups.handle, groups=groups),
        OFFSET_DELETE.key: partial(offset_delete.handle, groups=groups, image=image),
        DESCRIBE_CLUSTER.key: partial(describe_cluster.handle, image=image, account=account),
        DESCRIBE_ACLS.key: describe_acls.handle,
        ALTER_CONFIGS.key: partial(alter_configs.handle, topics=topics, node_id=node_id),
        LIST_CONFIG_RESOURCES.key: partial(list_config_resources.handle, image=image),
        DESCRIBE_QUORUM.key: partial(describe_quorum.handle, image=image, heard=heard),
        ALTER_REPLICA_LOG_DIRS.key: partial(alter_replica_log_dirs.handle, directories=directories),
        DESCRIBE_LOG_DIRS.key: partial(describe_log_dirs.handle, directories=directories),
        ELECT_LEADERS.key: partial(elect_leaders.handle, leadership=leadership),
        ALTER_PARTITION_REASSIGNMENTS.key: partial(
            alter_partition_reassignments.handle, leadership=leadership, balancing=balancing
        ),
        UNREGISTER_BROKER.key: partial(unregister_broker.handle, balancing=balancing),
        UPDATE_FEATURES.key: partial(update_features.handle, levels=levels),
        LIST_PARTITION_REASSIGNMENTS.key: partial(list_partition_reassignments.handle, leadership=leadership),
        DESCRIBE_CLIENT_QUOTAS.key: partial(describe_client_quotas.handle, image=image),
        ALTER_CLIENT_QUOTAS.key: partial(alter_client_quotas.handle, quota_changes=quota_changes),
        DESCRIBE_USER_SCRAM_CREDENTIALS.key: describe_user_scram_credentials.handle,
        DESCRIBE_PRODUCERS.key: partial(describe_producers.handle, hosted=hosted),
        DESCRIBE_TOPIC_PARTITIONS.key: partial(
            describe_topic_partitions.handle,
            image=image,
            settings=topics.settings,
            partitions_max=topics.broker_settings.max_request_partition_size_limit,
        ),
        ADD_PARTITIONS_TO_TXN.key: partial(
            add_partitions_to_txn.handle, transactions=transactions, image=image
        ),
        ADD_OFFSETS_TO_TXN.key: partial(add_offsets_to_txn.handle, transactions=transactions, groups=groups),
        TXN_OFFSET_COMMIT.key: partial(txn_offset_commit.handle, groups=groups, join=entry.join, image=image),
        END_TXN.key: partial(end_txn.handle, transactions=transactions),
        WRITE_TXN_MARKERS.key: partial(write_txn_markers.handle_for_administrator, writing=marker_writing),
        DESCRIBE_TRANSACTIONS.key: partial(describe_transactions.handle, transactions=transactions),
        LIST_TRANSACTIONS.key: partial(list_transactions.handle, transactions=transactions),
    }
    return {
        api.key: ServedApi(
            api,
            api.version_min,
            api.version_max,
            handlers[api.key],
            produce.weigh if api is PRODUCE else weigh_objects,
        )
        for api in SERVED_APIS
    }


def advertised() -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api.key, ADVERTISED_MIN.get(api.key, api.version_min), api.version_max)
        for api in sorted(SERVED_APIS, key=lambda api: api.key)
    )
