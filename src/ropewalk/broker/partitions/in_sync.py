"""Asks the controller for other sets of replicas in sync, for all partitions that this node leads.

A partition is looked at while its set may have to change: after something happened to it, and for as long as somebody
is behind, missing or waiting. What is to be asked for goes in one request for all of them; one is under way at a time.

What a reader could get wrong
    An answer changes nothing by itself: the set counts when the image says so. What it tells is whether to ask again.
    Only a refusal by the controller that decides is one. Whatever else goes wrong leaves open whether the change was made.
    A node that no controller has answered for a whole session has been fenced by then, if there is a controller. What it leads
    it doubts as soon as somebody in sync stays behind, since without a controller it can never go on without them.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import structlog
from msgspec import Struct

from ropewalk.base import errors, metrics
from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    ALTERATION_MS_MAX,
    ALTERATIONS_TOGETHER_MAX,
    DOUBTED_BEHIND_MS,
    IN_SYNC_TICK_MS,
    ROLES_PER_TURN,
)
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.followers import Followers
from ropewalk.broker.partitions.partition import Partition
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.metadata.image import Image
from ropewalk.replication.leader import Outcome, Proposal
from ropewalk.replication.stragglers import Stragglers
from ropewalk.runtime.bell import Bell
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()

_REFUSALS: Final = (
    errors.ControllerUnavailable,
    errors.FencedEpoch,
    errors.IneligibleReplica,
    errors.InvalidRequest,
    errors.NotLeader,
    errors.StaleBrokerEpoch,
    errors.StalePartitionEpoch,
    errors.UnknownBroker,
    errors.UnknownEpoch,
    errors.UnknownPartition,
    errors.UnknownTopicId,
)
"""After these it is certain that nothing was changed, and that nothing will be."""


class Controller(Protocol):
    async def alter_partitions(
        self,
        node_id: NodeId,
        broker_epoch: int,
        alterations: Sequence[PartitionAlteration],
        *,
        timeout_ms: float,
    ) -> Sequence[AlteredPartition]:
        """One outcome for each. Raises where the request as a whole came to nothing, or to nobody knows what."""


class _Asked(Struct, frozen=True):
    partition: Partition
    followers: Followers
    proposal: Proposal


class InSyncSets:
    def __init__(
        self,
        image: Image,
        node_id: NodeId,
        clock: Clock,
        *,
        is_out_of_touch: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_out_of_touch`: whether no controller has answered for longer than it would wait for this node."""
        self._is_out_of_touch = is_out_of_touch
        self._image = image
        self._node_id = node_id
        self._clock = clock
        self._looked_at: dict[Partition, None] = {}
        self._stragglers = Stragglers()
        self._wake = Bell()
        self._complaints = Complaints()
        self._expanded_count = 0
        self._shrunk_count = 0

    def note(self, partition: Partition) -> None:
        """Look at the partition at the next tick, and for as long as anything about it may change by itself."""
        if not self._looked_at:
            self._hurry()
        self._looked_at[partition] = None

    def hurry(self, partition: Partition) -> None:
        """As `note`, and without waiting for the next tick: somebody may join."""
        self._looked_at[partition] = None
        self._hurry()

    def on_changed(self, *, joined_count: int, left_count: int) -> None:
        """The cluster has changed a set of replicas in sync."""
        self._expanded_count += joined_count > 0
        self._shrunk_count += left_count > 0

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.IN_SYNC_EXPANDED, self._expanded_count)
        sheet.add(metrics.IN_SYNC_SHRUNK, self._shrunk_count)
        yield

    async def run(self, controller: Controller) -> None:
        while True:
            await self._wait()
            await self.tick(controller)

    async def tick(self, controller: Controller) -> None:
        """Look at what may have changed, and ask for what has to."""
        asked = await self._look()
        if not asked:
            return
        with self._expiring():
            for start in range(0, len(asked), ALTERATIONS_TOGETHER_MAX):
                await self._ask(controller, asked[start : start + ALTERATIONS_TOGETHER_MAX])

    async def _look(self) -> list[_Asked]:
        looked_at, self._looked_at = list(self._looked_at), {}
        now_ms = int(self._clock.monotonic_ms())
        own = self._image.brokers.get(self._node_id)
        cores = [each.followers.core for each in looked_at if each.followers is not None]
        self._stragglers.sweep([core for core in cores if core.settings.straggler_ms is not None], now_ms)
        is_out_of_touch = self._is_out_of_touch()
        asked: list[_Asked] = []
        pace = Pace(ROLES_PER_TURN)
        for partition in looked_at:
            await pace.next()
            partition.expire(now_ms)
            followers = partition.followers
            if followers is None or partition.has_ended:  # led alone, or elsewhere
                continue
            core = followers.core
            if is_out_of_touch and core.behind_ms(now_ms) >= DOUBTED_BEHIND_MS:
                followers.doubt()
            else:
                followers.trust()
            if own is not None:
                core.broker_epoch = own.epoch  # this process may have had to register again
            followers.look_at_starts(self._image.brokers)
            proposal = core.propose(
                self._image.brokers,
                now_ms,
                start_awaited=partition.acknowledgements.trimmed.nearest_offset,
            )
            if proposal is not None:
                asked.append(_Asked(partition, followers, proposal))
            if proposal is not None or len(partition.acknowledgements) or core.due_at_ms() is not None:
                self._looked_at[partition] = None
        return asked

    @contextmanager
    def _expiring(self) -> Iterator[None]:
        """Send producers away whose time is over while an answer is waited for: a controller may be silent for longer."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def expire() -> None:
            nonlocal timer
            timer = loop.call_later(IN_SYNC_TICK_MS / 1000, expire)
            now_ms = self._clock.monotonic_ms()
            for partition in self._looked_at:
                partition.expire(now_ms)

        timer = loop.call_later(IN_SYNC_TICK_MS / 1000, expire)
        try:
            yield
        finally:
            timer.cancel()

    async def _ask(self, controller: Controller, asked: Sequence[_Asked]) -> None:
        alterations = [
            PartitionAlteration(
                topic_id=each.partition.topic_id,
                index=each.partition.name.partition,
                leader_epoch=each.proposal.leader_epoch,
                partition_epoch=each.proposal.partition_epoch,
                isr=[(member.node_id, member.broker_epoch) for member in each.proposal.isr],
                start_offset=each.proposal.start_offset,
            )
            for each in asked
        ]
        try:
            answers = await controller.alter_partitions(
                self._node_id, asked[0].followers.core.broker_epoch, alterations, timeout_ms=ALTERATION_MS_MAX
            )
            outcomes = {(answer.topic_id, answer.index): _outcome_of(answer.outcome) for answer in answers}
        except RopewalkError as error:
            self._complain(error, len(asked))
            outcomes = {}
            unanswered = _outcome_of(error)
        else:
            unanswered = Outcome.UNKNOWN
        now_ms = int(self._clock.monotonic_ms())
        for each in asked:
            key = each.partition.topic_id, each.partition.name.partition
            each.followers.on_outcome(each.proposal, outcomes.get(key, unanswered), now_ms)

    def _complain(self, error: RopewalkError, partition_count: int) -> None:
        if self._complaints.is_due(str(error), self._clock.monotonic_ms()):
            _log.warning(
                "the replicas in sync could not be changed; it is tried again",
                partition_count=partition_count,
                reason=str(error),
            )

    async def _wait(self) -> None:
        """Until the next tick, or until there is something to look at."""
        await self._wake.wait(IN_SYNC_TICK_MS if self._looked_at else None)

    def _hurry(self) -> None:
        self._wake.ring()


def _outcome_of(outcome: object) -> Outcome:
    if isinstance(outcome, _REFUSALS):
        return Outcome.REFUSED
    return Outcome.UNKNOWN if isinstance(outcome, RopewalkError) else Outcome.ACCEPTED
