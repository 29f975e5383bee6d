"""Copies from one leader node everything that this node follows there: one fetch after the other, as the plan says.

What is asked for, and when, is decided by `replication/fetch_plan.py`. The next fetch goes out when the group commit that covers the last
answer is done: its offsets then say what survives a power cut.

What a reader could get wrong
    An answer is worked off in turns, and the partition may have got another leader meanwhile. Whoever appends asks its core
    first, and its replica refuses once it has ended. The replica goes on where another node leads: what is left of the answer is
    dropped then, and a leader that was asked for another place than where the log ends by now is asked again.
    Fetches of a session go out one after the other, so what comes up while the leader holds one cannot be asked for beside it.
    The leader is asked to answer that one (`hurry`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import structlog
from typing_extensions import Buffer

from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import (
    FetchSessionEpochInvalid,
    FetchSessionTopicsMixed,
    FetchSessionUnknown,
    NotLeader,
    RopewalkError,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId
from ropewalk.base.limits import (
    REPLICA_BYTES_PER_TURN,
    REPLICA_FETCH_MS_MAX,
    REPLICA_RETRY_MS,
    ROLES_PER_TURN,
)
from ropewalk.base.ports import Clock
from ropewalk.broker.copying.copying import Copying
from ropewalk.broker.partitions.catch_up import CatchUpBudget
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.broker.partitions.replica import Replica
from ropewalk.broker.peers.calls.fetch import Fetched, ReplicaFetch
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.records.batch import BatchHeader
from ropewalk.replication.fetch_plan import FetchPlan, Key, LookAtStart, PlannedFetch, Repair, Settle
from ropewalk.replication.follower import (
    Answer,
    Append,
    Effect,
    MoveStart,
    Question,
    Refusal,
    Restart,
    Truncate,
    Wait,
)
from ropewalk.runtime.bell import Bell
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()

_SESSION_ERRORS: Final = (FetchSessionUnknown, FetchSessionEpochInvalid, FetchSessionTopicsMixed)

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Not a coroutine: one that nobody comes to any more, because the node ends, would have to be closed by hand."""


class Copier(Protocol):
    """What a fetcher needs of the node around it."""

    node_id: NodeId
    clock: Clock
    commits: GroupCommit
    budget: CatchUpBudget

    @property
    def settings(self) -> BrokerSettings: ...

    @property
    def broker_epoch(self) -> int: ...

    def counts_on(self, topic_id: TopicId, index: int) -> bool:
        """Whether the cluster takes this node's copy for complete: it is in sync, or eligible."""

    async def fetch(
        self, leader: NodeId, asked: ReplicaFetch, *, deadline_ms: float
    ) -> Fetched | RopewalkError: ...

    async def hurry(self, leader: NodeId, session_id: int, session_epoch: int) -> None:
        """Have the leader answer that fetch, if it is holding it. Where that fails it ends by itself."""

    async def cut(self, replica: Replica, effect: Truncate | Restart, *, leader_epoch: LeaderEpoch) -> None:
        """As the leader of that epoch has it. Whoever copies the partition by then hears when it is done."""

    async def move_start(self, replica: Replica, offset: Offset) -> None: ...

    def begin(self, work: Work) -> None:
        """Carry out what takes long beside the fetches."""


