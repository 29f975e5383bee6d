"""The two policies about dead letters, in their one spelling.

Behaviour worth knowing
    `maxReceiveCount` may come as a text and is kept as a number. An ARN is read for its last part, the name, and kept as it came.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ropewalk.metadata.queues import Queue
from ropewalk.sqs.errors import SqsRefusal, invalid
from ropewalk.sqs.urls import name_in_arn

RECEIVE_COUNT_MAX: Final = 1_000
SOURCES_MAX: Final = 10
_PARAMETER: Final = "RedrivePolicy"
_ALLOW_PARAMETER: Final = "RedriveAllowPolicy"
_ALLOW_KEY: Final = "RedriveAllowPolicy"

_encode: Final = msgspec.json.encode


def canonical_redrive_policy(
    text: str, *, name: str, is_fifo: bool, find: Callable[[str], Queue | None]
) -> str:
    policy = _document(text)
    if policy is None:
        raise invalid(_PARAMETER, text, "Redrive policy is not a valid JSON map.")
    for key in ("maxReceiveCount", "deadLetterTargetArn"):
        if key not in policy:
            raise invalid(_PARAMETER, text, f"Redrive policy does not contain mandatory attribute: {key}.")
    for key in policy:
        if key not in ("maxReceiveCount", "deadLetterTargetArn"):
            raise invalid(_PARAMETER, text, f"Redrive policy contains an invalid attribute: {key}.")
    arn = policy["deadLetterTargetArn"]
    target_name = name_in_arn(arn) if isinstance(arn, str) else None
    if target_name is None:
        raise invalid(_PARAMETER, text, "Invalid value for deadLetterTargetArn.")
    count = _count(policy["maxReceiveCount"])
    if count is None:
        shown = policy["maxReceiveCount"]
        reason = (
            f"Invalid value for maxReceiveCount: {shown}, valid values are from 1 to 1000 both inclusive."
        )
        raise invalid(_PARAMETER, text, reason)
    target = find(target_name)
    if target is None:
        raise invalid(_PARAMETER, text, "Dead letter target does not exist.")
    if target.is_fifo != is_fifo:
        raise invalid(_PARAMETER, text, "Dead-letter queue must be same type of queue as the source.")
    if not _allows(target, name):
        raise invalid(_PARAMETER, text, "The dead-letter queue does not allow this queue as its source.")
    return _encode({"deadLetterTargetArn": arn, "maxReceiveCount": count}).decode()


def canonical_allow_policy(text: str) -> str:
    policy = _document(text)
    permission = None if policy is None else policy.get("redrivePermission")
    if policy is None or permission not in ("allowAll", "denyAll", "byQueue"):
        raise _unsupported(text)
    arns = policy.get("sourceQueueArns")
    if permission != "byQueue":
        if arns is not None:
            raise _unsupported(text)
        return _encode({"redrivePermission": permission}).decode()
    if not isinstance(arns, list) or not 1 <= len(arns) <= SOURCES_MAX:
        raise _unsupported(text)
    if any(not isinstance(arn, str) or name_in_arn(arn) is None for arn in arns):
        raise _unsupported(text)
    return _encode({"redrivePermission": permission, "sourceQueueArns": arns}).decode()


def _unsupported(text: str) -> SqsRefusal:
    reason = "Amazon SQS can't create the redrive allow policy, as it's in an unsupported format."
    return invalid(_ALLOW_PARAMETER, text, reason)


def _allows(target: Queue, source_name: str) -> bool:
    text = target.attributes.get(_ALLOW_KEY)
    policy = _document(text) if text else None
    if policy is None or policy.get("redrivePermission") == "allowAll":
        return True
    if policy.get("redrivePermission") == "denyAll":
        return False
    arns = policy.get("sourceQueueArns")
    return isinstance(arns, list) and source_name in {name_in_arn(str(arn)) for arn in arns}


def _document(text: str) -> Mapping[str, object] | None:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and 1 <= value <= RECEIVE_COUNT_MAX else None
