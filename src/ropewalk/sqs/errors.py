"""How refusals and the engine's errors are spelled in SQS: for AWS JSON a type, for the Query protocol a code, for both a status and a text.

What a reader could get wrong
    The two protocols have different names for one thing. SDKs that speak JSON still tell their users the Query code, which they take
    from the header `x-amzn-query-error`.
    The texts are AWS's own where they are known; programs compare them.
"""

from http import HTTPStatus
from typing import Final

from msgspec import Struct

from ropewalk.base import errors
from ropewalk.base.errors import RopewalkError
from ropewalk.queues import errors as queues

_SQS: Final = "com.amazonaws.sqs"
_CORAL: Final = "com.amazon.coral.service"
"""Whose errors are those that SQS does not declare itself."""
_PREFIX: Final = "AWS.SimpleQueueService."


class Fault(Struct, frozen=True):
    """One kind of refusal."""

    json_type: str
    """With its namespace, as `__type` has it."""
    query_code: str
    status: HTTPStatus = HTTPStatus.BAD_REQUEST
    text: str = ""
    """What is said where the case has no words of its own."""
    query_text: str = ""
    """Where the Query protocol says it differently."""
    is_senders: bool = True


def _declared(name: str, code: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, text: str = "") -> Fault:
    return Fault(f"{_SQS}#{name}", code, status, text)


def _prefixed(name: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, text: str = "") -> Fault:
    return _declared(name, _PREFIX + name, status, text)


def _undeclared(name: str, code: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, text: str = "") -> Fault:
    return Fault(f"{_CORAL}#{name}", code, status, text)


BATCH_ENTRY_IDS_NOT_DISTINCT: Final = _prefixed("BatchEntryIdsNotDistinct")
BATCH_REQUEST_TOO_LONG: Final = _prefixed("BatchRequestTooLong")
EMPTY_BATCH_REQUEST: Final = _prefixed("EmptyBatchRequest")
INVALID_BATCH_ENTRY_ID: Final = _prefixed(
    "InvalidBatchEntryId",
    text="A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
)
TOO_MANY_ENTRIES: Final = _prefixed("TooManyEntriesInBatchRequest")
PURGE_IN_PROGRESS: Final = _prefixed("PurgeQueueInProgress", HTTPStatus.FORBIDDEN)
QUEUE_DELETED_RECENTLY: Final = _prefixed(
    "QueueDeletedRecently",
    text="You must wait 60 seconds after deleting a queue before you can create another with the same name.",
)
UNSUPPORTED_OPERATION: Final = _prefixed("UnsupportedOperation")
QUEUE_DOES_NOT_EXIST: Final = Fault(
    f"{_SQS}#QueueDoesNotExist",
    _PREFIX + "NonExistentQueue",
    text="The specified queue does not exist.",
    query_text="The specified queue does not exist for this wsdl version.",
)
QUEUE_NAME_EXISTS: Final = _declared("QueueNameExists", "QueueAlreadyExists")
OVER_LIMIT: Final = _declared("OverLimit", "OverLimit", HTTPStatus.FORBIDDEN)
RESOURCE_NOT_FOUND: Final = _declared(
    "ResourceNotFoundException", "ResourceNotFoundException", HTTPStatus.NOT_FOUND
)
INVALID_ATTRIBUTE_NAME: Final = _declared("InvalidAttributeName", "InvalidAttributeName")
INVALID_ATTRIBUTE_VALUE: Final = _declared("InvalidAttributeValue", "InvalidAttributeValue")
INVALID_MESSAGE_CONTENTS: Final = _declared(
    "InvalidMessageContents",
    "InvalidMessageContents",
    text="Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
)
RECEIPT_HANDLE_IS_INVALID: Final = _declared(
    "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", text="The input receipt handle is invalid."
)
REQUEST_THROTTLED: Final = _declared("RequestThrottled", "RequestThrottled")
INVALID_PARAMETER_VALUE: Final = _undeclared("InvalidParameterValueException", "InvalidParameterValue")
MISSING_PARAMETER: Final = _undeclared("MissingRequiredParameterException", "MissingParameter")
SERIALIZATION: Final = _undeclared("SerializationException", "MalformedInput")
UNKNOWN_OPERATION: Final = _undeclared("UnknownOperationException", "InvalidAction")
ACCESS_DENIED: Final = _undeclared("AccessDeniedException", "AccessDenied", HTTPStatus.FORBIDDEN)
NO_SUCH_VERSION: Final = _undeclared("NoSuchVersionException", "NoSuchVersion")
INVALID_CLIENT_TOKEN: Final = _undeclared(
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    HTTPStatus.FORBIDDEN,
    "The security token included in the request is invalid.",
)
EXPIRED_TOKEN: Final = _undeclared(
    "ExpiredTokenException",
    "ExpiredToken",
    HTTPStatus.FORBIDDEN,
    "The security token included in the request is expired",
)
SIGNATURE_DOES_NOT_MATCH: Final = _undeclared(
    "InvalidSignatureException", "SignatureDoesNotMatch", HTTPStatus.FORBIDDEN
)
INCOMPLETE_SIGNATURE: Final = _undeclared("IncompleteSignatureException", "IncompleteSignature")
MISSING_AUTHENTICATION_TOKEN: Final = _undeclared(
    "MissingAuthenticationTokenException",
    "MissingAuthenticationToken",
    HTTPStatus.FORBIDDEN,
    "Request is missing Authentication Token",
)
SERVICE_UNAVAILABLE: Final = Fault(
    f"{_CORAL}#ServiceUnavailableException",
    "ServiceUnavailable",
    HTTPStatus.SERVICE_UNAVAILABLE,
    is_senders=False,
)
INTERNAL_FAILURE: Final = Fault(
    f"{_CORAL}#InternalFailure", "InternalFailure", HTTPStatus.INTERNAL_SERVER_ERROR, is_senders=False
)

