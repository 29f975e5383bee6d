"""The attributes of a queue: names, kinds, bounds and defaults in one table, and what SQS says to those that cannot be.

What a reader could get wrong
    Blanks around a name are stripped: they occur in the wild.
    A policy that is set to nothing is taken away. Attributes that nobody set are not stored; they are answered from the table.
    Policies, keys and encryption are kept and answered. Nothing here enforces them, except who may use a dead-letter queue.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.base.limits import SQS_MESSAGE_BYTES_MAX, SQS_POLICY_BYTES_MAX
from ropewalk.metadata.queues import REDRIVE_POLICY, Queue, redrive_of
from ropewalk.sqs.errors import (
    INVALID_ATTRIBUTE_NAME,
    INVALID_ATTRIBUTE_VALUE,
    INVALID_PARAMETER_VALUE,
    SqsRefusal,
    invalid,
)
from ropewalk.sqs.redrive import canonical_allow_policy, canonical_redrive_policy

ALL: Final = "All"
VISIBILITY_TIMEOUT: Final = "VisibilityTimeout"
WAIT_TIME: Final = "ReceiveMessageWaitTimeSeconds"
DELAY_SECONDS: Final = "DelaySeconds"
MESSAGE_BYTES_MAX: Final = "MaximumMessageSize"
POLICY: Final = "Policy"
REDRIVE_ALLOW_POLICY: Final = "RedriveAllowPolicy"
FIFO_QUEUE: Final = "FifoQueue"
CONTENT_BASED_DEDUPLICATION: Final = "ContentBasedDeduplication"
DEDUPLICATION_SCOPE: Final = "DeduplicationScope"
THROUGHPUT_LIMIT: Final = "FifoThroughputLimit"
KMS_KEY: Final = "KmsMasterKeyId"
KMS_REUSE: Final = "KmsDataKeyReusePeriodSeconds"
SQS_SSE: Final = "SqsManagedSseEnabled"

TRUE: Final = "true"
FALSE: Final = "false"


class Kind(Enum):
    INTEGER = "integer"
    BOOLEAN = "true or false"
    CHOICE = "choice"
    TEXT = "text"
    POLICY = "JSON"
    FIGURE = "figure"
    """Only read."""


class Attribute(Struct, frozen=True, kw_only=True):
    name: str
    kind: Kind
    minimum: int = 0
    maximum: int = 0
    default: str | None = None
    """None: not answered where nobody set it."""
    choices: tuple[str, ...] = ()
    is_fifo_only: bool = False
    description: str = ""


ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    attribute.name: attribute
    for attribute in (
        Attribute(
            name=DELAY_SECONDS,
            kind=Kind.INTEGER,
            maximum=900,
            default="0",
            description="How long a message stays hidden after it was sent.",
        ),
        Attribute(
            name=MESSAGE_BYTES_MAX,
            kind=Kind.INTEGER,
            minimum=1_024,
            maximum=SQS_MESSAGE_BYTES_MAX,
            default=str(SQS_MESSAGE_BYTES_MAX),
            description="Of a message's body and attributes together.",
        ),
        Attribute(
            name="MessageRetentionPeriod",
            kind=Kind.INTEGER,
            minimum=60,
            maximum=1_209_600,
            default="345600",
            description="After so many seconds a message is dropped.",
        ),
        Attribute(
            name=WAIT_TIME,
            kind=Kind.INTEGER,
            maximum=20,
            default="0",
            description="How long a receive waits that does not say.",
        ),
        Attribute(
            name=VISIBILITY_TIMEOUT,
            kind=Kind.INTEGER,
            maximum=43_200,
            default="30",
            description="How long a message is hidden once it was received.",
        ),
        Attribute(name=POLICY, kind=Kind.POLICY, description="Kept and answered, not enforced."),
        Attribute(
            name=REDRIVE_POLICY,
            kind=Kind.POLICY,
            description="`deadLetterTargetArn` and `maxReceiveCount`, 1 to 1,000.",
        ),
        Attribute(
            name=REDRIVE_ALLOW_POLICY,
            kind=Kind.POLICY,
            description="Which queues may have this one as dead-letter queue: `redrivePermission`, and up to ten `sourceQueueArns`.",
        ),
        Attribute(name=KMS_KEY, kind=Kind.TEXT, description="Kept and answered; nothing is encrypted."),
        Attribute(
            name=KMS_REUSE, kind=Kind.INTEGER, minimum=60, maximum=86_400, description="Kept and answered."
        ),
        Attribute(
            name=SQS_SSE,
            kind=Kind.BOOLEAN,
            default=TRUE,
            description="Kept and answered; nothing is encrypted.",
        ),
        Attribute(
            name=FIFO_QUEUE,
            kind=Kind.BOOLEAN,
            is_fifo_only=True,
            default=TRUE,
            description="`true`, when a queue is created whose name ends in `.fifo`.",
        ),
        Attribute(
            name=CONTENT_BASED_DEDUPLICATION,
            kind=Kind.BOOLEAN,
            is_fifo_only=True,
            default=FALSE,
            description="A message without a deduplication id gets the SHA-256 of its body.",
        ),
        Attribute(
            name=DEDUPLICATION_SCOPE,
            kind=Kind.CHOICE,
            choices=("queue", "messageGroup"),
            is_fifo_only=True,
            default="queue",
            description="Whether ids are compared in the queue or in each group.",
        ),
        Attribute(
            name=THROUGHPUT_LIMIT,
            kind=Kind.CHOICE,
            choices=("perQueue", "perMessageGroupId"),
            is_fifo_only=True,
            default="perQueue",
            description="The latter only with the scope `messageGroup`.",
        ),
        Attribute(name="ApproximateNumberOfMessages", kind=Kind.FIGURE, description="Visible ones."),
        Attribute(
            name="ApproximateNumberOfMessagesNotVisible",
            kind=Kind.FIGURE,
            description="Those that somebody has received and not deleted.",
        ),
        Attribute(
            name="ApproximateNumberOfMessagesDelayed",
            kind=Kind.FIGURE,
            description="Those that are not visible yet.",
        ),
        Attribute(name="CreatedTimestamp", kind=Kind.FIGURE, description="In seconds since 1970."),
        Attribute(name="LastModifiedTimestamp", kind=Kind.FIGURE, description="In seconds since 1970."),
        Attribute(name="QueueArn", kind=Kind.FIGURE, description="With the region of who asks."),
    )
}
FIGURES: Final = frozenset(name for name, each in ATTRIBUTES.items() if each.kind is Kind.FIGURE)
COUNTS: Final = frozenset(name for name in FIGURES if name.startswith("Approximate"))

_REMOVABLE: Final = frozenset({POLICY, REDRIVE_POLICY, REDRIVE_ALLOW_POLICY, KMS_KEY})
_SAID_BY_NAME: Final = frozenset({DEDUPLICATION_SCOPE, THROUGHPUT_LIMIT})
"""Of these a standard queue's owner hears more than that they are unknown."""

