"""Operating errors: things that go wrong in a healthy broker and that a client must hear about.

    RopewalkError
      InvalidRequest            the request makes no sense as a whole
      ProtocolError             bytes that are not the protocol they claim to be; the connection ends
      UnknownTopic              no topic of that name
      UnknownTopicId            no topic with that id; a topic made again has another
      UnknownPartition          the topic exists, the partition does not
      TopicExists               a topic of that name is there already
      InvalidTopicName          outside [a-zA-Z0-9._-]{1,249}, or `.`, or `..`, or one that collides
      InvalidPartitionCount     not positive, too many, or not an increase
      InvalidReplicationFactor  more replicas than brokers, or none
      InvalidReplicaAssignment  a hand-made assignment that does not hold together
      TransactionalIdMissing    a batch of a transaction in a request that names no transactional id
      InvalidSetting            a setting that does not exist or a value it cannot have
      PolicyViolation           allowed by the protocol, refused by a setting of the topic or the node
      TopicDeletionDisabled     delete.topic.enable is off
      ElectionNotNeeded         the partition is led as was asked for
      LeaderNotAvailable        the replica that should lead cannot, or no replica can
      NobodyEligible            no replica can lead without losing acknowledged records
      NoReassignment            a move was to be given up, and none is under way
      UnknownBroker             no broker of that id has registered
      DuplicateBroker           another broker of that id is alive
      DirectoryPutBack          the broker's data directory is a former state of the one that the cluster knows
      StaleBrokerEpoch          the broker has started again since
      OtherCluster              the node or its data belongs to another cluster
      IneligibleReplica         a replica that may not count as in sync: fenced, stopping, or started again since
      StalePartitionEpoch       the partition has changed since the caller looked
      NotLeader                 this node does not lead the partition
      NotController             this node does not decide about the cluster, or no more
      FencedEpoch               the caller knows an older leader epoch than ours
      UnknownEpoch              the caller knows a newer leader epoch than ours
      ControllerUnavailable     the node that decides cannot be reached, or there is none; nothing was changed
      NotEnoughReplicas         the in-sync replicas are fewer than min.insync.replicas
      NotEnoughReplicasAfterAppend  the same, found when the write was in the leader's log: nobody knows whether it stays
      OffsetNotAvailable        this replica does not know yet how far its records are committed
      FetchSessionUnknown       no such fetch session, or no longer; begin anew with all partitions
      FetchSessionEpochInvalid  not the fetch that the session expects next
      FetchSessionTopicsMixed   a session names its topics by id or by name, not now this way and now that
      OffsetOutOfRange          below the log's start or above its end
      CorruptBatch              bytes that fail their checksum or their framing
      InvalidRecord             a well-formed batch that breaks a rule of the topic
      UnsupportedFormat         a record format older than v2
      UnsupportedCompression    a codec that is unknown, or too new for the request
      InvalidTimestamp          too far from the broker's clock
      BatchTooLarge             larger than max.message.bytes
      BatchExceedsSegment       larger than a segment may be
      OutOfOrderSequence        an idempotent producer left a gap
      ProducerFenced            a producer epoch older than the newest seen
      InvalidTransactionState   a record outside of any transaction that its coordinator knows of
      TransactionCoordinatorFenced  a marker from a coordinator that has been succeeded
      StorageFailed             the disk refused: full, failing, or the range is corrupt
      DiskFull                  only the reserve is left on the disk: nothing is written until there is room; nothing was changed
      CorruptMetadata           acknowledged facts about the cluster cannot be read back; a node does not start with them
      MetadataUnavailable       the home of the cluster's facts cannot be reached; nothing was changed
      MetadataLeft              the cluster's facts have moved to another home; nobody decides at this one
      CannotFollow              this process can never follow the cluster's facts again: it leaves service
      HistoryParted             the cluster's facts were put back to an earlier state; what was followed since is no more
      UnreadableMetadata        the cluster's facts say something that this version does not know
      VersionRefused            a node of another release or level than the cluster can have
      LevelRefused              a level that some node does not know, or that is lower than the one in force
      TopicNotAuthorized        no rule lets the caller do this with the topic
      NotInForce                it needs a level that is not in force yet; nothing was changed
      DirectoryInUse            another process holds the data directory
      DirectoryRefused          the data directory is another node's, or of a layout that is not known
      TimedOut                  not done in the time the client allowed; it may still be done later
      NodeStopping              the node is shutting down
      ShardLoading              state is being read from its log; ask again shortly
      ShardElsewhere            this state is looked after by another node, or by nobody yet
      ShardUnavailable          state cannot be reached or its change not confirmed; it may have been made all the same
      Throttled                 a limit was reached; come back later
      UnknownQueue              no queue of that name
      UnknownMoveTask           nothing is moved, or was, under that id
      MoveTaskRunning           messages of the queue are being moved already
      MoveTaskOver              the task has ended, so it cannot be cancelled
      QueueExists               a queue of that name is there already, with another value of an attribute
      QueueDeletedRecently      the name of a queue that was deleted rests for a while
      InvalidQueue              a name, an attribute or a topic that a queue cannot have
      PurgeInProgress           the queue was purged within the last minute
      QueueNotReady             a queue's state is being read, or nobody leads it at the moment; ask again shortly
      UnknownUser               no such user, or none that can log in by that mechanism
      DuplicateUser             one request names the user more than once
      UnacceptableCredential    a name, a salt or a count of iterations that no user can have
      UnsupportedMechanism      a way to log in that is not known
      AuthenticationFailed      who it is was not proved; the text is for the log, and never for who tried

Each front door owns the table that turns these into its own codes. A broken promise inside our own code
is not a `RopewalkError`; it is a bug, and an `assert` says so.
"""

