"""What can go wrong on the client's side of a connection.

    RopewalkError
      RemoteError           the broker answered with an error code of Kafka's
      Unreachable           no connection could be made; nothing was sent
      ConnectionLost        the connection ended under a request; it may or may not have taken effect
      ApiNotOffered         the broker does not speak an API, or no version of it that we do

`base.errors.TimedOut` completes the list: like `ConnectionLost` it leaves open what the broker did.
The distinction decides what is tried again. `is_retriable` asks whether another attempt could succeed,
`is_definite` whether the failed one is known to have changed nothing.
"""

from typing import Final

from ropewalk.base.errors import RopewalkError, TimedOut
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


class ConnectionLost(RopewalkError):
    pass


class ApiNotOffered(RopewalkError):
    pass


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
