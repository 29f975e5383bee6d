"""What the host of replicated state asks of the state it hosts.

A kind of state (groups, transactions, and others to come) says in which topic it lives, how its log is written and read, and makes cores that
decide and apply. The host knows nothing else about it. What cores are asked and answer is in `base/state_machine.py`.

    keyed    a later record of a key replaces the earlier, so that compaction keeps the log short (`keyed.py`)

A log whose events build on each other instead has snapshots among them, which its core decides as events like any other, and is read
from the last of them. That is a form of its own, which the host needs no change for.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.base.ports import Pool
from ropewalk.base.state_machine import Step
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.replay import Passage
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.settings.applied import BrokerSettings

C_contra = TypeVar("C_contra", contravariant=True)
E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)


class Core(Protocol[C_contra, E, A_co]):
    """The state of one shard. No clock, no log: it is told the time and given back its own events."""

    def apply(self, event: E, now_ms: int) -> None:
        """Never fails, and looks at nothing but the state and the event."""

    def on_loaded(self, now_ms: int) -> None:
        """All events of the log have been applied; commands follow."""

    def decide(self, token: int, command: C_contra, now_ms: int) -> Step[E, A_co | RopewalkError]: ...

    def tick(self, now_ms: int) -> Step[E, A_co | RopewalkError]:
        """Do what is due."""

    def deadline_ms(self) -> float | None:
        """When `tick` is due next; None: not before another command."""

    def forget(self, token: int) -> None:
        """Nobody waits for this reply any more."""


@runtime_checkable
class TransactionalCore(Protocol[E_contra]):
    """Of a kind whose events may be part of somebody's transaction. Other cores are never told of any."""

    def apply_pending(self, producer_id: int, event: E_contra, now_ms: int) -> None:
        """As `apply`, but it counts only if the producer's transaction is committed."""

    def apply_end(self, producer_id: int, committed: bool, now_ms: int) -> None:
        """The producer's transaction has ended, if it had one here; what it brought counts from now on, or never will."""


class LogForm(Protocol[E]):
    """How events become records of a shard's log, and come back from it."""

    def batches(
        self, events: Sequence[E], *, now_ms: int, enrolment: Enrolment | None = None
    ) -> Iterator[Prepared]:
        """As few as the size allows."""

    def replay(self, partition: Partition, *, end_offset: Offset, pool: Pool) -> AsyncIterator[Passage[E]]:
        """What counts of what lies below `end_offset`, to be applied in this order, a turn of the loop's worth at a time.

        Raises `StorageFailed` where the log cannot be read and `InvalidRecord` where an event cannot.
        """


class Kind(Protocol[C_contra, E, A_co]):
    @property
    def keys_called(self) -> str:
        """What a key of this kind is: "group", for one."""

    @property
    def topic(self) -> str:
        """Where its events are: a shard for every partition, and keys spread over them by their hash."""

    @property
    def log(self) -> LogForm[E]: ...

    def new_topic(self, settings: BrokerSettings) -> CreateTopic:
        """The topic as it is made on first use, with as many replicas as are wanted, whether or not there are nodes for them."""

    def new_core(self) -> Core[C_contra, E, A_co]: ...

    def only_writes(self, command: C_contra) -> bool:
        """Whether its decision is nothing but events, so that it can be refused unasked where nothing can be written."""
