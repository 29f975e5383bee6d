"""What the host of replicated state asks of the state it hosts.

A kind of state (groups, and others to come) is a core that decides and applies, and a codec for its events. The
host knows nothing else about it.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from ropewalk.base.errors import RopewalkError

C_contra = TypeVar("C_contra", contravariant=True)
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)


class Reply(Protocol[A_co]):
    """An answer, or a refusal, for whoever asked under `token`, perhaps long ago."""

    @property
    def token(self) -> int: ...

    @property
    def answer(self) -> A_co | RopewalkError: ...


class Step(Protocol[E_co, A_co]):
    """What a core decided: facts that are to become durable, and replies that wait until they are."""

    @property
    def events(self) -> Sequence[E_co]: ...

    @property
    def replies(self) -> Sequence[Reply[A_co]]: ...


class Core(Protocol[C_contra, E, A_co]):
    """The state of one shard. No clock, no log: it is told the time and given back its own events."""

    def apply(self, event: E, now_ms: int) -> None:
        """Never fails, and looks at nothing but the state and the event."""

    def on_loaded(self, now_ms: int) -> None:
        """All events of the log have been applied; commands follow."""

    def decide(self, token: int, command: C_contra, now_ms: int) -> Step[E, A_co]: ...

    def tick(self, now_ms: int) -> Step[E, A_co]:
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


class Kind(Protocol[C_contra, E, A_co]):
    def new_core(self) -> Core[C_contra, E, A_co]: ...

    def only_writes(self, command: C_contra) -> bool:
        """Whether its decision is nothing but events, so that it can be refused unasked where nothing can be written."""

    def encode(self, event: E) -> tuple[bytes, bytes | None]:
        """Key and value of the record; a later record of the same key replaces it."""

    def decode(self, key: bytes, value: bytes | None) -> E | None:
        """None for a record that is not an event of this kind; raises `InvalidRecord` for one that cannot be read."""
