"""What clients asked, what they were told, and what was done to the disk: the evidence a checker judges.

Events stand in the order in which they happened. A call is two facts, its beginning and its answer; where
only the answer matters, it carries in `began` how long the history was when the call was made, so that what
was known before the question can be told from what came while it was under way.

Times are those of the clients' clocks, which nobody disturbs.

Records are known by a number that is unique in a run, the `value`; the workload writes it into the record
and reads it back, checking every byte. `CORRUPT` stands for content that nobody wrote.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

CORRUPT: Final = -1


class Promise(Struct, frozen=True):
    """What the settings of a topic promise about its records."""

    is_compacted: bool = False
    delete_retention_ms: int = 0
    """How long a compacted topic keeps a tombstone, at the least."""

    retention_ms: int | None = None
    """How long records stay, at the least; None for ever."""

    survives_power_cuts: bool = True
    """False for `flush=os`: a power cut, or a disk that fails, may take any end of the log."""

    has_copies: bool = False
    """Several nodes keep it, and each compacts its copy by itself: what one of them has removed another may still have."""


class Created(Struct, frozen=True):
    """A topic was made. Of topics that were not, the promise is the default one."""

    topic: str
    promise: Promise


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
    timestamp_ms: int = 0
    """The time the records carry."""
    keys: tuple[str, ...] = ()
    """One for each value, on a compacted topic."""
    tombstones: frozenset[int] = frozenset()
    """Those of the values that delete their key."""


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
    covered: tuple[tuple[int, int], ...]
    """The ranges of offsets that the batches take up; on a compacted topic that is more than the records."""
    at_ms: int = 0


class Refused(Struct, frozen=True):
    """A consumer was told that `offset` cannot be read: because of the storage, or as out of range."""

    began: int
    consumer: str
    partition: TopicPartition
    offset: int
    is_storage: bool
    at_ms: int = 0


class BoundsSeen(Struct, frozen=True):
    """Somebody was told where the partition starts and ends; None where only the other was asked for."""

    began: int
    partition: TopicPartition
    start_offset: int | None
    end_offset: int | None
    at_ms: int = 0


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


class ClockJumped(Struct, frozen=True):
    """The node's clock was put forward or back; from here on it may disagree with the clients'."""


class ClocksDrift(Struct, frozen=True):
    """From `since_ms` on the clocks of nodes may run ahead of the clients', by this part of the time that passes."""

    since_ms: int
    fraction: float


class PowerFailed(Struct, frozen=True):
    """Whatever was not on the platter may be gone."""


class WriteBackFailed(Struct, frozen=True):
    """The disk did not take what the page cache had, and a process begins that believes the disk: as after a power cut."""


class LossAdmitted(Struct, frozen=True):
    """The cluster itself says that an election may have lost records of this partition: it is judged anew from here on."""

    partition: TopicPartition


class SurvivedFailedSync(Struct, frozen=True):
    """A sync failed and the node went on."""

    node: str


class StartFailed(Struct, frozen=True):
    """The node did not start, on a disk that had room and did not fail."""

    node: str
    reason: str


class EndedItself(Struct, frozen=True):
    """Work that must not end did, on a disk that did not fail, and the node with it."""

    node: str
    reason: str


class Forgotten(Struct, frozen=True):
    """The node no longer knew what it had acknowledged: a topic, or an idempotent producer's last sequence."""

    partition: TopicPartition
    what: str


class Returned(Struct, frozen=True):
    """The node still knew, or knew again, what it had said was deleted: a whole topic."""

    partition: TopicPartition
    what: str


class FinalRead(Struct, frozen=True):
    """After everything was healed: the whole partition as it is, with the offsets that were refused."""

    partition: TopicPartition
    start_offset: int
    end_offset: int
    records: tuple[tuple[int, int], ...]
    refused_offsets: tuple[int, ...]
    covered: tuple[tuple[int, int], ...]
    """The ranges of offsets that the batches took up."""
    at_ms: int = 0


Event = (
    Created
    | Sent
    | Acknowledged
    | Failed
    | Fetched
    | Refused
    | BoundsSeen
    | DeletionAsked
    | Deleted
    | Rotted
    | ClockJumped
    | ClocksDrift
    | PowerFailed
    | WriteBackFailed
    | LossAdmitted
    | SurvivedFailedSync
    | StartFailed
    | EndedItself
    | Forgotten
    | Returned
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
