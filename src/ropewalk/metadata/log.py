"""The port to the metadata log: an ordered list of records that every node agrees on.

It is narrow on purpose, so that a file and a consensus service can both stand behind it. A writer says what it
believes the log to be; the log takes the records only if that is still true. An append is all or nothing.

What a reader could get wrong
    `Unknown` is neither success nor failure: read the tail before deciding again.
    An error raised by `append` that is a `RopewalkError` is definite: nothing was written.
    Any other error means the log can no longer be trusted to be durable: the node must stop.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

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


class MetadataLog(Protocol):
    @property
    def epoch(self) -> int:
        """The epoch this process appends in. A controller that takes over begins a larger one."""

    @property
    def end_offset(self) -> int:
        """The end as far as this process has heard; another may have appended since."""

    @property
    def snapshot_due(self) -> bool:
        """Whether so much was appended since the last snapshot that another is worth its cost."""

    async def append(
        self, records: Sequence[MetadataRecord], *, expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        """Add the records at `expected_end_offset`, all of them or none. One append at a time."""

    async def snapshot(self) -> Snapshot:
        """The newest one, or an empty one at offset 0. A reader starts here."""

    async def tail(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        """Every committed record from `start_offset` on; empty at the end.

        None if the log no longer reaches back that far: start again from `snapshot`.
        """

    async def write_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` and drop the records it stands for. They must all be committed."""
