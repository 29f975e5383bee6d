"""Every API this node serves, with its versions and its handler. No listing, no API."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ids import NodeId
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.access import Access
from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.broker.administration.leadership import Leadership
from ropewalk.broker.administration.levels import Levels
from ropewalk.broker.administration.log_directories import LogDirectories
from ropewalk.broker.administration.quota_changes import QuotaChanges
from ropewalk.broker.administration.tokens import Tokens
from ropewalk.broker.administration.users import UserChanges
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
from ropewalk.kafka.authentication import Authentication
from ropewalk.kafka.brokers import Reach
from ropewalk.kafka.described_topics import DescribedTopics
from ropewalk.kafka.handlers import (
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
from ropewalk.kafka.handlers.delete_records import Trimming
from ropewalk.kafka.handlers.init_producer_id import ProducerIds
from ropewalk.kafka.refused_firsts import RefusedFirsts
from ropewalk.kafka.rights import cluster, records
from ropewalk.kafka.rights import groups as group_guards
from ropewalk.kafka.rights import topics as topic_guards
from ropewalk.kafka.rights import transactions as transaction_guards
from ropewalk.kafka.rights import users as user_guards
from ropewalk.kafka.rights.needs import Inside, Needs, Nothing, Right, enforced
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle, ServedApi, weigh_objects
from ropewalk.metadata.image import Broker
from ropewalk.security.access import Operation, ResourceType
from ropewalk.wire.api import Api
from ropewalk.wire.messages.add_offsets_to_txn import API as ADD_OFFSETS_TO_TXN
from ropewalk.wire.messages.add_partitions_to_txn import API as ADD_PARTITIONS_TO_TXN
from ropewalk.wire.messages.alter_client_quotas import API as ALTER_CLIENT_QUOTAS
from ropewalk.wire.messages.alter_configs import API as ALTER_CONFIGS
from ropewalk.wire.messages.alter_partition_reassignments import API as ALTER_PARTITION_REASSIGNMENTS
from ropewalk.wire.messages.alter_replica_log_dirs import API as ALTER_REPLICA_LOG_DIRS
from ropewalk.wire.messages.alter_user_scram_credentials import API as ALTER_USER_SCRAM_CREDENTIALS
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.api_versions import ApiVersion
from ropewalk.wire.messages.consumer_group_describe import API as CONSUMER_GROUP_DESCRIBE
from ropewalk.wire.messages.consumer_group_heartbeat import API as CONSUMER_GROUP_HEARTBEAT
from ropewalk.wire.messages.create_acls import API as CREATE_ACLS
from ropewalk.wire.messages.create_partitions import API as CREATE_PARTITIONS
from ropewalk.wire.messages.create_topics import API as CREATE_TOPICS
from ropewalk.wire.messages.delete_acls import API as DELETE_ACLS
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
from ropewalk.wire.messages.issue_token import API as ISSUE_TOKEN
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
from ropewalk.wire.messages.replace_token_key import API as REPLACE_TOKEN_KEY
from ropewalk.wire.messages.sasl_authenticate import API as SASL_AUTHENTICATE
from ropewalk.wire.messages.sasl_handshake import API as SASL_HANDSHAKE
from ropewalk.wire.messages.sync_group import API as SYNC_GROUP
from ropewalk.wire.messages.txn_offset_commit import API as TXN_OFFSET_COMMIT
from ropewalk.wire.messages.unregister_broker import API as UNREGISTER_BROKER
from ropewalk.wire.messages.update_features import API as UPDATE_FEATURES
from ropewalk.wire.messages.write_txn_markers import API as WRITE_TXN_MARKERS

ADVERTISED_MIN: Final = {PRODUCE.key: 0}
"""Kafka says 0 for Produce although it understands 3 and up: older librdkafka stops compressing otherwise."""


class Serving(Struct, frozen=True):
    """An API, and what it needs of its caller: without an answer to that none is served."""

    api: Api[Any, Any]
    needs: Needs


_READ_GROUP: Final = Right(ResourceType.GROUP, Operation.READ)
_DESCRIBE_GROUP: Final = Right(ResourceType.GROUP, Operation.DESCRIBE)
_READ_TOPIC: Final = Right(ResourceType.TOPIC, Operation.READ)
_WRITE_TOPIC: Final = Right(ResourceType.TOPIC, Operation.WRITE)
_DESCRIBE_TOPIC: Final = Right(ResourceType.TOPIC, Operation.DESCRIBE)
_DELETE_TOPIC: Final = Right(ResourceType.TOPIC, Operation.DELETE)
_SEE_TOPIC: Final = Right(ResourceType.TOPIC, Operation.DESCRIBE, is_hidden=True)
_WRITE_ID: Final = Right(ResourceType.TRANSACTIONAL_ID, Operation.WRITE)
_DESCRIBE_ID: Final = Right(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE)
_SEE_ID: Final = Right(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE, is_hidden=True)
_ADMINISTRATORS: Final = "where `cluster.delete.by` is `admin`, ALTER on the cluster as well"

_BY_TYPE: Final = "by the type of the resource"
_ALTER_CONFIGS: Final = (
    Right(ResourceType.TOPIC, Operation.ALTER_CONFIGS),
    Right(ResourceType.GROUP, Operation.ALTER_CONFIGS),
    Right(ResourceType.CLUSTER, Operation.ALTER_CONFIGS),
)

SERVED: Final[tuple[Serving, ...]] = (
    Serving(PRODUCE, Inside((_WRITE_ID, _WRITE_TOPIC), records.produce, "the id if the request has one")),
    Serving(FETCH, Inside((_READ_TOPIC,), None, "in every fetch of a session, and while it waits")),
    Serving(LIST_OFFSETS, Inside((_DESCRIBE_TOPIC,), records.LIST_OFFSETS)),
    Serving(
        METADATA,
        Inside(
            (_DESCRIBE_TOPIC,),
            topic_guards.metadata,
            "hidden where all are asked for; to make one that is asked for, CREATE on it or on the cluster",
        ),
    ),
    Serving(OFFSET_COMMIT, Inside((_READ_GROUP, _READ_TOPIC), group_guards.offset_commit_guard)),
    Serving(
        OFFSET_FETCH,
        Inside(
            (_DESCRIBE_GROUP, _DESCRIBE_TOPIC),
            group_guards.offset_fetch_guard,
            "topics are hidden where all are asked for",
        ),
    ),
    Serving(
        FIND_COORDINATOR,
        Inside((_DESCRIBE_GROUP, _DESCRIBE_ID), group_guards.find_coordinator, "by the type of the key"),
    ),
    Serving(JOIN_GROUP, Inside((_READ_GROUP,), group_guards.JOIN_GROUP, "again when the answer comes")),
    Serving(HEARTBEAT, Inside((_READ_GROUP,), group_guards.HEARTBEAT)),
    Serving(LEAVE_GROUP, Inside((_READ_GROUP,), group_guards.LEAVE_GROUP)),
    Serving(SYNC_GROUP, Inside((_READ_GROUP,), group_guards.SYNC_GROUP, "again when the answer comes")),
    Serving(DESCRIBE_GROUPS, Inside((_DESCRIBE_GROUP,), group_guards.describe_groups)),
    Serving(
        LIST_GROUPS,
        Inside(
            (Right(ResourceType.GROUP, Operation.DESCRIBE, is_hidden=True),),
            group_guards.list_groups,
            "DESCRIBE on the cluster stands for all groups",
        ),
    ),
    Serving(SASL_HANDSHAKE, Nothing("it is how clients say who they are")),
    Serving(SASL_AUTHENTICATE, Nothing("as SaslHandshake")),
    Serving(API_VERSIONS, Nothing("clients ask it before they know how to ask anything else")),
    Serving(
        CREATE_TOPICS,
        Inside(
            (Right(ResourceType.TOPIC, Operation.CREATE),),
            topic_guards.create_topics,
            "or CREATE on the cluster; settings are told with DESCRIBE_CONFIGS on the topic",
        ),
    ),
    Serving(
        DELETE_TOPICS,
        Inside((_DELETE_TOPIC,), topic_guards.delete_topics, f"or DELETE on the cluster; {_ADMINISTRATORS}"),
    ),
    Serving(DELETE_RECORDS, Inside((_DELETE_TOPIC,), records.DELETE_RECORDS, _ADMINISTRATORS)),
    Serving(
        INIT_PRODUCER_ID,
        Inside(
            (_WRITE_ID,),
            transaction_guards.init_producer_id,
            "without an id IDEMPOTENT_WRITE on the cluster, or WRITE on any topic",
        ),
    ),
    Serving(OFFSET_FOR_LEADER_EPOCH, Inside((_DESCRIBE_TOPIC,), records.OFFSET_FOR_LEADER_EPOCH)),
    Serving(
        DESCRIBE_CONFIGS,
        Inside(
            (
                Right(ResourceType.TOPIC, Operation.DESCRIBE_CONFIGS),
                Right(ResourceType.GROUP, Operation.DESCRIBE_CONFIGS),
                Right(ResourceType.CLUSTER, Operation.DESCRIBE_CONFIGS),
            ),
            cluster.DESCRIBE_CONFIGS,
            _BY_TYPE,
        ),
    ),
    Serving(
        CREATE_PARTITIONS,
        Inside((Right(ResourceType.TOPIC, Operation.ALTER),), topic_guards.create_partitions),
    ),
    Serving(
        DELETE_GROUPS,
        Inside((Right(ResourceType.GROUP, Operation.DELETE),), group_guards.delete_groups, _ADMINISTRATORS),
    ),
    Serving(INCREMENTAL_ALTER_CONFIGS, Inside(_ALTER_CONFIGS, cluster.INCREMENTAL_ALTER_CONFIGS, _BY_TYPE)),
    Serving(
        OFFSET_DELETE,
        Inside(
            (Right(ResourceType.GROUP, Operation.DELETE), _READ_TOPIC),
            group_guards.offset_delete_guard,
            _ADMINISTRATORS,
        ),
    ),
    Serving(
        DESCRIBE_CLUSTER,
        Inside(
            (),
            cluster.describe_cluster,
            "brokers are told to everybody; with DESCRIBE on the cluster operations, nodes, losses and complaints, too",
        ),
    ),
    Serving(DESCRIBE_ACLS, cluster.on_cluster(DESCRIBE_ACLS, Operation.DESCRIBE)),
    Serving(CREATE_ACLS, cluster.on_cluster(CREATE_ACLS, Operation.ALTER)),
    Serving(DELETE_ACLS, cluster.on_cluster(DELETE_ACLS, Operation.ALTER)),
    Serving(ALTER_CONFIGS, Inside(_ALTER_CONFIGS, cluster.ALTER_CONFIGS, _BY_TYPE)),
    Serving(DESCRIBE_LOG_DIRS, cluster.on_cluster(DESCRIBE_LOG_DIRS, Operation.DESCRIBE)),
    Serving(ELECT_LEADERS, cluster.on_cluster(ELECT_LEADERS, Operation.ALTER)),
    Serving(
        ALTER_PARTITION_REASSIGNMENTS, cluster.on_cluster(ALTER_PARTITION_REASSIGNMENTS, Operation.ALTER)
    ),
    Serving(UNREGISTER_BROKER, cluster.on_cluster(UNREGISTER_BROKER, Operation.ALTER)),
    Serving(UPDATE_FEATURES, cluster.on_cluster(UPDATE_FEATURES, Operation.ALTER)),
    Serving(
        LIST_PARTITION_REASSIGNMENTS, cluster.on_cluster(LIST_PARTITION_REASSIGNMENTS, Operation.DESCRIBE)
    ),
    Serving(DESCRIBE_CLIENT_QUOTAS, cluster.on_cluster(DESCRIBE_CLIENT_QUOTAS, Operation.DESCRIBE_CONFIGS)),
    Serving(ALTER_CLIENT_QUOTAS, cluster.on_cluster(ALTER_CLIENT_QUOTAS, Operation.ALTER_CONFIGS)),
    Serving(
        DESCRIBE_USER_SCRAM_CREDENTIALS,
        cluster.on_cluster(DESCRIBE_USER_SCRAM_CREDENTIALS, Operation.DESCRIBE),
    ),
    Serving(ALTER_USER_SCRAM_CREDENTIALS, cluster.on_cluster(ALTER_USER_SCRAM_CREDENTIALS, Operation.ALTER)),
    Serving(DESCRIBE_PRODUCERS, Inside((_READ_TOPIC,), records.DESCRIBE_PRODUCERS)),
    Serving(
        DESCRIBE_TOPIC_PARTITIONS,
        Inside((_DESCRIBE_TOPIC,), topic_guards.describe_topic_partitions, "hidden where all are asked for"),
    ),
    Serving(
        ADD_PARTITIONS_TO_TXN,
        Inside(
            (_WRITE_ID, _WRITE_TOPIC),
            transaction_guards.add_partitions_to_txn,
            "from v4 on refused to all clients",
        ),
    ),
    Serving(ADD_OFFSETS_TO_TXN, Inside((_WRITE_ID, _READ_GROUP), transaction_guards.add_offsets_to_txn)),
    Serving(END_TXN, Inside((_WRITE_ID,), transaction_guards.end_txn)),
    Serving(
        TXN_OFFSET_COMMIT,
        Inside((_WRITE_ID, _READ_GROUP, _READ_TOPIC), transaction_guards.txn_offset_commit),
    ),
    Serving(
        WRITE_TXN_MARKERS, cluster.on_cluster(WRITE_TXN_MARKERS, Operation.ALTER, Operation.CLUSTER_ACTION)
    ),
    Serving(
        DESCRIBE_TRANSACTIONS, Inside((_DESCRIBE_ID, _SEE_TOPIC), transaction_guards.describe_transactions)
    ),
    Serving(LIST_TRANSACTIONS, Inside((_SEE_ID,), transaction_guards.list_transactions)),
    Serving(
        CONSUMER_GROUP_HEARTBEAT,
        Inside(
            (_READ_GROUP, _DESCRIBE_TOPIC),
            group_guards.consumer_group_heartbeat,
            "of every topic that is named; patterns match only topics that may be described",
        ),
    ),
    Serving(
        CONSUMER_GROUP_DESCRIBE,
        Inside(
            (_DESCRIBE_GROUP, _DESCRIBE_TOPIC),
            group_guards.consumer_group_describe_guard,
            "of every topic that a member has or is to have",
        ),
    ),
    Serving(LIST_CONFIG_RESOURCES, cluster.on_cluster(LIST_CONFIG_RESOURCES, Operation.DESCRIBE_CONFIGS)),
    Serving(DESCRIBE_QUORUM, cluster.on_cluster(DESCRIBE_QUORUM, Operation.DESCRIBE)),
    Serving(ALTER_REPLICA_LOG_DIRS, cluster.on_cluster(ALTER_REPLICA_LOG_DIRS, Operation.ALTER)),
    Serving(
        ISSUE_TOKEN,
        Inside(
            (Right(ResourceType.USER, Operation.CREATE_TOKENS),),
            user_guards.issue_token,
            "nothing for a token of one's own, by a password or a certificate",
        ),
    ),
    Serving(REPLACE_TOKEN_KEY, cluster.on_cluster(REPLACE_TOKEN_KEY, Operation.ALTER)),
)
"""Every API that clients are served."""

SERVED_APIS: Final = tuple(serving.api for serving in SERVED)
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
    user_changes: UserChanges,
    tokens: Tokens,
    acl_changes: AclChanges,
    access: Access,
    groups: Groups,
    transactions: Transactions,
    entry: TransactionEntry,
    marker_writing: MarkerWriting,
    fetch_sessions: FetchSessions,
    authentication: Authentication,
    budget: ByteBudget,
    pool: Pool,
    clock: Clock,
    node_id: NodeId,
    account: Callable[[], NodeAccount],
    heard: Mapping[NodeId, Heard],
    reach: Reach = Broker.endpoint,
) -> dict[int, ServedApi]:
    """The table by API key: each handler bound to just what it may touch."""
    image = topics.image
    rights = _rights(access, topics) if access.is_on else None
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
            rights=rights,
        ),
        LIST_OFFSETS.key: partial(list_offsets.handle, hosted=hosted, pool=pool),
        METADATA.key: partial(
            metadata.handle, image=image, creation=topics, described=DescribedTopics(image)
        ),
        OFFSET_COMMIT.key: partial(offset_commit.handle, groups=groups, image=image),
        OFFSET_FETCH.key: partial(offset_fetch.handle, groups=groups, image=image),
        FIND_COORDINATOR.key: partial(
            find_coordinator.handle, groups=groups, transactions=transactions, image=image, reach=reach
        ),
        JOIN_GROUP.key: partial(join_group.handle, groups=groups, rights=rights),
        HEARTBEAT.key: partial(heartbeat.handle, groups=groups),
        LEAVE_GROUP.key: partial(leave_group.handle, groups=groups),
        SYNC_GROUP.key: partial(sync_group.handle, groups=groups),
        DESCRIBE_GROUPS.key: partial(describe_groups.handle, groups=groups),
        CONSUMER_GROUP_HEARTBEAT.key: partial(consumer_group_heartbeat.handle, groups=groups, rights=rights),
        CONSUMER_GROUP_DESCRIBE.key: partial(consumer_group_describe.handle, groups=groups, image=image),
        LIST_GROUPS.key: partial(list_groups.handle, groups=groups),
        SASL_HANDSHAKE.key: partial(sasl_handshake.handle, authentication=authentication),
        SASL_AUTHENTICATE.key: partial(sasl_authenticate.handle, authentication=authentication),
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
        DESCRIBE_ACLS.key: partial(describe_acls.handle, access=access, image=image),
        CREATE_ACLS.key: partial(create_acls.handle, access=access, changes=acl_changes),
        DELETE_ACLS.key: partial(delete_acls.handle, access=access, changes=acl_changes),
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
        DESCRIBE_USER_SCRAM_CREDENTIALS.key: partial(describe_user_scram_credentials.handle, image=image),
        ALTER_USER_SCRAM_CREDENTIALS.key: partial(
            alter_user_scram_credentials.handle, user_changes=user_changes
        ),
        ISSUE_TOKEN.key: partial(issue_token.handle, tokens=tokens),
        REPLACE_TOKEN_KEY.key: partial(replace_token_key.handle, tokens=tokens),
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
            handlers[api.key] if rights is None else enforced(needs, handlers[api.key], rights),
            produce.weigh if api is PRODUCE else weigh_objects,
        )
        for api, needs in ((serving.api, serving.needs) for serving in SERVED)
    }


def _rights(access: Access, topics: Topics) -> Rights:
    return Rights(
        access,
        topics.image,
        creates_automatically=lambda: topics.creates_automatically,
        administrators_delete=lambda: topics.broker_settings.cluster_delete_by == "admin",
    )


def advertised() -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api.key, ADVERTISED_MIN.get(api.key, api.version_min), api.version_max)
        for api in sorted(SERVED_APIS, key=lambda api: api.key)
    )
