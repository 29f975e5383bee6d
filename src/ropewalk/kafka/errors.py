"""How the engine's errors are spelled in Kafka."""

from typing import Final

from ropewalk.base import errors
from ropewalk.base.errors import RopewalkError
from ropewalk.groups import errors as groups
from ropewalk.wire.error_code import ErrorCode

CODES: Final[dict[type[RopewalkError], ErrorCode]] = {
    errors.InvalidRequest: ErrorCode.INVALID_REQUEST,
    errors.UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
    errors.UnknownPartition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errors.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    errors.InvalidTopicName: ErrorCode.INVALID_TOPIC_EXCEPTION,
    errors.InvalidPartitionCount: ErrorCode.INVALID_PARTITIONS,
    errors.InvalidReplicationFactor: ErrorCode.INVALID_REPLICATION_FACTOR,
    errors.InvalidReplicaAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    errors.InvalidSetting: ErrorCode.INVALID_CONFIG,
    errors.PolicyViolation: ErrorCode.POLICY_VIOLATION,
    errors.TopicDeletionDisabled: ErrorCode.TOPIC_DELETION_DISABLED,
    errors.ElectionNotNeeded: ErrorCode.ELECTION_NOT_NEEDED,
    errors.LeaderNotAvailable: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    errors.NobodyEligible: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    errors.NoReassignment: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    errors.UnknownBroker: ErrorCode.BROKER_ID_NOT_REGISTERED,
    errors.DuplicateBroker: ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    errors.StaleBrokerEpoch: ErrorCode.STALE_BROKER_EPOCH,
    errors.OtherCluster: ErrorCode.INCONSISTENT_CLUSTER_ID,
    errors.IneligibleReplica: ErrorCode.INELIGIBLE_REPLICA,
    errors.StalePartitionEpoch: ErrorCode.INVALID_UPDATE_VERSION,
    errors.NotLeader: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.NotController: ErrorCode.NOT_CONTROLLER,
    errors.ControllerUnavailable: ErrorCode.NOT_CONTROLLER,
    errors.FencedEpoch: ErrorCode.FENCED_LEADER_EPOCH,
    errors.UnknownEpoch: ErrorCode.UNKNOWN_LEADER_EPOCH,
    errors.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    errors.FetchSessionUnknown: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    errors.FetchSessionEpochInvalid: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    errors.FetchSessionTopicsMixed: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    errors.InvalidRecord: ErrorCode.INVALID_RECORD,
    errors.UnsupportedFormat: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    errors.UnsupportedCompression: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    errors.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    errors.BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    errors.BatchExceedsSegment: ErrorCode.RECORD_LIST_TOO_LARGE,
    errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    errors.ProducerFenced: ErrorCode.INVALID_PRODUCER_EPOCH,
    errors.StorageFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.MetadataUnavailable: ErrorCode.REQUEST_TIMED_OUT,
    errors.TimedOut: ErrorCode.REQUEST_TIMED_OUT,
    errors.NodeStopping: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.Throttled: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    errors.ShardLoading: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    errors.ShardElsewhere: ErrorCode.NOT_COORDINATOR,
    errors.ShardUnavailable: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    groups.InvalidGroupId: ErrorCode.INVALID_GROUP_ID,
    groups.InvalidInstanceId: ErrorCode.INVALID_REQUEST,
    groups.InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
    groups.InconsistentProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    groups.MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
    groups.UnknownMember: ErrorCode.UNKNOWN_MEMBER_ID,
    groups.FencedInstance: ErrorCode.FENCED_INSTANCE_ID,
    groups.StaleGeneration: ErrorCode.ILLEGAL_GENERATION,
    groups.RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
    groups.GroupFull: ErrorCode.GROUP_MAX_SIZE_REACHED,
    groups.OffsetMetadataTooLarge: ErrorCode.OFFSET_METADATA_TOO_LARGE,
    groups.GroupNotEmpty: ErrorCode.NON_EMPTY_GROUP,
    groups.UnknownGroup: ErrorCode.GROUP_ID_NOT_FOUND,
    groups.SubscribedToTopic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
}


def code_for(error: RopewalkError) -> ErrorCode:
    return CODES[type(error)]
