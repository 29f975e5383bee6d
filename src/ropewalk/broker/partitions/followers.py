"""Those who copy from a partition that is led here: what the leader's core knows of them, and how they hear of more.

All that happens to them is told here, reaches the core, and from there the partition, whose high watermark it decides, and
`InSync`, where the set of replicas in sync may have to change.

What a reader could get wrong
    Followers are woken by what is appended, consumers by the high watermark. A follower that had to wait for the high
    watermark would wait for itself.
    A partition without other replicas has none of this: its high watermark is how far it is durable.
    A leader that hears neither from a controller nor from somebody who counts has most likely been replaced. Whatever it
    took could not be committed, so it sends producers to look for another: they would ask nobody else while they wait.
    They are the followers of one epoch of leadership. What the controller answered may come when there are others.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ropewalk.base.errors import NotEnoughReplicas, NotEnoughReplicasAfterAppend, NotLeader, TimedOut
from ropewalk.base.ids import NodeId, Offset
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.watchers import Watchers
from ropewalk.metadata.image import Broker
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.replication.leader import Leader, LeaderSettings, Outcome, Proposal
from ropewalk.replication.missed import Missed

if TYPE_CHECKING:  # the two know each other
    from ropewalk.broker.partitions.partition import Partition


class InSync(Protocol):
    """Where it is said that the replicas in sync of a partition may have to change, now or by the passing of time."""

    def note(self, partition: "Partition") -> None: ...

    def hurry(self, partition: "Partition") -> None:
        """As `note`, and soon: somebody may join."""

    def on_changed(self, *, joined_count: int, left_count: int) -> None:
        """The cluster has changed a set of replicas in sync."""


class Followers:
    __slots__ = ("_clock", "_in_sync", "_is_doubted", "_missed", "_partition", "core", "watchers")

    def __init__(self, partition: "Partition", core: Leader, clock: Clock, in_sync: InSync) -> None:
        """They count from `Partition.share` on."""
        self.core = core
        self.watchers = Watchers()
        """Told when the log has grown."""

        self._is_doubted = False
        """Whether another may well lead by now."""

        self._missed = Missed()
        self._partition = partition
        self._clock = clock
        self._in_sync = in_sync

    def include(self, node_id: NodeId) -> bool:
        """Whether that node keeps a copy, as far as this one has heard."""
        return node_id in self.core.followers

    def have_missed(self, node_id: NodeId, broker_epoch: int, fetch_offset: Offset) -> bool:
        """Whether that replica still has what was deleted, and cannot be told so any more: it has to begin anew."""
        log = self._partition.log
        return (
            log.settings.compacts
            and not self.core.counts_on(node_id)
            and self._missed.has_missed(
                node_id,
                broker_epoch=broker_epoch,
                fetch_offset=fetch_offset,
                start_offset=log.start_offset,
                erased=log.erasures,
            )
        )

    @property
    def would_miss(self) -> bool:
        """Whether one of them is copying everything, and would have to begin anew if deletions were removed now."""
        core = self.core
        return self._missed.would_be_missed(
            core.followers,
            erased=self._partition.log.erasures,
            now_ms=self._now_ms(),
            silent_ms_max=core.settings.lag_ms_max,
        )

    def check_enough(self) -> None:
        """Raise if a write that wants everybody's acknowledgement cannot have it."""
        core, name = self.core, self._partition.name
        if self._is_doubted:
            raise NotLeader(
                f"{name}: its leader reaches neither a controller nor all replicas; another may lead by now"
            )
        if core.is_below_minimum:
            raise NotEnoughReplicas(
                f"{name} has {len(core.isr)} in-sync replicas, needs {core.settings.isr_count_min}"
            )

    def on_appended(self, end_offset: Offset, grown_bytes: int) -> None:
        self.core.on_appended(end_offset, self._now_ms())
        self.watchers.tell_of_growth(grown_bytes)
        self._in_sync.note(self._partition)

    def on_fetch(
        self, node_id: NodeId, broker_epoch: int, fetch_offset: Offset, start_offset: Offset
    ) -> None:
        """A replica asked for `fetch_offset` in this epoch, and its log, which begins at `start_offset`, continues this one."""
        may_join = self.core.on_fetch(
            node_id,
            broker_epoch=broker_epoch,
            fetch_offset=fetch_offset,
            start_offset=start_offset,
            now_ms=self._now_ms(),
        )
        self._partition.advance_with(self)
        if may_join or len(self._partition.acknowledgements.trimmed):
            self._in_sync.hurry(self._partition)
        elif (
            node_id not in self.core.isr
        ):  # it may join by the passing of time: a straggler has to wait for a while
            self._in_sync.note(self._partition)

    def on_trimmed(self) -> None:
        """Somebody waits for the starts of the others."""
        self._in_sync.hurry(self._partition)

    def look_at_starts(self, brokers: Mapping[NodeId, Broker]) -> None:
        """Let go whoever waited until the copies begin where they do by now."""
        core, trimmed = self.core, self._partition.acknowledgements.trimmed
        if len(trimmed):
            trimmed.release(Offset(min(core.low_watermark(brokers), core.start_settled)))

    def on_facts(self, facts: PartitionFacts, settings: LeaderSettings) -> None:
        """The cluster says this of the partition, which this node still leads in the same epoch."""
        core, before = self.core, self.core.isr
        core.on_facts(facts, self._now_ms(), settings=settings)
        if core.isr != before:
            self._in_sync.on_changed(joined_count=len(core.isr - before), left_count=len(before - core.isr))
        if core.is_below_minimum:
            self._partition.acknowledgements.committed.fail(
                NotEnoughReplicasAfterAppend(
                    f"{self._partition.name} has {len(core.isr)} in-sync replicas left; "
                    "whether the write survives is not known"
                )
            )
        self.on_changed()

    def on_outcome(self, proposal: Proposal, outcome: Outcome, now_ms: int) -> None:
        """What became of a set of replicas in sync that the core had proposed."""
        self.core.on_outcome(proposal, outcome, now_ms)
        if self._partition.followers is self:
            self.on_changed()

    def on_changed(self) -> None:
        """Something about them is other than it was."""
        self._partition.advance_with(self)
        if len(self._partition.acknowledgements.trimmed):
            self._in_sync.hurry(self._partition)
        self._in_sync.note(self._partition)

    def doubt(self) -> None:
        """Somebody else may lead by now: take nothing that would have to wait, and send away who waits already."""
        if not self._is_doubted:
            self._is_doubted = True
            self._partition.acknowledgements.committed.fail(
                TimedOut(
                    f"{self._partition.name}: its leader is cut off; whether the write survives is not known"
                )
            )

    def trust(self) -> None:
        """A controller is heard, or everybody in sync is: nobody else leads, or the image will tell."""
        self._is_doubted = False

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())
