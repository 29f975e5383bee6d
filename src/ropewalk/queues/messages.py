"""What a door and the leader of a queue's partition say to each other: messages to be sent, messages given out, and handles.

A message is a record: its value is the body, its key the message group, its headers the rest. Doors pack and unpack them; leaders decide
who is given which.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId, TopicId
from ropewalk.queues.commands import Receive
from ropewalk.queues.figures import QueueFigures
from ropewalk.records.packing import Entry, Headers
from ropewalk.records.record import Record


class Outgoing(Struct, frozen=True, kw_only=True):
    """A message that is to be sent. Its record is made of `group`, `body`, `sent_at_ms` and `headers`, which the door has made complete:
    the headers carry the delay and the deduplication id, too."""

    body: bytes
    headers: Headers = ()
    sent_at_ms: int
    group: str = ""
    """Empty: none. The record's key."""
    deduplication_id: str = ""
    """FIFO."""
    delay_ms: int = 0


class Sent(Struct, frozen=True, gc=False):
    """Where a message lies, or the first one with its deduplication id does. It is committed."""

    partition: int
    offset: int
    is_duplicate: bool = False


class Receipt(Struct, frozen=True, gc=False):
    """What a receipt handle says of a message that was given out."""

    partition: int
    offset: int
    attempt: int


class Delivered(Struct, frozen=True):
    """A message that is given to a receiver."""

    receipt: Receipt
    record: Record
    receive_count: int
    first_received_at_ms: int


class Seen(Struct, frozen=True):
    """A message that somebody looks at without taking it."""

    partition: int
    record: Record
    state: str
    """visible, in flight, delayed, resting, dying, moving or settled; unread, where nobody has come so far in a FIFO queue, so that it is not known what
    holds it up."""
    receive_count: int = 0
    first_received_at_ms: int = 0
    attempt: int = 0
    until_ms: int = 0
    """Wall time at which it becomes visible; 0: it is."""
    behind_offset: int = -1
    """FIFO: of the message of its group that has to be done with first; -1: nothing of the group holds it up."""


class Totals(Struct, frozen=True):
    """How a queue stands, over all of its partitions."""

    visible_count: int
    in_flight_count: int
    delayed_count: int
    oldest_sent_at_ms: int | None
    partitions: tuple[QueueFigures, ...] = ()


class Credit(Struct, frozen=True):
    """A receive that a front end leaves with the leader of a partition."""

    token: int
    """Of the front end's session: what comes of it is delivered under it."""
    queue_id: OwnerId
    partition: int
    receive: Receive


class Delivery(Struct, frozen=True):
    """What has come of a credit: messages, perhaps none, or a refusal."""

    token: int
    queue_id: OwnerId
    outcome: tuple[Delivered, ...] | RopewalkError


class Shipment(Struct, frozen=True, kw_only=True):
    """Messages of one move, or some of them, under the identity of the producer that brings them."""

    topic_id: TopicId
    partition: int
    producer_id: int
    producer_epoch: int
    sequence: int
    """Of the first of the move."""
    message_count: int
    """Of the move."""
    first_index: int = 0
    """Which of the move the first of `entries` is."""
    entries: Sequence[Entry] = ()
    """None, to hear how many have arrived."""


class Arrival(StrEnum):
    ARRIVED = "arrived"
    """What was brought is there and committed."""
    REFUSED = "refused"
    """Nothing more of the move is there than is told, and nothing will be."""
    PRODUCER_UNKNOWN = "producer unknown"
    """The target has lost what the producer wrote before: nothing of the move is there."""


class Arrived(Struct, frozen=True):
    arrival: Arrival
    message_count: int
    """How many of the move are there: the first ones."""
