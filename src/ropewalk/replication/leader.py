"""The leader of one partition: its high watermark, and which replicas to ask the controller to count as in sync.

Tell it everything that happens, in order; then `high_watermark` is where it belongs, and `propose` says whether
something is to be asked for. A leader lives for one leader epoch: after the next election there is another.

What a reader could get wrong
    "Durable" is what the topic's `flush` promises: with `flush=os` the caller reports the log's end as durable.
    A fetch is reported only if it was asked in this epoch and `find_divergence` found none. Otherwise the offset says
    nothing about whether the follower holds the same records.
    The high watermark may be behind the epoch's start for a while: what earlier leaders committed up to there is known to be
    committed only once the set in sync has confirmed it in this epoch.
    A start that was told to the client who deleted records is one that every later leader has: everybody who may be elected has said
    that its own log begins there, or the metadata do. A replica that is to join therefore has to have left behind what the leader has.
    A set that the controller has accepted counts from the moment that the image says so, since only the image says
    in which order it came with everything else (the minimum, for one).
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, NodeId, Offset
from ropewalk.base.limits import ALTERATION_RETRY_MS, STRAGGLER_REJOIN_MS
from ropewalk.metadata.image import Broker, Partition
from ropewalk.metadata.records import BrokerState
from ropewalk.replication.progress import NEVER_MS, Progress, unheard

_BEGINNING: Final = Offset(0)


class LeaderSettings(Struct, frozen=True, gc=False):
    """What applies to the partition's topic. `isr_count_min` is the effective minimum, never more than the replicas."""

    isr_count_min: int = 1
    lag_ms_max: int = 30_000
    straggler_ms: int | None = None
    """With `ack.policy=quorum`: how long one follower may keep all waiting. None: until it lags by `lag_ms_max`."""

    retry_ms: int = ALTERATION_RETRY_MS


class Member(Struct, frozen=True, gc=False):
    node_id: NodeId
    broker_epoch: int


class Proposal(Struct, frozen=True):
    """The set of replicas in sync that the leader asks for, if the partition is still as it was at `partition_epoch`."""

    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[Member, ...]
    start_offset: Offset = _BEGINNING
    """Where the leader's log begins: nobody is to lead with an earlier start."""


class Outcome(Enum):
    """What became of a proposal."""

    ACCEPTED = auto()
    REFUSED = auto()
    """The active controller said no, so it never takes effect. Nothing less is a refusal."""

    UNKNOWN = auto()
    """It may have been accepted, or be accepted yet. The image will tell."""


