"""Which error of the engine stands behind a code that another node answered with: the inverse of the table at the Kafka door.

What a reader could get wrong
    Several errors may be spelled alike. Which of them is meant depends on the conversation, so each has its `Refusals`.
    What a conversation does not expect stays a `RemoteError`: it is a matter between the two nodes, and nothing here depends on it.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.base import errors
from ropewalk.base.errors import RopewalkError
from ropewalk.client.errors import RemoteError
from ropewalk.groups import errors as groups
from ropewalk.transactions import errors as transactions
from ropewalk.wire.error_code import ErrorCode

ERRORS: Final[Mapping[ErrorCode, tuple[type[RopewalkError], ...]]] = {
    ErrorCode.INVALID_REQUEST: (
        errors.InvalidRequest,
        errors.InvalidQueue,
        groups.InvalidInstanceId,
        groups.InvalidHeartbeat,
        transactions.InvalidTransactionRequest,
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (errors.UnknownTopic, errors.UnknownPartition),
    ErrorCode.UNKNOWN_TOPIC_ID: (errors.UnknownTopicId,),
    ErrorCode.TOPIC_ALREADY_EXISTS: (errors.TopicExists,),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (errors.InvalidTopicName,),
    ErrorCode.INVALID_PARTITIONS: (errors.InvalidPartitionCount,),
    ErrorCode.INVALID_REPLICATION_FACTOR: (errors.InvalidReplicationFactor,),
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: (errors.InvalidReplicaAssignment,),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (errors.TransactionalIdMissing,),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (errors.TopicNotAuthorized,),
    ErrorCode.INVALID_CONFIG: (errors.InvalidSetting,),
    ErrorCode.POLICY_VIOLATION: (errors.PolicyViolation,),
    ErrorCode.SASL_AUTHENTICATION_FAILED: (errors.AuthenticationFailed,),
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: (errors.UnsupportedMechanism,),
    ErrorCode.UNACCEPTABLE_CREDENTIAL: (errors.UnacceptableCredential,),
    ErrorCode.TOPIC_DELETION_DISABLED: (errors.TopicDeletionDisabled,),
    ErrorCode.ELECTION_NOT_NEEDED: (errors.ElectionNotNeeded,),
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: (errors.LeaderNotAvailable,),
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (errors.NobodyEligible,),
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: (errors.NoReassignment, errors.UnknownMoveTask),
    ErrorCode.BROKER_ID_NOT_REGISTERED: (errors.UnknownBroker,),
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (errors.DuplicateBroker,),
    ErrorCode.INVALID_REGISTRATION: (errors.DirectoryPutBack,),
    ErrorCode.STALE_BROKER_EPOCH: (errors.StaleBrokerEpoch,),
    ErrorCode.INCONSISTENT_CLUSTER_ID: (errors.OtherCluster,),
    ErrorCode.INELIGIBLE_REPLICA: (errors.IneligibleReplica,),
    ErrorCode.INVALID_UPDATE_VERSION: (errors.StalePartitionEpoch, errors.LevelRefused),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (errors.NotLeader, errors.NodeStopping),
    ErrorCode.NOT_CONTROLLER: (errors.NotController, errors.ControllerUnavailable, errors.MetadataLeft),
    ErrorCode.FENCED_LEADER_EPOCH: (errors.FencedEpoch,),
    ErrorCode.UNKNOWN_LEADER_EPOCH: (errors.UnknownEpoch,),
    ErrorCode.NOT_ENOUGH_REPLICAS: (errors.NotEnoughReplicas,),
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (errors.NotEnoughReplicasAfterAppend,),
    ErrorCode.OFFSET_NOT_AVAILABLE: (errors.OffsetNotAvailable,),
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: (errors.FetchSessionUnknown,),
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: (errors.FetchSessionEpochInvalid,),
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: (errors.FetchSessionTopicsMixed,),
    ErrorCode.OFFSET_OUT_OF_RANGE: (errors.OffsetOutOfRange, errors.HistoryParted),
    ErrorCode.CORRUPT_MESSAGE: (errors.CorruptBatch,),
    ErrorCode.INVALID_RECORD: (errors.InvalidRecord,),
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: (errors.UnsupportedFormat,),
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: (errors.UnsupportedCompression,),
    ErrorCode.INVALID_TIMESTAMP: (errors.InvalidTimestamp,),
    ErrorCode.MESSAGE_TOO_LARGE: (errors.BatchTooLarge,),
    ErrorCode.RECORD_LIST_TOO_LARGE: (errors.BatchExceedsSegment,),
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: (errors.OutOfOrderSequence,),
    ErrorCode.INVALID_PRODUCER_EPOCH: (errors.ProducerFenced,),
    ErrorCode.INVALID_TXN_STATE: (
        errors.InvalidTransactionState,
        errors.MoveTaskOver,
        transactions.WrongTransactionState,
    ),
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (errors.TransactionCoordinatorFenced,),
    ErrorCode.KAFKA_STORAGE_ERROR: (
        errors.StorageFailed,
        errors.DiskFull,
        errors.CorruptMetadata,
        errors.UnreadableMetadata,
        errors.CannotFollow,
    ),
    ErrorCode.FEATURE_UPDATE_FAILED: (errors.NotInForce,),
    ErrorCode.REQUEST_TIMED_OUT: (errors.MetadataUnavailable, errors.TimedOut),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: (
        errors.Throttled,
        errors.QueueDeletedRecently,
        errors.PurgeInProgress,
    ),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (errors.ShardLoading, errors.QueueNotReady),
    ErrorCode.RESOURCE_NOT_FOUND: (errors.UnknownQueue, errors.UnknownUser),
    ErrorCode.DUPLICATE_RESOURCE: (errors.QueueExists, errors.DuplicateUser),
    ErrorCode.NOT_COORDINATOR: (errors.ShardElsewhere,),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (errors.ShardUnavailable,),
    ErrorCode.INVALID_GROUP_ID: (groups.InvalidGroupId,),
    ErrorCode.INVALID_SESSION_TIMEOUT: (groups.InvalidSessionTimeout,),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (groups.InconsistentProtocol,),
    ErrorCode.MEMBER_ID_REQUIRED: (groups.MemberIdRequired,),
    ErrorCode.UNKNOWN_MEMBER_ID: (groups.UnknownMember,),
    ErrorCode.FENCED_INSTANCE_ID: (groups.FencedInstance,),
    ErrorCode.ILLEGAL_GENERATION: (groups.StaleGeneration,),
    ErrorCode.REBALANCE_IN_PROGRESS: (groups.RebalanceInProgress,),
    ErrorCode.GROUP_MAX_SIZE_REACHED: (groups.GroupFull,),
    ErrorCode.OFFSET_METADATA_TOO_LARGE: (groups.OffsetMetadataTooLarge,),
    ErrorCode.NON_EMPTY_GROUP: (groups.GroupNotEmpty,),
    ErrorCode.GROUP_ID_NOT_FOUND: (groups.UnknownGroup,),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (groups.SubscribedToTopic,),
    ErrorCode.INVALID_REGULAR_EXPRESSION: (groups.InvalidPattern, transactions.InvalidPattern),
    ErrorCode.UNSUPPORTED_ASSIGNOR: (groups.UnsupportedAssignor,),
    ErrorCode.FENCED_MEMBER_EPOCH: (groups.FencedMemberEpoch,),
    ErrorCode.STALE_MEMBER_EPOCH: (groups.StaleMemberEpoch,),
    ErrorCode.UNRELEASED_INSTANCE_ID: (groups.UnreleasedInstance,),
    ErrorCode.UNSUPPORTED_VERSION: (errors.VersionRefused, groups.EpochsNotSpoken),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (transactions.InvalidTransactionTimeout,),
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: (transactions.UnknownProducerMapping,),
    ErrorCode.PRODUCER_FENCED: (transactions.TransactionalProducerFenced,),
    ErrorCode.CONCURRENT_TRANSACTIONS: (transactions.ConcurrentTransactions,),
    ErrorCode.TRANSACTION_ABORTABLE: (transactions.NotInTransaction,),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (transactions.UnknownTransactionalId,),
    ErrorCode.REASSIGNMENT_IN_PROGRESS: (errors.MoveTaskRunning,),
    ErrorCode.UNSTABLE_OFFSET_COMMIT: (groups.UnstableOffset,),
}

_CODES: Final = {kind: code for code, kinds in ERRORS.items() for kind in kinds}


class Refusals:
    """The errors that one conversation may be refused with."""

    def __init__(self, *kinds: type[RopewalkError]) -> None:
        self._kinds = {_CODES[kind]: kind for kind in kinds}
        assert len(self._kinds) == len(kinds), (
            "one conversation cannot tell errors apart that are spelled alike"
        )

    def error(self, remote: RemoteError) -> RopewalkError:
        """What the other node raised before it was put into a code; the error itself where it is none of these."""
        kind = self._kinds.get(remote.code)
        return remote if kind is None else kind(remote.message)
