"""What clients asked, what they were told, and what was done to the disk: the evidence a checker judges.

Events stand in the order in which they happened. A call is two facts, its beginning and its answer; where
only the answer matters, it carries in `began` how long the history was when the call was made, so that what
was known before the question can be told from what came while it was under way.

Records are known by a number that is unique in a run, the `value`; the workload writes it into the record
and reads it back, checking every byte. `CORRUPT` stands for content that nobody wrote.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

CORRUPT: Final = -1


class Sent(Struct, frozen=True):
    """A producer sent a batch. Sending the same values again is another `Sent`."""

    send: int
    producer: str
    partition: TopicPartition
    values: tuple[int, ...]
    acks: int
    is_idempotent: bool
    connection: int
    """Counts the producer's connections: within one, requests take effect in order."""


class Acknowledged(Struct, frozen=True):
    """The node said that the batch stands at `base_offset`, and durably so; never for acks=0."""

    send: int
    base_offset: int


class Failed(Struct, frozen=True):
    """No acknowledgement. `is_definite`: the node said that it did nothing; otherwise nobody knows."""

    send: int
    is_definite: bool
    reason: str


class Fetched(Struct, frozen=True):
    """A consumer was given whole batches: the (offset, value) of each record in them."""

    began: int
    consumer: str
    partition: TopicPartition
    offset: int
    records: tuple[tuple[int, int], ...]


class Refused(Struct, frozen=True):
    """A consumer was told that `offset` cannot be read: because of the storage, or as out of range."""

    began: int
    consumer: str
    partition: TopicPartition
    offset: int
    is_storage: bool


class BoundsSeen(Struct, frozen=True):
    """Somebody was told where the partition starts and ends; None where only the other was asked for."""

    began: int
    partition: TopicPartition
    start_offset: int | None
    end_offset: int | None


class DeletionAsked(Struct, frozen=True):
    """Somebody asked that everything before an offset be deleted; from here on it may be gone."""

    partition: TopicPartition
    before_offset: int


class Deleted(Struct, frozen=True):
    """The node said that everything before an offset is deleted, for good."""

    partition: TopicPartition
    before_offset: int


class Rotted(Struct, frozen=True):
    """Durable bytes of these offsets were changed on the platter: they may be refused, never served wrong."""

    partition: TopicPartition
    start_offset: int
    end_offset: int


class SurvivedFailedSync(Struct, frozen=True):
    """A sync failed and the node went on."""

    node: str


class StartFailed(Struct, frozen=True):
    """The node did not start, on a disk that had room and did not fail."""

    node: str
    reason: str


class Forgotten(Struct, frozen=True):
    """The node no longer knew what it had acknowledged: a topic, or an idempotent producer's last sequence."""

    partition: TopicPartition
    what: str


class FinalRead(Struct, frozen=True):
    """After everything was healed: the whole partition as it is, with the offsets that were refused."""

    partition: TopicPartition
    start_offset: int
    end_offset: int
    records: tuple[tuple[int, int], ...]
    refused_offsets: tuple[int, ...]


Event = (
    Sent
    | Acknowledged
    | Failed
    | Fetched
    | Refused
    | BoundsSeen
    | DeletionAsked
    | Deleted
    | Rotted
    | SurvivedFailedSync
    | StartFailed
    | Forgotten
    | FinalRead
)


class Journal:
    """The history while it is being made."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._send_count = 0

    @property
    def now(self) -> int:
        """For `began`: how much is known at this moment."""
        return len(self.events)

    def note(self, event: Event) -> None:
        self.events.append(event)

    def next_send(self) -> int:
        self._send_count += 1
        return self._send_count
