"""What the attributes of a queue may say, as far as nodes act on them: numbers, where dead letters go, and who may send them where.

Doors check attributes before they come here and have texts of their own for what is wrong. What gets past
them must not leave facts that a leader cannot act on, so the same bounds are kept here, whoever asks.

Behaviour worth knowing
    A dead-letter queue must be there, of the same kind, another one than the queue itself, and take what comes from it.
    That is asked when it is named, and not again: to delete a target is allowed, as in SQS, and dead letters stay where they are then.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct

from ropewalk.base.errors import InvalidQueue
from ropewalk.base.limits import (
    QUEUE_ALLOWED_SOURCES_MAX,
    QUEUE_ATTRIBUTES_BYTES_MAX,
    QUEUE_RECEIVE_COUNT_MAX,
)
from ropewalk.metadata.queues import (
    FIFO_SUFFIX,
    REDRIVE_ALLOW_POLICY,
    REDRIVE_POLICY,
    Queue,
    QueueIndex,
    Redrive,
    redrive_of,
)

BY_GROUP: Final = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
"""What a FIFO queue of several partitions has: each knows the messages of its own groups only."""

_NUMBERS: Final = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
}
_CHOICES: Final = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
_FIFO_QUEUE: Final = "FifoQueue"


class _AllowPolicy(Struct, rename="camel", forbid_unknown_fields=True):
    redrive_permission: Literal["allowAll", "denyAll", "byQueue"]
    source_queue_arns: tuple[str, ...] = ()


def check_attributes(name: str, attributes: Mapping[str, str]) -> None:
    """Raise `InvalidQueue` unless a queue of that name may have them, all together, whatever other queues there are."""
    check_size("attributes", attributes)
    is_fifo = name.endswith(FIFO_SUFFIX)
    if (kind := attributes.get(_FIFO_QUEUE)) is not None and kind != ("true" if is_fifo else "false"):
        raise InvalidQueue(f"FifoQueue={kind} of {name}: names of FIFO queues end in .fifo, and only theirs")
    for attribute, (minimum, maximum) in _NUMBERS.items():
        text = attributes.get(attribute)
        if text is not None and not (
            text.isascii() and text.isdigit() and len(text) <= 10 and minimum <= int(text) <= maximum
        ):
            raise InvalidQueue(f"{attribute} of {name} must be {minimum} to {maximum}, it is {text!r}")
    for attribute, choices in _CHOICES.items():
        text = attributes.get(attribute)
        if text is None:
            continue
        if not is_fifo:
            raise InvalidQueue(f"{attribute} is for FIFO queues, and {name} is none")
        if text not in choices:
            raise InvalidQueue(f"{attribute} of {name} must be one of {', '.join(choices)}, it is {text!r}")
    _allow_policy(name, attributes)
    _redrive(name, attributes)


def check_redrive(queues: QueueIndex, name: str, attributes: Mapping[str, str | None]) -> None:
    """Raise `InvalidQueue` if these name a dead-letter queue that the queue of that name cannot have."""
    redrive = _redrive(name, {each: text for each, text in attributes.items() if text is not None})
    if redrive is not None:
        _check_target(queues, name, redrive)


def check_size(what: str, texts: Mapping[str, str]) -> None:
    size_bytes = sum(len(name.encode()) + len(text.encode()) for name, text in texts.items())
    if size_bytes > QUEUE_ATTRIBUTES_BYTES_MAX:
        raise InvalidQueue(
            f"the {what} of a queue take {size_bytes} bytes, {QUEUE_ATTRIBUTES_BYTES_MAX} are kept"
        )


def check_spread(name: str, attributes: Mapping[str, str], partition_count: int) -> None:
    """Raise `InvalidQueue` for a FIFO queue of several partitions that promises what only one could keep."""
    if partition_count <= 1 or not name.endswith(FIFO_SUFFIX):
        return
    for attribute, needed in BY_GROUP.items():
        if attributes.get(attribute) != needed:
            raise InvalidQueue(
                f"{name} has {partition_count} partitions, and each knows its own groups only: {attribute} must be {needed}"
            )


def first_difference(queue: Queue, attributes: Mapping[str, str]) -> str | None:
    """The first of `attributes` that the queue has another value of; what is not named is not compared."""
    for attribute, text in attributes.items():
        if attribute == REDRIVE_POLICY:  # regions in ARNs are whatever callers have
            if _redrive(queue.name, attributes) != queue.redrive:
                return attribute
        elif queue.attribute(attribute) != text:
            return attribute
    return None


def _redrive(name: str, attributes: Mapping[str, str]) -> Redrive | None:
    try:
        redrive = redrive_of(attributes)
    except ValueError as error:
        raise InvalidQueue(f"{REDRIVE_POLICY} of {name} cannot be read: {error}") from None
    if redrive is not None and not 1 <= redrive.receive_count_max <= QUEUE_RECEIVE_COUNT_MAX:
        raise InvalidQueue(
            f"maxReceiveCount of {name} is {redrive.receive_count_max}, must be 1 to {QUEUE_RECEIVE_COUNT_MAX}"
        )
    return redrive


def _check_target(queues: QueueIndex, name: str, redrive: Redrive) -> None:
    if redrive.target == name:
        raise InvalidQueue(f"{name} cannot be its own dead-letter queue")
    target = queues.get(redrive.target)
    if target is None:
        raise InvalidQueue(f"there is no queue {redrive.target!r} for the dead letters of {name}")
    if target.is_fifo != name.endswith(FIFO_SUFFIX):
        raise InvalidQueue(
            f"{redrive.target} cannot take the dead letters of {name}: one is a FIFO queue and the other is not"
        )
    policy = _allow_policy(target.name, target.attributes)
    if policy is None or policy.redrive_permission == "allowAll":
        return
    allowed = [arn.rpartition(":")[2] for arn in policy.source_queue_arns]
    if policy.redrive_permission == "denyAll" or name not in allowed:
        raise InvalidQueue(f"{redrive.target} does not take dead letters of {name}: {REDRIVE_ALLOW_POLICY}")


def _allow_policy(name: str, attributes: Mapping[str, str]) -> _AllowPolicy | None:
    text = attributes.get(REDRIVE_ALLOW_POLICY)
    if not text:
        return None
    try:
        policy = msgspec.json.decode(text, type=_AllowPolicy)
    except ValueError as error:
        raise InvalidQueue(f"{REDRIVE_ALLOW_POLICY} of {name} cannot be read: {error}") from None
    count = len(policy.source_queue_arns)
    count_max = QUEUE_ALLOWED_SOURCES_MAX if policy.redrive_permission == "byQueue" else 0
    if not min(1, count_max) <= count <= count_max:
        raise InvalidQueue(
            f"{REDRIVE_ALLOW_POLICY} of {name} is {policy.redrive_permission} and names {count} queues; "
            f"byQueue names 1 to {QUEUE_ALLOWED_SOURCES_MAX}, the others none"
        )
    return policy
