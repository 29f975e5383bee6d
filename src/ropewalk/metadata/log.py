"""The port to the metadata log: an ordered list of records that every node agrees on.

It is narrow on purpose, so that a file and a consensus service can both stand behind it. A writer says what it
believes the log to be; the log takes the records only if that is still true. An append is all or nothing.

Who may append is the *holder*: the process that took over last. Taking over is a compare-and-set on the epoch, and every
append is compared with it again, so that a holder that was paused while another took over can change nothing. The first
record of a holder is `ControllerChanged`.

What a reader could get wrong
    `Unknown` is neither success nor failure: read the tail before deciding again.
    An error raised by `append` that is a `RopewalkError` is definite: nothing was written.
    Any other error means the log can no longer be trusted to be durable: the node must stop.
    `Raced` in another epoch than one's own is for good: step down, and take over again before appending.
    One's own records may be heard of before `append` returns: apply what comes by its offset.
    `end_offset`, `holder` and `heard` are what this process has been told so far; only `tail` asks.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.metadata.records import MetadataRecord


class Committed(Struct, frozen=True):
    """The records are in the log for good, and this is where it ends."""

    end_offset: int


class Raced(Struct, frozen=True):
    """Nothing was written: the log has moved on, or another controller has taken over."""

    epoch: int
    end_offset: int


class Unknown(Struct, frozen=True):
    """The records may or may not be in the log."""

    reason: str


AppendOutcome: TypeAlias = Committed | Raced | Unknown


class Snapshot(Struct, frozen=True):
    """The facts that all records below `end_offset` add up to, as the fewest records that state them."""

    epoch: int
    end_offset: int
    facts: tuple[MetadataRecord, ...]


class Holder(Struct, frozen=True):
    """Who took over last, and in which epoch."""

    node_id: NodeId
    epoch: int
    is_alive: bool = True
    """Whether it has been heard of lately. A guess that may be wrong either way, and never a proof: whoever takes
    over because of it is safe by the epoch alone."""


class MetadataLog(Protocol):
    @property
    def epoch(self) -> int:
        """The epoch this process appends in; 0 before it has one. Another's may be larger by now."""

    @property
    def holder(self) -> Holder | None:
        """Who may append, as far as this process has heard; None if nobody ever took over."""

    @property
    def trouble(self) -> str | None:
        """Why the log cannot be reached or written at present, in a sentence for people; None while it can."""

    @property
    def unheard(self) -> str | None:
        """Why nothing that others append is heard at present; None while it would be. A log that is full is heard."""

    @property
    def parted(self) -> str | None:
        """Why this process can never go on with the log, in a sentence for people: it was put back to an earlier state."""

    @property
    def end_offset(self) -> int:
        """The end as far as this process has heard; another may have appended since."""

    @property
    def snapshot_due(self) -> bool:
        """Whether so much was appended since the last snapshot that another is worth its cost."""

    async def run(self) -> None:
        """Keep hearing what others append, until cancelled. Without it only `tail` and one's own appends are heard of."""

    async def take_over(self, node_id: NodeId, *, expected_epoch: int) -> int | None:
        """Begin a larger epoch and be the holder; answers the epoch. Read `tail` to its end before deciding anything.

        `expected_epoch` is the holder's that is to be replaced, 0 for none. None: another was faster. Raises
        `MetadataUnavailable` if nobody knows; if it did happen, `holder` will say so.
        """

    async def append(
        self, records: Sequence[MetadataRecord], *, expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        """Add the records at `expected_end_offset`, all of them or none. One append at a time."""

    async def snapshot(self) -> Snapshot:
        """The newest one, or an empty one at offset 0. A reader starts here."""

    async def tail(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        """Every committed record from `start_offset` on; empty at the end. Nothing that was acknowledged to anybody
        before the call is missing. Raises `MetadataUnavailable` if it cannot be read, `HistoryParted` if it is another log.

        None if the log no longer reaches back that far: start again from `snapshot`.
        """

    def heard(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        """As `tail`, of what this process has heard so far, at once and without asking anybody."""

    async def news(self, *, end_offset: int, holder_epoch: int, timeout_ms: float) -> None:
        """Return when a record at `end_offset` or a holder of another epoch has been heard of, or when time is up.

        It may also return early: look what is there.
        """

    async def write_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` and drop the records it stands for. They must all be committed.

        Raises a `RopewalkError` if it could not be kept; the log is then as long as before, and as good.
        """

    def close(self) -> None:
        """Let go of files and connections; call after `run` has been cancelled."""
