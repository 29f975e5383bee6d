"""From what a sender gave to what is sent: one message of SendMessage, or an entry of SendMessageBatch.

Behaviour worth knowing
    On FIFO queues a group and a deduplication id are demanded, a delay is the queue's own, and 0 is taken for that.
    Standard queues take groups, by which they are fair, and keep a deduplication id without looking at it.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.metadata.queues import Queue
from ropewalk.queues.messages import Outgoing, Sent
from ropewalk.records.packing import Headers
from ropewalk.sqs import checksums
from ropewalk.sqs.attributes import (
    CONTENT_BASED_DEDUPLICATION,
    DELAY_SECONDS,
    MESSAGE_BYTES_MAX,
    integer_of,
    is_on,
)
from ropewalk.sqs.errors import INVALID_PARAMETER_VALUE, SqsRefusal, invalid, missing
from ropewalk.sqs.message_ids import message_id
from ropewalk.sqs.messages import (
    TRACE_HEADER,
    AttributeValue,
    check_attributes,
    check_body,
    check_id,
    check_system_attributes,
    checksummed,
)
from ropewalk.sqs.packing import headers_of_sender, pack

DELAY_S_MAX: Final = 900
_SEQUENCE_BASE: Final = 10**19
"""Sequence numbers have twenty digits."""

NOT_FOR_THIS_TYPE: Final = "The request include parameter that is not valid for this queue type."
NO_DEDUPLICATION_ID: Final = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"


class Message(Protocol):
    """What a request or an entry says."""

    @property
    def message_body(self) -> str: ...
    @property
    def delay_seconds(self) -> int | None: ...
    @property
    def message_attributes(self) -> Mapping[str, AttributeValue] | None: ...
    @property
    def message_system_attributes(self) -> Mapping[str, AttributeValue] | None: ...
    @property
    def message_deduplication_id(self) -> str | None: ...
    @property
    def message_group_id(self) -> str | None: ...


class Prepared(Struct, frozen=True):
    outgoing: Outgoing
    size_bytes: int
    """As SQS counts."""
    body_md5: str
    attributes_md5: str | None
    system_attributes_md5: str | None


class Terms(Struct, frozen=True):
    """What a queue, and who sends to it, mean for every message of a request."""

    is_fifo: bool
    delay_ms: int
    """Of messages that say none. Of a FIFO queue every message has the queue's, which its leader knows."""
    sender: str
    plain_headers: Headers
    """Of a message that says nothing but its body."""
    now_ms: int


def terms_of(queue: Queue, *, sender: str, now_ms: int) -> Terms:
    delay_s, is_fifo = 0, queue.is_fifo
    if DELAY_SECONDS in queue.attributes and not is_fifo:
        delay_s = integer_of(queue, DELAY_SECONDS)
    return Terms(is_fifo, 1_000 * delay_s, sender, headers_of_sender(sender), now_ms)


def check_ids(message: Message, queue: Queue) -> None:
    """What a FIFO queue demands of every message. Raises `SqsRefusal`."""
    if message.message_group_id is None:
        raise missing("MessageGroupId")
    if message.message_deduplication_id is None and not is_on(queue, CONTENT_BASED_DEDUPLICATION):
        raise SqsRefusal(INVALID_PARAMETER_VALUE, NO_DEDUPLICATION_ID)


def prepare(message: Message, terms: Terms) -> Prepared:
    """Raises `SqsRefusal`. How large it may be is for the caller to check."""
    is_fifo, body = terms.is_fifo, check_body(message.message_body)
    size_bytes = len(body)
    attributes, attributes_md5 = message.message_attributes, None
    if attributes:
        size_bytes += check_attributes(attributes)
        attributes_md5 = checksums.of_attributes(checksummed(attributes))
    trace, system_attributes_md5 = None, None
    if message.message_system_attributes:
        trace = check_system_attributes(message.message_system_attributes)
        if trace is not None:
            system_attributes_md5 = checksums.of_attributes([(TRACE_HEADER, "String", trace)])
    group, deduplication_id = message.message_group_id, message.message_deduplication_id
    if group is not None:
        check_id("MessageGroupId", group)
    if deduplication_id is not None:
        check_id("MessageDeduplicationId", deduplication_id)
    elif is_fifo:
        deduplication_id = sha256(body).hexdigest()
    delay_ms = terms.delay_ms
    if message.delay_seconds is not None:
        delay_ms = _delay_ms(message.delay_seconds, is_fifo=is_fifo)
    if not (attributes or trace or deduplication_id or delay_ms):
        plain = Outgoing(body=body, headers=terms.plain_headers, sent_at_ms=terms.now_ms, group=group or "")
        return Prepared(plain, size_bytes, checksums.of_bytes(body), None, system_attributes_md5)
    outgoing = pack(
        body,
        attributes=attributes,
        trace=trace,
        sender=terms.sender,
        group=group or "",
        deduplication_id=deduplication_id or "",
        delay_ms=delay_ms,
        is_fifo=is_fifo,
        now_ms=terms.now_ms,
    )
    return Prepared(outgoing, size_bytes, checksums.of_bytes(body), attributes_md5, system_attributes_md5)


def size_max(queue: Queue) -> int:
    return integer_of(queue, MESSAGE_BYTES_MAX)


def id_of(queue: Queue, sent: Sent) -> str:
    return message_id(queue.topic_id, sent.partition, sent.offset)


def sequence_number(queue: Queue, offset: int) -> str | None:
    """None on standard queues."""
    return str(_SEQUENCE_BASE + offset) if queue.is_fifo else None


def _delay_ms(delay_s: int, *, is_fifo: bool) -> int:
    if is_fifo:
        if delay_s:
            raise invalid(DELAY_SECONDS, delay_s, NOT_FOR_THIS_TYPE)
        return 0
    if not 0 <= delay_s <= DELAY_S_MAX:
        raise invalid(DELAY_SECONDS, delay_s, f"DelaySeconds must be >= 0 and <= {DELAY_S_MAX}.")
    return 1_000 * delay_s