FAULTS: Final[dict[type[RopewalkError], Fault]] = {
    errors.UnknownQueue: QUEUE_DOES_NOT_EXIST,
    errors.QueueExists: QUEUE_NAME_EXISTS,
    errors.QueueDeletedRecently: QUEUE_DELETED_RECENTLY,
    errors.InvalidQueue: INVALID_PARAMETER_VALUE,
    errors.PurgeInProgress: PURGE_IN_PROGRESS,
    errors.QueueNotReady: SERVICE_UNAVAILABLE,
    errors.InvalidRequest: INVALID_PARAMETER_VALUE,
    errors.UnknownTopic: INVALID_PARAMETER_VALUE,
    errors.TopicExists: QUEUE_NAME_EXISTS,
    errors.InvalidTopicName: INVALID_PARAMETER_VALUE,
    errors.InvalidSetting: INVALID_PARAMETER_VALUE,
    errors.PolicyViolation: INVALID_PARAMETER_VALUE,
    errors.NotInForce: UNSUPPORTED_OPERATION,
    errors.TopicDeletionDisabled: UNSUPPORTED_OPERATION,
    errors.BatchTooLarge: INVALID_PARAMETER_VALUE,
    errors.Throttled: REQUEST_THROTTLED,
    queues.TooManyInFlight: OVER_LIMIT,
    queues.MoveUnderWay: SERVICE_UNAVAILABLE,
    queues.TooManyWaiting: REQUEST_THROTTLED,
    queues.DeduplicationFull: REQUEST_THROTTLED,
    queues.ReceiptExpired: INVALID_PARAMETER_VALUE,
    queues.MessageNotInFlight: INVALID_PARAMETER_VALUE,
    queues.VisibilityTooLong: INVALID_PARAMETER_VALUE,
    queues.MoveUnderWay: SERVICE_UNAVAILABLE,
    errors.NotLeader: SERVICE_UNAVAILABLE,
    errors.NotController: SERVICE_UNAVAILABLE,
    errors.LeaderNotAvailable: SERVICE_UNAVAILABLE,
    errors.ControllerUnavailable: SERVICE_UNAVAILABLE,
    errors.MetadataUnavailable: SERVICE_UNAVAILABLE,
    errors.NotEnoughReplicas: SERVICE_UNAVAILABLE,
    errors.NotEnoughReplicasAfterAppend: SERVICE_UNAVAILABLE,
    errors.UnknownPartition: SERVICE_UNAVAILABLE,
    errors.UnknownTopicId: SERVICE_UNAVAILABLE,
    errors.TimedOut: SERVICE_UNAVAILABLE,
    errors.NodeStopping: SERVICE_UNAVAILABLE,
    errors.ShardLoading: SERVICE_UNAVAILABLE,
    errors.ShardElsewhere: SERVICE_UNAVAILABLE,
    errors.ShardUnavailable: SERVICE_UNAVAILABLE,
    errors.DiskFull: SERVICE_UNAVAILABLE,
}
"""What is not here is a failure of the node's own."""


class SqsRefusal(RopewalkError):
    """What the door refuses by itself, in SQS's words."""

    def __init__(self, fault: Fault, text: str = "") -> None:
        super().__init__(text or fault.text)
        self.fault = fault


def fault_of(error: RopewalkError) -> Fault:
    if isinstance(error, SqsRefusal):
        return error.fault
    return FAULTS.get(type(error), INTERNAL_FAILURE)


def text_of(error: RopewalkError, fault: Fault, *, is_query: bool = False) -> str:
    if isinstance(error, SqsRefusal) and error.args[0] != fault.text:
        return str(error)
    if isinstance(error, errors.QueueExists):
        return other_attribute(error.attribute)
    return (fault.query_text if is_query else "") or fault.text or str(error)


def other_attribute(name: str) -> str:
    return f"A queue already exists with the same name and a different value for attribute {name}"


def missing(parameter: str) -> SqsRefusal:
    return SqsRefusal(MISSING_PARAMETER, f"The request must contain the parameter {parameter}.")


def invalid(parameter: str, value: object, reason: str) -> SqsRefusal:
    """`InvalidParameterValue`, as most of SQS's own are worded."""
    return SqsRefusal(
        INVALID_PARAMETER_VALUE, f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    )


def no_such_queue() -> SqsRefusal:
    return SqsRefusal(QUEUE_DOES_NOT_EXIST)
