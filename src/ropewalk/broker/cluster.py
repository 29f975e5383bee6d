"""This node's copy of the cluster's facts, and the one way to change them.

A change is a decision on the newest image: `propose` is given a function that looks at the image and answers
records. They are appended to the metadata log, applied, and followed by the node (partitions are opened or
closed) before the proposer hears of it. One proposal is decided and committed at a time, so a decision is never made
on an image that is about to change. The node follows behind, and all that was committed while it was busy it follows
at once: a burst of new topics is opened with few trips to the disk.

What a reader could get wrong
    The image may be ahead of the node: a topic that it names may have partitions that are not open yet, or no more.
    A decision may be made twice, when the log has moved on in between; it must not do anything but decide.
    An error raised by the decision, or by the log as definite, changes nothing. `TimedOut` means that nobody knows.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import structlog
from msgspec import Struct

from ropewalk.base.errors import NodeStopping, RopewalkError, StorageFailed, Throttled, TimedOut
from ropewalk.base.limits import METADATA_CHANGES_WAITING_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Committed, MetadataLog, Raced, Snapshot
from ropewalk.metadata.records import MetadataRecord

_log = structlog.get_logger()

Decide: TypeAlias = Callable[[Image], Sequence[MetadataRecord]]
Follow: TypeAlias = Callable[[Sequence[MetadataRecord]], Awaitable[None]]


class _Proposal(Struct):
    decide: Decide
    until_followed: bool
    done: asyncio.Future[None]


class Cluster:
    def __init__(self, log: MetadataLog) -> None:
        self.image = Image()
        self._log = log
        self._follow: Follow = _follow_nothing
        self._proposals: deque[_Proposal] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._unfollowed: list[MetadataRecord] = []
        self._followers: list[asyncio.Future[None]] = []
        """Those who wait until the node has followed what was applied before they asked."""
        self._following: list[asyncio.Future[None]] = []
        """Those among them whose turn it is."""
        self._wake_to_follow: asyncio.Future[None] | None = None
        self._stopping = False

    async def load(self) -> None:
        """Read what the log holds; call before anything else."""
        snapshot = await self._log.snapshot()
        for fact in snapshot.facts:
            self.image.apply(fact)
        self.image.end_offset = snapshot.end_offset
        await self._catch_up()
        self._unfollowed.clear()

    def follow_with(self, follow: Follow) -> None:
        """`follow` is called with the records of later changes, in order, before their proposers are answered.

        It is also called without any where a proposal changed nothing.
        """
        self._follow = follow

    async def propose(self, decide: Decide) -> None:
        """Decide, commit, apply and follow; raises what `decide` raises."""
        await self._ask(decide, until_followed=True)

    async def commit(self, decide: Decide) -> None:
        """As `propose`, but the node may not have followed yet: `followed` says when it has."""
        await self._ask(decide, until_followed=False)

    async def followed(self) -> None:
        """Return when the node has followed every change that is in the image now."""
        if self._stopping:
            raise NodeStopping("the node is shutting down")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begin_to_follow(done)
        await done

    async def _ask(self, decide: Decide, *, until_followed: bool) -> None:
        if self._stopping:
            raise NodeStopping("the node is shutting down")
        if len(self._proposals) >= METADATA_CHANGES_WAITING_MAX:
            raise Throttled(f"{len(self._proposals)} changes of the cluster are waiting; try again later")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals.append(_Proposal(decide, until_followed, done))
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
                self._begin_to_follow(None)  # the log may hold more than was known
            else:
                self._begin_to_follow(proposal.done if proposal.until_followed else None)
                if not proposal.until_followed and not proposal.done.done():
                    proposal.done.set_result(None)

    async def run_following(self) -> None:
        """Beside `run`: the node's way to keep up with the image."""
        while True:
            if not self._unfollowed and not self._followers:
                self._wake_to_follow = asyncio.get_running_loop().create_future()
                await self._wake_to_follow
            records, self._unfollowed = self._unfollowed, []
            self._following, self._followers = self._followers, []
            try:
                await self._follow(records)
            except RopewalkError as error:
                _log.error("the node cannot follow a change of the cluster", reason=str(error))
                self._tell(self._following, error)
            else:
                self._tell(self._following, None)

    def stop(self) -> None:
        """Send away whoever still waits; call after `run` and `run_following` have been cancelled."""
        self._stopping = True
        waiting = [proposal.done for proposal in self._proposals]
        self._tell([*waiting, *self._following, *self._followers], NodeStopping("the node is shutting down"))
        self._proposals.clear()
        self._followers.clear()

    def _begin_to_follow(self, done: asyncio.Future[None] | None) -> None:
        if done is not None:
            self._followers.append(done)
        if self._wake_to_follow is not None and not self._wake_to_follow.done():
            self._wake_to_follow.set_result(None)

    def _tell(self, waiting: Sequence[asyncio.Future[None]], error: RopewalkError | None) -> None:
        for done in waiting:
            if done.done():  # whoever asked may have gone
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    async def _carry_out(self, decide: Decide) -> None:
        while True:
            records = decide(self.image)
            if not records:
                return
            outcome = await self._log.append(
                records,
                expected_epoch=self._log.epoch,
                expected_end_offset=self.image.end_offset,
            )
            if isinstance(outcome, Committed):
                self._apply(records)
                await self._snapshot_if_due()
                return
            await self._catch_up()
            if not isinstance(outcome, Raced):
                raise TimedOut(f"whether the change was made is not known: {outcome.reason}")

    async def _catch_up(self) -> None:
        records = await self._log.tail(self.image.end_offset)
        assert records is not None, "the log was trimmed under its only writer"
        self._apply(records)

    def _apply(self, records: Sequence[MetadataRecord]) -> None:
        for record in records:
            self.image.apply(record)
        self._unfollowed += records

    async def _snapshot_if_due(self) -> None:
        if self._log.snapshot_due:
            facts = tuple(self.image.facts())
            with suppress(StorageFailed):  # no room: the log only grows longer, and the change is made
                await self._log.write_snapshot(Snapshot(self._log.epoch, self.image.end_offset, facts))


async def _follow_nothing(_records: Sequence[MetadataRecord]) -> None:
    pass
