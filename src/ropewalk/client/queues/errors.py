"""What can go wrong between a client and the door of queues.

    RopewalkError
      QueueRefused            the server answered with an error: `code` and `message` are its own
        QueueMissing          there is no such queue
        QueueExistsOtherwise  there is one of that name, with other attributes
        HandleRefused         a receipt handle is not one of this queue, or its time is over: the message is somebody else's by now
        NotAuthentic          the signature, the key or the clock is not right
        QueueBusy             the server cannot do it at the moment, and has not done it
      NotAllSent              of several messages some were not taken; `outcomes` has each one's fate, in their order
      NoDoor                  no node of the cluster says where it serves the SQS API

`Unreachable`, `ConnectionLost` and `TimedOut` complete the list, as for brokers (`client/errors.py`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ropewalk.base.errors import RopewalkError

if TYPE_CHECKING:
    from ropewalk.client.queues.sending import Sent


class QueueRefused(RopewalkError):
    """`code` is the error's name in the SQS API, such as QueueDoesNotExist."""

    def __init__(self, code: str, message: str, *, status: int = 400, action: str = "") -> None:
        super().__init__(f"{message or 'the server gave no reason'} ({code})")
        self.code = code
        self.name = code
        self.message = message
        self.status = status
        self.action = action


class QueueMissing(QueueRefused):
    pass


class QueueExistsOtherwise(QueueRefused):
    pass


class HandleRefused(QueueRefused):
    pass


class NotAuthentic(QueueRefused):
    pass


class QueueBusy(QueueRefused):
    pass


class NotAllSent(RopewalkError):
    def __init__(self, outcomes: "Sequence[Sent | RopewalkError]") -> None:
        failures = [each for each in outcomes if isinstance(each, RopewalkError)]
        super().__init__(f"{len(failures)} of {len(outcomes)} messages were not sent: {failures[0]}")
        self.outcomes = tuple(outcomes)


class NoDoor(RopewalkError):
    pass


_KINDS: Final[dict[str, type[QueueRefused]]] = {
    "QueueDoesNotExist": QueueMissing,
    "NonExistentQueue": QueueMissing,
    "QueueNameExists": QueueExistsOtherwise,
    "QueueAlreadyExists": QueueExistsOtherwise,
    "ReceiptHandleIsInvalid": HandleRefused,
    "MessageNotInflight": HandleRefused,
    "SignatureDoesNotMatch": NotAuthentic,
    "InvalidClientTokenId": NotAuthentic,
    "UnrecognizedClientException": NotAuthentic,
    "InvalidSignatureException": NotAuthentic,
    "IncompleteSignature": NotAuthentic,
    "MissingAuthenticationToken": NotAuthentic,
    "RequestExpired": NotAuthentic,
    "AccessDenied": NotAuthentic,
    "AccessDeniedException": NotAuthentic,
    "InvalidSecurity": NotAuthentic,
    "RequestThrottled": QueueBusy,
    "Throttling": QueueBusy,
    "ThrottlingException": QueueBusy,
    "ServiceUnavailable": QueueBusy,
}
_PREFIXES: Final = ("AWS.SimpleQueueService.",)
_BUSY_STATUSES: Final = frozenset({429, 503})
_EXPIRED: Final = "receipt handle has expired"


def refusal(code: str, message: str, *, status: int, action: str = "") -> QueueRefused:
    """`code` as it came: with the prefix of one protocol, or in the name space of the other."""
    bare = code.rpartition("#")[2]
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    kind = _KINDS.get(bare, QueueBusy if status in _BUSY_STATUSES else QueueRefused)
    if kind is QueueRefused and _EXPIRED in message:
        kind = HandleRefused
    return kind(bare, message, status=status, action=action)