class Leader:
    __slots__ = (
        "_counted",
        "_doubted",
        "_eligible",
        "_followers",
        "_in_flight",
        "_isr",
        "_retry_at_ms",
        "_start_recorded",
        "broker_epoch",
        "durable_offset",
        "end_offset",
        "epoch_start_offset",
        "high_watermark",
        "leader_epoch",
        "node_id",
        "partition_epoch",
        "replicas",
        "settings",
        "start_offset",
    )

    def __init__(
        self,
        partition: Partition,
        *,
        node_id: NodeId,
        broker_epoch: int,
        end_offset: Offset,
        durable_offset: Offset,
        high_watermark: Offset,
        settings: LeaderSettings,
        now_ms: int,
        start_offset: Offset = _BEGINNING,
    ) -> None:
        """Leadership of `partition` begins while the log ends at `end_offset`. `high_watermark` is what this node knew of it."""
        assert partition.leader == node_id, f"{node_id} does not lead"
        assert node_id in partition.isr, f"{node_id} leads without being in sync"
        assert high_watermark <= durable_offset <= end_offset, "the high watermark is above what is durable"
        self.node_id = node_id
        self.broker_epoch = broker_epoch
        self.leader_epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        self.replicas = partition.replicas
        self.end_offset = end_offset
        self.durable_offset = durable_offset
        self.epoch_start_offset = end_offset
        self.start_offset = start_offset
        self._start_recorded = partition.start_offset
        self.high_watermark = high_watermark
        self.settings = settings
        self._isr = frozenset(partition.isr)
        self._eligible = frozenset(partition.eligible)
        self._followers: dict[NodeId, Progress] = {}
        self._in_flight: Proposal | None = None
        self._doubted: frozenset[NodeId] = frozenset()  # proposed at this partition epoch, outcome unknown
        self._retry_at_ms = NEVER_MS
        self._counted: tuple[Progress, ...] = ()
        self._follow(partition, now_ms)
        self._recount()
        self._advance()

    @property
    def isr(self) -> frozenset[NodeId]:
        """The committed set, as far as this node has heard."""
        return self._isr

    @property
    def followers(self) -> Mapping[NodeId, Progress]:
        """Everybody else who keeps a copy, observers included."""
        return self._followers

    def counts_on(self, node_id: NodeId) -> bool:
        """Whether that node has, or may turn out to have to have, everything that is committed."""
        progress = self._followers.get(node_id)
        return (
            node_id in self._isr
            or node_id in self._eligible
            or any(progress is counted for counted in self._counted)
        )

    @property
    def is_below_minimum(self) -> bool:
        """Whether writes that want everybody's acknowledgement are to be refused: nothing is committed meanwhile."""
        return len(self._isr) < self.settings.isr_count_min

    @property
    def start_settled(self) -> int:
        """No later leader begins before this: all replicas have left behind what is below, or the metadata say so."""
        starts = [
            self._followers[node_id].start_offset for node_id in self.replicas if node_id != self.node_id
        ]
        return max(self._start_recorded, min([self.start_offset, *starts]))

    def low_watermark(self, brokers: Mapping[NodeId, Broker]) -> int:
        """The earliest start of all replicas that are in service; -1 while one of them has yet to be heard."""
        starts = [
            self._followers[node_id].start_offset
            for node_id in self.replicas
            if node_id != self.node_id and _is_in_service(brokers.get(node_id))
        ]
        return min([self.start_offset, *starts])

    @property
    def has_proposed(self) -> bool:
        """Whether a proposal waits for its outcome."""
        return self._in_flight is not None

    def on_appended(self, end_offset: Offset, now_ms: int) -> None:
        """The log ends at `end_offset`. A follower that stood at its end before is behind from this moment."""
        for progress in self._followers.values():
            if progress.durable_offset >= self.end_offset:
                progress.caught_up_at_ms = now_ms
        self.end_offset = end_offset

    def on_durable(self, durable_offset: Offset) -> None:
        """This node's own copy is durable up to there."""
        if durable_offset > self.durable_offset:
            self.durable_offset = durable_offset
            self._advance()

    def on_start(self, start_offset: Offset) -> None:
        """This node's own log begins there, durably."""
        self.start_offset = max(self.start_offset, start_offset)

    def on_fetch(
        self,
        node_id: NodeId,
        *,
        broker_epoch: int,
        fetch_offset: Offset,
        now_ms: int,
        start_offset: Offset = _BEGINNING,
    ) -> bool:
        """A replica asked for `fetch_offset` in this epoch, and its log continues this one. Whether it may join now.

        Of somebody who keeps no copy, and of a process that has been followed by another, nothing is learnt.
        """
        progress = self._followers.get(node_id)
        if progress is None or broker_epoch < progress.broker_epoch or fetch_offset > self.end_offset:
            return False
        progress.on_fetch(
            broker_epoch=broker_epoch,
            fetch_offset=fetch_offset,
            start_offset=start_offset,
            end_offset=self.end_offset,
            now_ms=now_ms,
            step_ms=self._step_ms,
        )
        self._advance()
        return node_id not in self._isr and self._may_join(node_id, now_ms)

    def on_facts(self, partition: Partition, now_ms: int, *, settings: LeaderSettings | None = None) -> None:
        """The image says this of the partition, in the epoch that this leader leads in, and its settings have changed to these.

        Both at once, since a partition epoch means one minimum: by a set in sync of the newer and the minimum of the older
        epoch something would be promised with too few copies.
        """
        assert partition.leader_epoch == self.leader_epoch, "another epoch is another leader's"
        if settings is not None:
            self.settings = settings
        if partition.partition_epoch <= self.partition_epoch:
            self._advance()
            return
        self.partition_epoch = partition.partition_epoch
        self.replicas = partition.replicas
        self._start_recorded = partition.start_offset
        before, self._isr = self._isr, frozenset(partition.isr)
        self._eligible = frozenset(partition.eligible)
        for node_id in self._isr - before:
            if node_id in self._followers:
                self._followers[node_id].held_back = False
        # Proposals compare the partition epoch, so whatever was asked before this can no longer take effect.
        self._in_flight, self._doubted, self._retry_at_ms = None, frozenset(), NEVER_MS
        self._follow(partition, now_ms)
        self._recount()
        self._advance()

    def propose(
        self, brokers: Mapping[NodeId, Broker], now_ms: int, *, start_awaited: Offset | None = None
    ) -> Proposal | None:
        """What to ask the controller for, if anything; its outcome must be told. One is under way at a time.

        `start_awaited`: somebody waits until no later leader can begin before it. Once all who are in service have left behind
        what is below, the metadata are to speak for the others, who may be elected when they are back.

        While it is in doubt whether an earlier proposal was accepted, the wanted set is proposed even if it is the
        committed one: to be committed at the next partition epoch is what makes the earlier one impossible.
        """
        if self._in_flight is not None or now_ms < self._retry_at_ms:
            return None
        own = brokers.get(self.node_id)
        if own is None or own.state is BrokerState.FENCED or own.epoch != self.broker_epoch:
            return None
        members = tuple(
            Member(node_id, max(brokers[node_id].epoch, self._epoch_heard(node_id)))
            for node_id in self.replicas
            if self._is_wanted(node_id, brokers, now_ms)
        )
        wanted = frozenset(member.node_id for member in members)
        if wanted == self._isr and not self._doubted and not self._has_to_record(start_awaited, brokers):
            return None
        self._in_flight = Proposal(self.leader_epoch, self.partition_epoch, members, self.start_offset)
        self._recount()
        return self._in_flight

    def on_outcome(self, proposal: Proposal, outcome: Outcome, now_ms: int) -> None:
        """Somebody answered `proposal`, or nobody will. Of one that the image has overtaken nothing is learnt."""
        if proposal is not self._in_flight:
            return
        self._in_flight = None
        self._retry_at_ms = now_ms + self.settings.retry_ms
        if outcome is not Outcome.REFUSED:
            self._doubted |= {member.node_id for member in proposal.isr}
        self._recount()
        self._advance()

    def behind_ms(self, now_ms: int) -> int:
        """For how long the slowest of those in sync has not reached the end of the log."""
        return max(
            (
                progress.behind_ms(self.end_offset, now_ms)
                for node_id, progress in self._followers.items()
                if node_id in self._isr
            ),
            default=0,
        )

    def straggling(self, now_ms: int) -> list[NodeId]:
        """Those in sync that everybody has been waiting for longer than `ack.policy=quorum` allows."""
        straggler_ms = self.settings.straggler_ms
        if straggler_ms is None:
            return []
        return [
            node_id
            for node_id, progress in self._followers.items()
            if node_id in self._isr and progress.behind_ms(self.end_offset, now_ms) > straggler_ms
        ]

    def on_straggler(self, node_id: NodeId, now_ms: int) -> None:
        """That node is not to be waited for. It stays if too few would be left: the minimum, or half of the replicas."""
        progress = self._followers.get(node_id)
        if progress is None or node_id not in self._isr or self.settings.straggler_ms is None:
            return
        spared = sum(self._followers[other].held_back for other in self._isr if other in self._followers)
        count_min = max(self.settings.isr_count_min, len(self.replicas) // 2 + 1)
        if not progress.held_back and len(self._isr) - spared - 1 >= count_min:
            progress.held_back = True
            progress.in_step_since_ms = now_ms

    def due_at_ms(self) -> int | None:
        """When time alone may make `propose` or `straggling` answer otherwise; None if only an event can."""
        dues = []
        if self._doubted:
            dues.append(self._retry_at_ms)
        for node_id, progress in self._followers.items():
            if node_id in self._isr:
                if progress.held_back:
                    dues.append(self._retry_at_ms)
                if progress.durable_offset < self.end_offset:
                    dues.append(progress.caught_up_at_ms + self._step_ms + 1)
            elif node_id in self.replicas and progress.is_heard:
                held_until_ms = (
                    progress.in_step_since_ms + STRAGGLER_REJOIN_MS if progress.held_back else NEVER_MS
                )
                dues.append(max(self._retry_at_ms, held_until_ms))
        return min(dues) if dues else None

    def _has_to_record(self, start_awaited: Offset | None, brokers: Mapping[NodeId, Broker]) -> bool:
        return (
            start_awaited is not None
            and self.start_settled < start_awaited
            and self.low_watermark(brokers) >= start_awaited
        )

    # Who counts

    @property
    def _step_ms(self) -> int:
        straggler_ms = self.settings.straggler_ms
        return self.settings.lag_ms_max if straggler_ms is None else straggler_ms

    def _is_wanted(self, node_id: NodeId, brokers: Mapping[NodeId, Broker], now_ms: int) -> bool:
        if node_id == self.node_id:
            return True
        broker = brokers.get(node_id)
        if broker is None or not _is_in_service(broker):
            return False
        if node_id in self._isr:
            progress = self._followers[node_id]
            return not self._lags(progress, now_ms) and not _is_held_back(progress, now_ms)
        is_heard = self._epoch_heard(node_id) == broker.epoch
        return is_heard and broker.is_active and self._may_join(node_id, now_ms)

    def _may_join(self, node_id: NodeId, now_ms: int) -> bool:
        """It holds all that any leader may have acknowledged, and is likely to stay."""
        progress = self._followers[node_id]
        return (
            node_id in self.replicas  # an observer never is
            and progress.durable_offset >= self.high_watermark
            and progress.durable_offset >= self.epoch_start_offset
            and progress.start_offset >= self.start_offset
            and not self._lags(progress, now_ms)
            and not _is_held_back(progress, now_ms)
        )

    def _lags(self, progress: Progress, now_ms: int) -> bool:
        return progress.behind_ms(self.end_offset, now_ms) > self.settings.lag_ms_max

    def _epoch_heard(self, node_id: NodeId) -> int:
        return self.broker_epoch if node_id == self.node_id else self._followers[node_id].broker_epoch

    def _follow(self, partition: Partition, now_ms: int) -> None:
        """Keep what is known of those who hold copies; of the others nothing is expected any more."""
        known = self._followers
        self._followers = {}
        for node_id in partition.holders:
            if node_id == self.node_id:
                continue
            progress = known.get(node_id)
            if progress is None:
                progress = unheard(caught_up_at_ms=NEVER_MS, end_offset=self.end_offset, now_ms=now_ms)
            if node_id in self._isr and not progress.is_heard:
                progress.caught_up_at_ms = max(progress.caught_up_at_ms, now_ms)
            self._followers[node_id] = progress

    # The high watermark

    def _recount(self) -> None:
        """Whose durable ends the high watermark must not pass: all who are in sync or may turn out to be."""
        proposed = (
            frozenset(member.node_id for member in self._in_flight.isr) if self._in_flight else frozenset()
        )
        counted = self._isr | self._doubted | proposed
        self._counted = tuple(progress for node_id, progress in self._followers.items() if node_id in counted)

    def _advance(self) -> None:
        if len(self._isr) < self.settings.isr_count_min:
            return
        lowest: int = self.durable_offset
        for progress in self._counted:
            if progress.durable_offset < lowest:
                lowest = progress.durable_offset
        if lowest > self.high_watermark:
            self.high_watermark = Offset(lowest)


def _is_in_service(broker: Broker | None) -> bool:
    return broker is not None and broker.state is not BrokerState.FENCED


def _is_held_back(progress: Progress, now_ms: int) -> bool:
    return progress.held_back and now_ms - progress.in_step_since_ms < STRAGGLER_REJOIN_MS
