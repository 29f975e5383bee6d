"""A metadata log in memory that several controllers share, each by a handle of its own."""

import asyncio
from collections.abc import Sequence

from ropewalk.base.errors import MetadataUnavailable
from ropewalk.base.ids import NodeId
from ropewalk.metadata.log import AppendOutcome, Committed, Holder, Raced, Snapshot, Unknown
from ropewalk.metadata.records import MetadataRecord
from ropewalk.runtime.bell import Bell


class SharedLog:
    """What all agree on."""

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []
        self.holder: Holder | None = None
        self.is_reachable = True
        self.bell = Bell()

    def handle(self) -> "SharedLogHandle":
        return SharedLogHandle(self)

    def lose_the_holder(self) -> None:
        """As when a lease runs out."""
        assert self.holder is not None
        self.holder = Holder(self.holder.node_id, self.holder.epoch, is_alive=False)
        self.bell.ring()


class SharedLogHandle:
    snapshot_due = False
    parted: str | None = None

    def __init__(self, shared: SharedLog) -> None:
        self._shared = shared
        self.epoch = 0
        self.outcomes: list[str] = []
        """What becomes of the next appends: `unknown`, or `unknown but written`."""

    @property
    def holder(self) -> Holder | None:
        return self._shared.holder

    @property
    def trouble(self) -> str | None:
        return None if self._shared.is_reachable else "nobody answers"

    @property
    def unheard(self) -> str | None:
        return self.trouble

    @property
    def end_offset(self) -> int:
        return len(self._shared.records)

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def take_over(self, node_id: NodeId, *, expected_epoch: int) -> int | None:
        await self._ask()
        if expected_epoch != (self.holder.epoch if self.holder is not None else 0):
            return None
        self.epoch = expected_epoch + 1
        self._shared.holder = Holder(node_id, self.epoch)
        self._shared.bell.ring()
        return self.epoch

    async def append(
        self, records: Sequence[MetadataRecord], *, expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        await self._ask()
        newest = self.holder.epoch if self.holder is not None else 0
        if (expected_epoch, expected_end_offset) != (newest, self.end_offset):
            return Raced(newest, self.end_offset)
        outcome = self.outcomes.pop(0) if self.outcomes else "committed"
        if outcome != "unknown":
            self._shared.records += records
            self._shared.bell.ring()
        return Committed(self.end_offset) if outcome == "committed" else Unknown("no answer")

    async def snapshot(self) -> Snapshot:
        return Snapshot(0, 0, ())

    async def tail(self, start_offset: int) -> tuple[MetadataRecord, ...]:
        await self._ask()
        return self.heard(start_offset)

    def heard(self, start_offset: int) -> tuple[MetadataRecord, ...]:
        return tuple(self._shared.records[start_offset:])

    async def news(self, *, end_offset: int, holder_epoch: int, timeout_ms: float) -> None:
        newest = self.holder.epoch if self.holder is not None else 0
        if end_offset >= self.end_offset and holder_epoch == newest:
            await self._shared.bell.wait(timeout_ms)

    async def write_snapshot(self, snapshot: Snapshot) -> None:
        raise AssertionError("none is due")

    def close(self) -> None:
        pass

    async def _ask(self) -> None:
        await asyncio.sleep(0.001)
        if not self._shared.is_reachable:
            raise MetadataUnavailable("nobody answers")
