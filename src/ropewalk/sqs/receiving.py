"""From records that were given out to messages as receivers see them, with the attributes that they asked for."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Final

from msgspec import field

from ropewalk.metadata.queues import Queue
from ropewalk.queues.messages import Receipt
from ropewalk.records.packing import Headers
from ropewalk.records.record import Record
from ropewalk.sqs import checksums
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import INVALID_ATTRIBUTE_NAME, SqsRefusal
from ropewalk.sqs.message_ids import id_text, message_id
from ropewalk.sqs.messages import TRACE_HEADER, AttributeValue, checksummed
from ropewalk.sqs.packing import ENCODING, Said, attributes_of, content_of_record, group_of, said_by
from ropewalk.sqs.sending import sequence_number
from ropewalk.sqs.shapes import Flat, Output

SYSTEM_ATTRIBUTES: Final = frozenset(
    {
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "SequenceNumber",
        "MessageDeduplicationId",
        "MessageGroupId",
        TRACE_HEADER,
        "DeadLetterQueueSourceArn",
    }
)
_ALL: Final = "All"
_EVERYTHING: Final = frozenset({"All", ".*"})
_PREFIX: Final = ".*"


class Message(Output, frozen=True, kw_only=True):
    message_id: str
    receipt_handle: str
    body_md5: str = field(name="MD5OfBody")
    body: str
    attributes: Annotated[Mapping[str, str] | None, Flat("Attribute")] = None
    attributes_md5: str | None = field(name="MD5OfMessageAttributes", default=None)
    message_attributes: Annotated[Mapping[str, AttributeValue] | None, Flat("MessageAttribute")] = None


def asked_system_attributes(*lists: Iterable[str] | None) -> frozenset[str]:
    """Raises `SqsRefusal` for names that there are not."""
    asked = {name.strip() for names in lists if names for name in names}
    if not asked:
        return frozenset()
    for name in sorted(asked - SYSTEM_ATTRIBUTES - {_ALL}):
        raise SqsRefusal(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")
    return SYSTEM_ATTRIBUTES if _ALL in asked else frozenset(asked)


def wanted_attributes(names: Iterable[str] | None) -> Callable[[str], bool] | None:
    """Which of a message's own attributes are asked for: by name, all, or all that begin so. None: none."""
    asked = {name.strip() for name in names or ()}
    if not asked:
        return None
    if asked & _EVERYTHING:
        return lambda _: True
    prefixes = tuple(name.removesuffix(_PREFIX) for name in asked if name.endswith(_PREFIX))
    return lambda name: name in asked or (bool(prefixes) and name.startswith(prefixes))


class Rendering:
    """Makes messages of records, for one request."""

    def __init__(
        self,
        desk: Desk,
        caller: Caller,
        queue: Queue,
        system_attributes: frozenset[str],
        wants: Callable[[str], bool] | None,
    ) -> None:
        self._desk = desk
        self._caller = caller
        self._queue = queue
        self._system_attributes = system_attributes
        self._wants = wants
        self._said: dict[Headers, Said] = {}

    def message(
        self,
        partition: int,
        record: Record,
        *,
        receipt: Receipt | None,
        receive_count: int,
        first_received_at_ms: int,
        handle: str = "",
    ) -> Message:
        """`handle` takes the place of a receipt where there is none."""
        queue, headers = self._queue, record.headers
        said = self._said.get(headers)
        if said is None:
            said = self._said[headers] = said_by(headers)
        content = content_of_record(record)
        attributes = None
        if said.attributes or content.is_encoded:
            attributes = self._selected(attributes_of(content, said))
        asked = self._system_attributes
        return Message(
            message_id=id_text(said.message_id)
            if said.message_id
            else message_id(queue.topic_id, partition, record.offset),
            receipt_handle=handle if receipt is None else self._desk.receipts.handle(queue.queue_id, receipt),
            body_md5=checksums.of_bytes(content.value),
            body=content.body,
            attributes=self._system(said, record, receive_count, first_received_at_ms) if asked else None,
            attributes_md5=checksums.of_attributes(checksummed(attributes)) if attributes else None,
            message_attributes=attributes,
        )

    def _selected(self, attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue] | None:
        wants = self._wants
        selected = {
            name: value
            for name, value in attributes.items()
            if name == ENCODING or (wants is not None and wants(name))
        }
        return selected or None

    def _system(
        self, said: Said, record: Record, receive_count: int, first_received_at_ms: int
    ) -> dict[str, str]:
        desk, caller = self._desk, self._caller
        values = {
            "SenderId": said.sender or desk.account,
            "SentTimestamp": str(record.timestamp),
            "ApproximateReceiveCount": str(receive_count + said.received_before),
            "ApproximateFirstReceiveTimestamp": str(first_received_at_ms) if first_received_at_ms else "",
            "SequenceNumber": sequence_number(self._queue, record.offset) or "",
            "MessageDeduplicationId": said.deduplication_id,
            "MessageGroupId": group_of(record),
            TRACE_HEADER: said.trace,
            "DeadLetterQueueSourceArn": desk.arn(caller, said.source) if said.source else "",
        }
        return {name: value for name, value in values.items() if value and name in self._system_attributes}
