"""Changes of the cluster's facts, on the node that decides: one at a time, each on the newest image.

A change is a decision: a function that looks at the image and answers records. They are appended to the metadata log and
applied. The next is decided only then, so a decision is never made on an image that is about to change.

What a reader could get wrong
    A decision may be made twice, when the log has moved on in between; it must not do anything but decide.
    A decision about many partitions is made in turns. If the image has changed by the next one, it is made anew.
    An error raised by the decision, or by the log as definite, changes nothing. `TimedOut` means that nobody knows.
    What somebody asked for and what it comes to are one change: where the one is in the log, the other is (`controller/audit.py`).
    The log takes records only from the newest controller. A controller that has been replaced learns of it from the log, whatever
    it believed: those who still wait hear `NotController`, and nothing is taken on until `accept`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.errors import (
    CannotFollow,
    MetadataUnavailable,
    NodeStopping,
    NotController,
    RopewalkError,
    StorageFailed,
    Throttled,
    TimedOut,
)
from ropewalk.base.levels import AUDIT_LEVEL
from ropewalk.base.limits import AUDIT_GROUPS_MAX, ELECTIONS_PER_TURN, METADATA_CHANGES_WAITING_MAX
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.facts import Facts, tell
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.controller.audit import shortened, summary
from ropewalk.controller.elections import InTurns
from ropewalk.metadata.bounds import USUAL, MetadataBounds
from ropewalk.metadata.changes import appends_of
from ropewalk.metadata.image import Image
from ropewalk.metadata.levels import check_written
from ropewalk.metadata.log import Committed, MetadataLog, Raced, Snapshot, Unknown
from ropewalk.metadata.records import ChangeAbandoned, ChangeMade, LevelChanged, MetadataRecord
from ropewalk.runtime.bell import Bell
from ropewalk.runtime.steps import Pace

Decide: TypeAlias = Callable[[Image], Sequence[MetadataRecord] | InTurns]


class _Proposal(Struct):
    decide: Decide
    mandate: Mandate | None
    until_followed: bool
    done: asyncio.Future[None]


class Decisions:
    def __init__(self, log: MetadataLog, facts: Facts, clock: Clock, bounds: MetadataBounds = USUAL) -> None:
        self._clock = clock
        self._bounds = bounds
        self._log = log
        self._facts = facts
        self._proposals: deque[_Proposal] = deque()
        self._wake = Bell()
        self.refusal: RopewalkError | None = None
        """What proposers are told where this node does not decide at present."""

    async def load(self) -> None:
        """Read what the log holds; call before anything else."""
        self._facts.restart(await self._log.snapshot())
        await self.catch_up()
        self._facts.begin()

    async def ask(self, decide: Decide, mandate: Mandate | None, *, until_followed: bool) -> None:
        """Decide, commit and apply; with `until_followed` return when the node has followed too."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)
        if len(self._proposals) >= METADATA_CHANGES_WAITING_MAX:
            raise Throttled(f"{len(self._proposals)} changes of the cluster are waiting; try again later")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals.append(_Proposal(decide, mandate, until_followed, done))
        self._wake.ring()
        await done

    async def run(self) -> None:
        """Carry out what is asked for, whenever this node decides."""
        while True:
            while not self._proposals:  # what it was woken for may have been refused meanwhile
                await self._wake.wait()
            proposal = self._proposals.popleft()
            try:
                await self.carry_out(proposal.decide, proposal.mandate)
            except RopewalkError as error:
                tell([proposal.done], error)
                self._facts.follow_soon()  # the log may hold more than was known
                if isinstance(error, NotController):
                    self.refuse(error)
            else:
                if proposal.until_followed:
                    self._facts.follow_soon(proposal.done)
                else:
                    tell([proposal.done], None)

    def accept(self) -> None:
        """This node is the controller."""
        self.refusal = None

    def refuse(self, error: RopewalkError) -> None:
        """This node does not decide, or no more: send away the proposers who wait, and those who come."""
        self.refusal = error
        tell([proposal.done for proposal in self._proposals], error)
        self._proposals.clear()

    def stop(self) -> None:
        """Call after `run` has been cancelled."""
        self.refuse(NodeStopping("the node is shutting down"))

    async def carry_out(self, decide: Decide, mandate: Mandate | None = None) -> None:
        """For those who have the log for themselves: `run`, and a controller that begins."""
        epoch = self._log.epoch
        while True:
            if self._facts.image.is_amid_change:  # an append in the middle of it failed
                await self._commit((ChangeAbandoned(),), epoch)
                continue
            records = await self._decided(decide)
            if records is None:
                continue
            if not records:
                return
            if mandate is not None:
                records = self._audited(records, mandate)
            for part in appends_of(records, bytes_max=self._bounds.append_bytes_max):
                if not await self._commit(part, epoch):
                    break
            else:
                await self._snapshot_if_due()
                return

    async def _decided(self, decide: Decide) -> Sequence[MetadataRecord] | None:
        """None if the image has changed while others had their turns: what was decided so far is about another."""
        image = self._facts.image
        end_offset = image.end_offset
        decision = decide(image)
        if not isinstance(decision, Generator):
            return decision
        pace = Pace(ELECTIONS_PER_TURN)
        while image.end_offset == end_offset:
            try:
                next(decision)
            except StopIteration as end:
                records: Sequence[MetadataRecord] = end.value
                return records
            await pace.next()
        return None

    def _audited(self, records: Sequence[MetadataRecord], mandate: Mandate) -> Sequence[MetadataRecord]:
        """With who asked for them, at the end of the same change."""
        image, sender = self._facts.image, mandate.sender
        raised = max((record.level for record in records if isinstance(record, LevelChanged)), default=0)
        if max(image.level, raised) < AUDIT_LEVEL:
            return records
        details, more_count = summary(image, records)
        made = ChangeMade(
            image.audit.newest_number + 1,
            mandate.operation,
            shortened(sender.principal),
            self._clock.now_ms(),
            tuple(map(shortened, sender.groups[:AUDIT_GROUPS_MAX])),
            sender.method,
            None if sender.client_id is None else shortened(sender.client_id),
            sender.host,
            sender.listener,
            mandate.forwarded_by,
            details,
            more_count,
        )
        return [*records, made]

    async def _commit(self, records: Sequence[MetadataRecord], epoch: int) -> bool:
        """Append and apply; False if the log had moved on, and the image has now."""
        end_offset = self._facts.image.end_offset
        check_written(records, self._facts.image.level)
        outcome = await self._log.append(records, expected_epoch=epoch, expected_end_offset=end_offset)
        match outcome:
            case Committed():
                self._facts.apply(records, start_offset=end_offset)
                return True
            case Unknown(reason=reason):
                # The next append will find that the log has moved on, or is another.
                with suppress(MetadataUnavailable, CannotFollow):
                    await self.catch_up()
                raise TimedOut(f"whether the change was made is not known: {reason}")
            case Raced():
                try:
                    await self.catch_up()
                except CannotFollow as error:  # nothing was written, and this node will never write again
                    raise NotController(str(error)) from None
                if outcome.epoch != epoch:
                    raise NotController(f"another controller has taken over in epoch {outcome.epoch}")
                return False

    async def catch_up(self) -> None:
        """Apply what the log holds beyond the image."""
        while True:
            start_offset = self._facts.image.end_offset
            records = await self._log.tail(start_offset)
            if records is not None:
                self._facts.apply(records, start_offset=start_offset)
                return
            self._facts.restart(
                await self._log.snapshot()
            )  # another controller has trimmed the log meanwhile

    async def _snapshot_if_due(self) -> None:
        if self._log.snapshot_due:
            image = self._facts.image
            # No room, or out of reach: the log only grows longer, and the change is made.
            with suppress(StorageFailed, MetadataUnavailable):
                await self._log.write_snapshot(
                    Snapshot(self._log.epoch, image.end_offset, tuple(image.facts()))
                )