class Fetcher:
    def __init__(self, leader: NodeId, copier: Copier) -> None:
        self.leader = leader
        self._copier = copier
        self._plan: FetchPlan[Copying] = FetchPlan()
        self._can_be_hurried = False
        """Whether a fetch is under way that the leader may hold, and has not been asked to answer."""
        self._wake = Bell()
        self._turn_bytes = 0
        self._complaints = Complaints()
        self.copied_bytes = 0

    def __len__(self) -> int:
        return len(self._plan.copied)

    @property
    def lag_max(self) -> int:
        """Records that the slowest of the copies is behind what is committed."""
        return max(
            (
                max(0, each.core.high_watermark(Offset(2**63 - 1)) - each.replica.log.end_offset)
                for each in self._plan.copied.values()
            ),
            default=0,
        )

    def follow(self, key: Key, replica: Replica, *, is_in_sync: bool) -> None:
        """Copy this one from here on; or, if it is copied already, in the epoch that it is in now."""
        copying = self._plan.copied.get(key)
        if (
            copying is not None
            and copying.replica is replica
            and copying.core.leader_epoch == replica.leader_epoch
        ):
            return
        self._plan.follow(key, Copying(replica, is_in_sync=is_in_sync))
        self.hurry()

    def leave(self, key: Key) -> None:
        """Copy this one no more; it may never have been copied."""
        self._plan.leave(key)

    def hurry(self) -> None:
        """There is something to tell the leader, who may be holding a fetch."""
        self._wake.ring()
        if self._can_be_hurried:
            self._can_be_hurried = False
            plan = self._plan
            self._copier.begin(partial(self._copier.hurry, self.leader, plan.session_id, plan.session_epoch))

    async def run(self) -> None:
        while True:
            planned = self._next_fetch()
            if planned is None:
                await self._wait()
                continue
            self._can_be_hurried = planned.may_be_held
            try:
                fetched = await self._copier.fetch(
                    self.leader, self._in_words(planned), deadline_ms=self._now_ms() + REPLICA_FETCH_MS_MAX
                )
            except RopewalkError as error:
                await self._on_failed(str(error))
                continue
            finally:
                self._can_be_hurried = False
            if isinstance(fetched, RopewalkError):
                await self._on_refused(fetched)
                continue
            await self._take(fetched)

    # Asking

    def _next_fetch(self) -> PlannedFetch | None:
        """None if there is nothing to ask for at the moment."""
        now_ms = self._now_ms()
        steps, planned = self._plan.next_fetch(
            now_ms,
            broker_epoch=self._copier.broker_epoch,
            catch_up_wait_ms=self._copier.budget.wait_ms(now_ms),
            counts_on=lambda key: self._copier.counts_on(*key),
        )
        for step in steps:
            copying = self._plan.copied[step.key]
            match step:
                case Repair(key=key, effect=effect):
                    self._cut(key, copying, effect)
                case LookAtStart(key=key):
                    self._begin_moving_start(key, copying)
                case Settle():
                    self._copier.commits.note(copying.replica)
        return planned

    def _in_words(self, planned: PlannedFetch) -> ReplicaFetch:
        settings = self._copier.settings
        named: dict[TopicId, list[tuple[int, Question]]] = {}
        for (topic_id, index), question in planned.named:
            named.setdefault(topic_id, []).append((index, question))
        forgotten: dict[TopicId, list[int]] = {}
        for topic_id, index in planned.forgotten:
            forgotten.setdefault(topic_id, []).append(index)
        return ReplicaFetch(
            node_id=self._copier.node_id,
            broker_epoch=planned.broker_epoch,
            session_id=planned.session_id,
            session_epoch=planned.session_epoch,
            named=named,
            forgotten=forgotten,
            wait_ms_max=int(min(settings.replica_fetch_wait_max_ms, planned.wait_ms_max)),
            bytes_min=settings.replica_fetch_min_bytes,
            bytes_max=settings.replica_fetch_response_max_bytes,
            partition_bytes_max=settings.replica_fetch_max_bytes,
        )

    async def _wait(self) -> None:
        """Until something can be asked for: time has passed, or somebody says so."""
        now_ms = self._now_ms()
        catch_up_wait_ms = self._copier.budget.wait_ms(now_ms)
        if self._plan.waits_for_disk(now_ms, catch_up_wait_ms):
            await self._copier.commits.covered()
            return
        rest_ms = (
            max(1.0, self._plan.rest_ms(now_ms, catch_up_wait_ms)) if self._plan.waits_for_time() else None
        )
        await self._wake.wait(rest_ms)

    # Being answered

    async def _take(self, fetched: Fetched) -> None:
        self._plan.on_answered(fetched.session_id)
        waits_for_disk = False
        pace = Pace(ROLES_PER_TURN)
        for key, answer, records in fetched.partitions():
            copying = self._plan.copied.get(key)
            if copying is not None and not copying.replica.is_over:
                await pace.next()
                await self._take_one(key, copying, answer, records)
                replica = copying.replica
                waits_for_disk |= replica.durable_first and replica.log.dirty
        if waits_for_disk:
            await self._copier.commits.covered()

    async def _take_one(self, key: Key, copying: Copying, answer: Answer, records: Buffer) -> None:
        before_offset = copying.replica.log.end_offset
        for effect in copying.on_answer(answer):
            try:
                await self._carry_out(key, copying, effect, records)
            except RopewalkError as error:
                self._complain(f"{copying.replica.name}: {error}")
                self._rest(key, copying, self._copier.settings.replica_fetch_backoff_ms)
        if self._plan.copied.get(key) is copying and not copying.is_at_work:
            has_grown = copying.replica.log.end_offset != before_offset
            self._plan.on_taken(key, copying, has_grown=has_grown)

    async def _carry_out(self, key: Key, copying: Copying, effect: Effect, records: Buffer) -> None:
        match effect:
            case Append():
                await self._append(key, copying, records)
            case MoveStart():
                self._begin_moving_start(key, copying)
            case Truncate() | Restart():
                self._cut(key, copying, effect)
            case Wait(reason=reason):
                is_soon = reason in (Refusal.FENCED, Refusal.NOT_YET)
                self._rest(
                    key,
                    copying,
                    copying.retry_ms() if is_soon else self._copier.settings.replica_fetch_backoff_ms,
                )

    async def _append(self, key: Key, copying: Copying, records: Buffer) -> None:
        copied_bytes = 0
        now_ms, is_counted_on = self._copier.clock.now_ms(), self._copier.counts_on(*key)
        for batch, header in copying.batches(records):
            way = copying.make_way(header)
            if way is not None:
                self._cut(key, copying, way, (bytes(batch), header))
                break
            copying.append(batch, header, now_ms, is_counted_on=is_counted_on)
            copied_bytes += header.size_bytes
            self._turn_bytes += header.size_bytes
            if self._turn_bytes >= REPLICA_BYTES_PER_TURN:
                self._turn_bytes = 0
                await asyncio.sleep(0)
                if not copying.is_current:
                    break  # the next leader may have been asked for what follows
        self.copied_bytes += copied_bytes
        if copying.is_behind:
            self._copier.budget.charge(copied_bytes, self._now_ms())
        copying.note_progress(is_counted_on=is_counted_on)

    def _begin_moving_start(self, key: Key, copying: Copying) -> None:
        """As far as this copy knows what is committed. What cannot be done yet comes again with the next question."""
        offset = copying.start_due()
        if offset is not None:
            copying.is_moving_start = True
            self._copier.begin(partial(self._move_start, key, copying, offset))

    async def _move_start(self, key: Key, copying: Copying, offset: Offset) -> None:
        replica = copying.replica
        try:
            await self._copier.move_start(replica, offset)
        except NotLeader:
            return  # it is copied no more
        except RopewalkError as error:
            self._complain(f"{replica.name}: {error}")
            copying.rest_until_ms = self._now_ms() + self._copier.settings.replica_fetch_backoff_ms
        finally:
            copying.is_moving_start = False
        if self._plan.copied.get(key) is copying:  # whoever deleted the records waits to hear of it
            self._plan.name_again(key)
            self.hurry()

    def _cut(
        self,
        key: Key,
        copying: Copying,
        effect: Truncate | Restart,
        first: tuple[bytes, BatchHeader] | None = None,
    ) -> None:
        """`first` is the batch that is to follow, where way was made for it.

        It is not asked for again: a leader that begins in the middle of it has nothing to give at its beginning.
        """
        copying.is_at_work = True
        self._plan.on_cut_begun(key)
        self._copier.begin(partial(self._cut_to_the_end, key, copying, effect, first))

    async def _cut_to_the_end(
        self, key: Key, copying: Copying, effect: Truncate | Restart, first: tuple[bytes, BatchHeader] | None
    ) -> None:
        try:
            await self._copier.cut(copying.replica, effect, leader_epoch=copying.core.leader_epoch)
            is_counted_on = self._copier.counts_on(*key)
            if first is not None and copying.is_next(first[1]):
                now_ms = self._copier.clock.now_ms()
                copying.append(memoryview(first[0]), first[1], now_ms, is_counted_on=is_counted_on)
            if copying.is_current:  # the leader, who has told how far all is committed, need not say so again
                copying.note_progress(is_counted_on=is_counted_on)
        except RopewalkError as error:
            if copying.is_current:
                self._complain(f"{copying.replica.name}: {error}")
            copying.rest_until_ms = self._now_ms() + self._copier.settings.replica_fetch_backoff_ms
        copying.is_at_work = False
        self.hurry()

    def _rest(self, key: Key, copying: Copying, rest_ms: float) -> None:
        self._plan.rest(key, copying, self._now_ms() + rest_ms)

    async def _on_failed(self, reason: str) -> None:
        self._complain(reason)
        self._plan.begin_anew()
        await asyncio.sleep(REPLICA_RETRY_MS / 1000)

    async def _on_refused(self, error: RopewalkError) -> None:
        if isinstance(error, _SESSION_ERRORS) and not self._plan.is_beginning:
            self._plan.begin_anew()  # at once; a leader that refuses a session to begin with is asked again after a while
        else:
            await self._on_failed(f"node {self.leader} refused a fetch: {error}")

    def _complain(self, reason: str) -> None:
        if self._complaints.is_due(reason, self._now_ms()):
            _log.warning("copying from another node is put off", leader=self.leader, reason=reason)

    def _now_ms(self) -> float:
        return self._copier.clock.monotonic_ms()