from ropewalk.base.limits import ERROR_TEXT_CHARACTERS_MAX


class RopewalkError(Exception):
    """The root. Its text is written for the person at the other end: it names the thing, the value, the bound."""

    def __str__(self) -> str:
        """Cut where it quotes something endless: it goes into answers and logs, which have bounds of their own."""
        text = super().__str__()
        return text if len(text) <= ERROR_TEXT_CHARACTERS_MAX else text[:ERROR_TEXT_CHARACTERS_MAX] + "…"


class InvalidRequest(RopewalkError):
    pass


class ProtocolError(RopewalkError):
    pass


class UnknownTopic(RopewalkError):
    pass


class UnknownTopicId(RopewalkError):
    pass


class UnknownPartition(RopewalkError):
    pass


class TopicExists(RopewalkError):
    pass


class InvalidTopicName(RopewalkError):
    pass


class InvalidPartitionCount(RopewalkError):
    pass


class InvalidReplicationFactor(RopewalkError):
    pass


class InvalidReplicaAssignment(RopewalkError):
    pass


class TransactionalIdMissing(RopewalkError):
    pass


class InvalidSetting(RopewalkError):
    pass


class PolicyViolation(RopewalkError):
    pass


class TopicDeletionDisabled(RopewalkError):
    pass


class ElectionNotNeeded(RopewalkError):
    pass


class LeaderNotAvailable(RopewalkError):
    pass


class NobodyEligible(RopewalkError):
    pass


class NoReassignment(RopewalkError):
    pass


class UnknownBroker(RopewalkError):
    pass


class DuplicateBroker(RopewalkError):
    pass


class DirectoryPutBack(RopewalkError):
    pass


class StaleBrokerEpoch(RopewalkError):
    pass


class OtherCluster(RopewalkError):
    pass


class IneligibleReplica(RopewalkError):
    pass


class StalePartitionEpoch(RopewalkError):
    pass


class NotLeader(RopewalkError):
    pass


class NotController(RopewalkError):
    pass


class FencedEpoch(RopewalkError):
    pass


class UnknownEpoch(RopewalkError):
    pass


class ControllerUnavailable(RopewalkError):
    pass


class NotEnoughReplicas(RopewalkError):
    pass


class NotEnoughReplicasAfterAppend(RopewalkError):
    pass


class OffsetNotAvailable(RopewalkError):
    pass


class FetchSessionUnknown(RopewalkError):
    pass


class FetchSessionEpochInvalid(RopewalkError):
    pass


class FetchSessionTopicsMixed(RopewalkError):
    pass


class OffsetOutOfRange(RopewalkError):
    pass


class CorruptBatch(RopewalkError):
    pass


class InvalidRecord(RopewalkError):
    """Carries the positions of the offending records within their batch, where they are known."""

    def __init__(self, message: str, record_indexes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.record_indexes = record_indexes


class UnsupportedFormat(RopewalkError):
    pass


class UnsupportedCompression(RopewalkError):
    pass


class InvalidTimestamp(RopewalkError):
    pass


class BatchTooLarge(RopewalkError):
    pass


class BatchExceedsSegment(RopewalkError):
    pass


class OutOfOrderSequence(RopewalkError):
    pass


class ProducerFenced(RopewalkError):
    pass


class InvalidTransactionState(RopewalkError):
    pass


class TransactionCoordinatorFenced(RopewalkError):
    pass


class StorageFailed(RopewalkError):
    pass


class DiskFull(StorageFailed):
    pass


class CorruptMetadata(RopewalkError):
    pass


class MetadataUnavailable(RopewalkError):
    """Facts can neither be changed nor read anew until the home is back; what is known already goes on to count."""


class MetadataLeft(RopewalkError):
    pass


class CannotFollow(RopewalkError):
    """Whoever hears this leaves service until it is started again."""


class HistoryParted(CannotFollow):
    """Whoever has followed the other history can never follow this one."""


class UnreadableMetadata(CannotFollow):
    """To go on without what cannot be read would leave the image wrong."""


class VersionRefused(RopewalkError):
    pass


class LevelRefused(RopewalkError):
    pass


class TopicNotAuthorized(RopewalkError):
    pass


class NotInForce(RopewalkError):
    pass


class DirectoryInUse(RopewalkError):
    pass


class DirectoryRefused(RopewalkError):
    pass


class TimedOut(RopewalkError):
    pass


class NodeStopping(RopewalkError):
    pass


class Throttled(RopewalkError):
    pass


class ShardLoading(RopewalkError):
    pass


class ShardElsewhere(RopewalkError):
    pass


class ShardUnavailable(RopewalkError):
    pass


class UnknownQueue(RopewalkError):
    pass


class UnknownMoveTask(RopewalkError):
    pass


class MoveTaskRunning(RopewalkError):
    pass


class MoveTaskOver(RopewalkError):
    pass


class QueueExists(RopewalkError):
    """Carries the name of the first attribute that differs."""

    def __init__(self, attribute: str) -> None:
        super().__init__(
            f"a queue already exists with the same name and a different value for attribute {attribute}"
        )
        self.attribute = attribute


class QueueDeletedRecently(RopewalkError):
    pass


class InvalidQueue(RopewalkError):
    pass


class PurgeInProgress(RopewalkError):
    pass


class QueueNotReady(RopewalkError):
    """Nothing was changed. It passes by itself, when the state has been read or somebody leads again."""


class UnknownUser(RopewalkError):
    pass


class DuplicateUser(RopewalkError):
    pass


class UnacceptableCredential(RopewalkError):
    pass


class UnsupportedMechanism(RopewalkError):
    pass


class AuthenticationFailed(RopewalkError):
    """Its text may say that there is no such user. It goes into the log, and what a client hears is the same whatever was wrong."""
