"""What can go wrong on the client's side of a connection.

    RopewalkError
      RemoteError           the broker answered with an error code of Kafka's
      Unreachable           no connection could be made; nothing was sent
        NotAnswered         whoever is there does not speak as a broker does
      NotAdmitted           a broker does not let this client in, or is not who it should be; trying again changes nothing
        AuthenticationFailed  it does not take the user's password, token or mechanism
        TlsFailed           its certificate is not trusted, it does not trust ours, or it does not speak TLS
      ConnectionLost        the connection ended under a request; it may or may not have taken effect
      ApiNotOffered         the broker does not speak an API, or no version of it that we do
      DeliveryFailed        records were not acknowledged; `is_unknown` tells whether they may be there all the same
      RecordTooLarge        a record that no request may carry
      BufferFull            the producer's memory was full for too long
      Misuse                a call that makes no sense in the state the client is in
      TransactionFailed     the transaction cannot be committed any more; abort it and begin another
      OutcomeUnknown        a transaction was to be ended, and nobody knows whether it is; ask for the same again
      CommitFailed          the group has moved on: these partitions belong to somebody else now
      TopicReplaced         the topic that was asked for is gone, and another has its name
      NoOffset              a partition to be read has no offset to begin at
      NotOfFormat           a value cannot be written in the format that was chosen, or bytes cannot be read in it
      HistoryChanged        what was read before a position is no longer what the log holds there
      CorruptBatch
        UnreadableBatch     a batch that cannot be opened; reading stays at it until the application seeks past it

`base.errors.TimedOut` completes the list: like `ConnectionLost` it leaves open what the broker did.
The distinction decides what is tried again. `is_retriable` asks whether another attempt could succeed,
`is_definite` whether the failed one is known to have changed nothing, `may_be_appended` whether a Produce that was
answered so may have put its batch into the log all the same.
"""

from typing import Final

from ropewalk.base.errors import CorruptBatch, InvalidSetting, RopewalkError, TimedOut
from ropewalk.base.ids import TopicPartition
from ropewalk.wire.error_code import RETRIABLE, ErrorCode


class RemoteError(RopewalkError):
    """A broker refused. `code` is `UNKNOWN_SERVER_ERROR` for a number that this client does not know."""

    def __init__(self, number: int, message: str | None = None, *, about: str = "") -> None:
        try:
            self.code = ErrorCode(number)
            name = self.code.name
        except ValueError:
            self.code = ErrorCode.UNKNOWN_SERVER_ERROR
            name = f"error {number}"
        self.number = number
        self.name = name
        self.message = message or name.lower().replace("_", " ")
        self.about = about
        super().__init__(f"{about}: {self.message} ({name})" if about else f"{self.message} ({name})")


class Unreachable(RopewalkError):
    """Carries the address, so that the person at the other end can see which one was tried."""

    def __init__(self, address: object, reason: str) -> None:
        super().__init__(f"cannot reach {address}: {reason}")
        self.address = str(address)
        self.reason = reason


class NotAnswered(Unreachable):
    """Somebody is there, who hung up or answered with something else."""


class NotAdmitted(RopewalkError):
    """Raised to the caller at once: until somebody changes a setting or a credential, another attempt would end alike."""

    def __init__(self, address: object, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = str(address)
        self.reason = reason


class AuthenticationFailed(NotAdmitted):
    """`reason` has the broker's own words."""


class TlsFailed(NotAdmitted):
    """`reason` says what to set."""


class ConnectionLost(RopewalkError):
    pass


class ApiNotOffered(RopewalkError):
    pass


class DeliveryFailed(RopewalkError):
    """Nobody acknowledged these records.

    `is_unknown` True: they may be in the log, now or later, and may not. False: they certainly are not.
    """

    def __init__(self, about: str, record_count: int, cause: RopewalkError, *, is_unknown: bool) -> None:
        records = "1 record was" if record_count == 1 else f"{record_count} records were"
        fate = "whether they are in the log is not known" if is_unknown else "none of them is in the log"
        super().__init__(f"{about}: {records} not acknowledged, {fate}: {cause}")
        self.cause = cause
        self.is_unknown = is_unknown


class TopicReplaced(RopewalkError):
    """Offsets of the one mean nothing in the other. Ids are as Kafka's tools print them."""

    def __init__(self, topic: str, *, expected_id: str, found_id: str) -> None:
        super().__init__(
            f"topic {topic} with the id {expected_id} is gone; another with the id {found_id} has its name"
        )
        self.topic = topic
        self.expected_id = expected_id
        self.found_id = found_id


class RecordTooLarge(RopewalkError):
    pass


class BufferFull(RopewalkError):
    pass


class Misuse(RopewalkError):
    pass


class TransactionFailed(RopewalkError):
    """`cause` is what ended it. Nothing of the transaction will be seen by those who read what is committed."""

    def __init__(self, transactional_id: str, cause: RopewalkError) -> None:
        super().__init__(f"the transaction of {transactional_id} must be aborted: {cause}")
        self.cause = cause


class OutcomeUnknown(RopewalkError):
    pass


class CommitFailed(RopewalkError):
    pass


class NoOffset(RopewalkError):
    pass


class NotOfFormat(RopewalkError):
    pass


class HistoryChanged(RopewalkError):
    """The log was cut, or made anew, below where this consumer stands: offsets from `diverged_at` on are other records now."""

    def __init__(self, partition: TopicPartition, position: int, diverged_at: int, reason: str) -> None:
        super().__init__(
            f"{partition} was read up to offset {position}, but from offset {diverged_at} on it has another history: {reason}"
        )
        self.partition = partition
        self.position = position
        self.diverged_at = diverged_at


class UnreadableBatch(CorruptBatch):
    """`end_offset` is where the batch ends and reading may go on (`seek`); None where that cannot be told."""

    def __init__(
        self, partition: TopicPartition, base_offset: int, end_offset: int | None, cause: RopewalkError
    ) -> None:
        way_on = "" if end_offset is None else f" (seek to {end_offset} to go on behind it)"
        super().__init__(
            f"{partition} has a batch at offset {base_offset} that cannot be read: {cause}{way_on}"
        )
        self.partition = partition
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.cause = cause


STALE_METADATA: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""What we believe about the cluster is out of date: ask again before the next attempt."""

_INDEFINITE: Final = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


SILENCE: Final = (Unreachable, ConnectionLost, TimedOut)
"""A broker that does not answer, whatever the reason: one that refuses has answered."""


LASTING: Final = (NotAdmitted, InvalidSetting)
"""What only a person can end: a background task that meets one of these does not try again."""


def is_retriable(error: RopewalkError) -> bool:
    """Whether the same request may succeed a moment later."""
    match error:
        case RemoteError():
            return error.code in RETRIABLE
        case Unreachable() | ConnectionLost():
            return True
        case _:
            return False


def is_definite(error: RopewalkError) -> bool:
    """Whether the failed request certainly changed nothing, so that repeating it cannot do it twice."""
    match error:
        case RemoteError():
            return error.code not in _INDEFINITE
        case ConnectionLost() | TimedOut():
            return False
        case _:
            return True


_LEFT_BEHIND: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""A broker that is deposed while a batch waits for its acks answers as one that never led; so where the topic is deleted."""


def may_be_appended(error: RopewalkError) -> bool:
    """Whether a batch that was refused with this may be in the log, or come into it on another node.

    Stricter than the opposite of `is_definite`, by which a producer without sequences follows a leader that has moved.
    """
    return not is_definite(error) or (isinstance(error, RemoteError) and error.code in _LEFT_BEHIND)
