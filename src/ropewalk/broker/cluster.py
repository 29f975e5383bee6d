"""This node's copy of the cluster's facts, and the one way to change them.

A change is a decision on the newest image: `propose` is given a function that looks at the image and answers
records. They are appended to the metadata log, applied, and followed by the node (partitions are opened or
closed) before the proposer hears of it. One proposal is under way at a time, so a decision is never made on
an image that is about to change.

What a reader could get wrong
    A decision may be made twice, when the log has moved on in between; it must not do anything but decide.
    An error raised by the decision, or by the log as definite, changes nothing. `TimedOut` means that nobody knows.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.errors import NodeStopping, RopewalkError, StorageFailed, Throttled, TimedOut
from ropewalk.base.limits import METADATA_CHANGES_WAITING_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Committed, MetadataLog, Raced, Snapshot
from ropewalk.metadata.records import MetadataRecord

Decide: TypeAlias = Callable[[Image], Sequence[MetadataRecord]]
Follow: TypeAlias = Callable[[Sequence[MetadataRecord]], Awaitable[None]]


class _Proposal(Struct):
    decide: Decide
    done: asyncio.Future[None]


class Cluster:
    def __init__(self, log: MetadataLog) -> None:
        self.image = Image()
        self._log = log
        self._follow: Follow = _follow_nothing
        self._proposals: deque[_Proposal] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._stopping = False

    async def load(self) -> None:
        """Read what the log holds; call before anything else."""
        snapshot = await self._log.snapshot()
        for fact in snapshot.facts:
            self.image.apply(fact)
        self.image.end_offset = snapshot.end_offset
        await self._catch_up()

    def follow_with(self, follow: Follow) -> None:
        """`follow` is called with the records of every later change, before its proposer is answered."""
        self._follow = follow

    async def propose(self, decide: Decide) -> None:
        """Decide, commit, apply and follow; raises what `decide` raises."""
        if self._stopping:
            raise NodeStopping("the node is shutting down")
        if len(self._proposals) >= METADATA_CHANGES_WAITING_MAX:
            raise Throttled(f"{len(self._proposals)} changes of the cluster are waiting; try again later")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals.append(_Proposal(decide, done))
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        await done

    async def run(self) -> None:
        while True:
            if not self._proposals:
                self._wake = asyncio.get_running_loop().create_future()
                await self._wake
            proposal = self._proposals.popleft()
            try:
                await self._carry_out(proposal.decide)
            except RopewalkError as error:
                if not proposal.done.done():  # whoever asked may have gone
                    proposal.done.set_exception(error)
            else:
                if not proposal.done.done():
                    proposal.done.set_result(None)

    def stop(self) -> None:
        """Send away whoever still waits; call after `run` has been cancelled."""
        self._stopping = True
        for proposal in self._proposals:
            if not proposal.done.done():
                proposal.done.set_exception(NodeStopping("the node is shutting down"))
        self._proposals.clear()

    async def _carry_out(self, decide: Decide) -> None:
        while True:
            records = decide(self.image)
            if not records:
                await self._follow(records)
                return
            outcome = await self._log.append(
                records,
                expected_epoch=self._log.epoch,
                expected_end_offset=self.image.end_offset,
            )
            if isinstance(outcome, Committed):
                await self._apply(records)
                await self._snapshot_if_due()
                return
            await self._catch_up()
            if not isinstance(outcome, Raced):
                raise TimedOut(f"whether the change was made is not known: {outcome.reason}")

    async def _catch_up(self) -> None:
        records = await self._log.tail(self.image.end_offset)
        assert records is not None, "the log was trimmed under its only writer"
        await self._apply(records)

    async def _apply(self, records: Sequence[MetadataRecord]) -> None:
        for record in records:
            self.image.apply(record)
        await self._follow(records)

    async def _snapshot_if_due(self) -> None:
        if self._log.snapshot_due:
            facts = tuple(self.image.facts())
            with suppress(StorageFailed):  # no room: the log only grows longer, and the change is made
                await self._log.write_snapshot(Snapshot(self._log.epoch, self.image.end_offset, facts))


async def _follow_nothing(_records: Sequence[MetadataRecord]) -> None:
    pass