_ONE_ENCRYPTION: Final = "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
_SCOPE_NEEDED: Final = (
    "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup."
)


def stripped(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name.strip(): value for name, value in attributes.items()}


def value_of(queue: Queue, name: str) -> str:
    """Of an attribute that has a default."""
    value = queue.attributes.get(name)
    if value is None:
        value = ATTRIBUTES[name].default
        assert value is not None, f"{name} has no default"
    return value


def integer_of(queue: Queue, name: str) -> int:
    return int(value_of(queue, name))


def is_on(queue: Queue, name: str) -> bool:
    return value_of(queue, name) == TRUE


def asked_names(names: tuple[str, ...], *, is_fifo: bool) -> frozenset[str]:
    """What GetQueueAttributes is to answer. Raises `SqsRefusal` for names that there are not."""
    asked = {name.strip() for name in names}
    for name in sorted(asked - ATTRIBUTES.keys() - {ALL}):
        raise SqsRefusal(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")
    if ALL in asked:
        asked = set(ATTRIBUTES)
    return frozenset(name for name in asked if is_fifo or not ATTRIBUTES[name].is_fifo_only)


def canonical(
    attributes: Mapping[str, str], *, name: str, is_fifo: bool, find: Callable[[str], Queue | None]
) -> dict[str, str | None]:
    """Every value in its one spelling; None takes it away. Raises `SqsRefusal`.

    `find` finds queues by name, for policies that name them.
    """
    result: dict[str, str | None] = {}
    for key, text in stripped(attributes).items():
        attribute = _known(key, is_fifo=is_fifo)
        if not text and key in _REMOVABLE:
            result[key] = None
        elif key == REDRIVE_POLICY:
            result[key] = canonical_redrive_policy(text, name=name, is_fifo=is_fifo, find=find)
        elif key == REDRIVE_ALLOW_POLICY:
            result[key] = canonical_allow_policy(text)
        else:
            result[key] = _parse(attribute, text)
    return result


def check_together(
    changes: dict[str, str | None], before: Mapping[str, str], *, is_fifo: bool
) -> dict[str, str | None]:
    """What one attribute means for another. `before` is what was set by then. Raises `SqsRefusal`."""
    key = changes.get(KMS_KEY) if KMS_KEY in changes else before.get(KMS_KEY)
    if key and changes.get(SQS_SSE) == TRUE:
        raise SqsRefusal(INVALID_ATTRIBUTE_NAME, _ONE_ENCRYPTION)
    if changes.get(KMS_KEY):
        changes[SQS_SSE] = FALSE
    if is_fifo and (DEDUPLICATION_SCOPE in changes or THROUGHPUT_LIMIT in changes):
        after = {**before, **changes}
        by_group = after.get(THROUGHPUT_LIMIT) == "perMessageGroupId"
        if by_group and after.get(DEDUPLICATION_SCOPE) != "messageGroup":
            raise SqsRefusal(INVALID_PARAMETER_VALUE, _SCOPE_NEEDED)
    return changes


def differing(given: Mapping[str, str | None], queue: Queue) -> str | None:
    """The first attribute that somebody wants otherwise than it is; those that are not given are not compared."""
    for name, value in given.items():
        now = queue.attributes.get(name, ATTRIBUTES[name].default)
        if value is None or value == now:
            continue
        if name == REDRIVE_POLICY and redrive_of({name: value}) == queue.redrive:
            continue  # regions in ARNs are whatever callers have
        return name
    return None


def settled(queue: Queue) -> Iterator[tuple[str, str]]:
    """All that GetQueueAttributes has to answer besides figures."""
    for name, attribute in ATTRIBUTES.items():
        if attribute.is_fifo_only and not queue.is_fifo:
            continue
        value = queue.attributes.get(name, attribute.default)
        if name == KMS_REUSE and value is None and queue.attributes.get(KMS_KEY):
            value = "300"
        if value is not None:
            yield name, value


def _known(name: str, *, is_fifo: bool) -> Attribute:
    attribute = ATTRIBUTES.get(name)
    if attribute is None or attribute.kind is Kind.FIGURE:
        raise SqsRefusal(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")
    if attribute.is_fifo_only and not is_fifo:
        if name in _SAID_BY_NAME:
            text = f"You can specify the {name} only when FifoQueue is set to true."
            raise SqsRefusal(INVALID_ATTRIBUTE_NAME, text)
        raise SqsRefusal(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")
    return attribute


def _parse(attribute: Attribute, text: str) -> str:
    match attribute.kind:
        case Kind.INTEGER:
            number = text.strip()
            if number.isascii() and number.isdecimal() and len(number) < 10:
                value = int(number)
                if attribute.minimum <= value <= attribute.maximum:
                    return str(value)
        case Kind.BOOLEAN:
            if text.lower() in (TRUE, FALSE):
                return text.lower()
        case Kind.CHOICE:
            if text in attribute.choices:
                return text
        case Kind.POLICY:
            return _parse_policy(attribute, text)
        case _:
            if len(text.encode()) <= SQS_POLICY_BYTES_MAX:
                return text
    raise invalid_value(attribute.name)


def _parse_policy(attribute: Attribute, text: str) -> str:
    """A policy is stored as it came: its owner compares texts."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise invalid_value(attribute.name) from None
    if not isinstance(document, dict) or len(text.encode()) > SQS_POLICY_BYTES_MAX:
        raise invalid_value(attribute.name)
    return text


def invalid_value(name: str) -> SqsRefusal:
    return SqsRefusal(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}.")


def out_of_range(parameter: str, value: int, minimum: int, maximum: int) -> SqsRefusal:
    return invalid(parameter, value, f"Must be >= {minimum} and <= {maximum}, if provided.")
