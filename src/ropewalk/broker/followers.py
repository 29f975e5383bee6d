"""Those who copy from a partition that is led here: what the leader's core knows of them, and how they hear of more.

What a reader could get wrong
    Followers are woken by what is appended, consumers by the high watermark. A follower that had to wait for the high
    watermark would wait for itself.
    A partition without other replicas has none of this: its high watermark is how far it is durable.
    A leader that hears neither from a controller nor from somebody who counts has most likely been replaced. Whatever it
    took could not be committed, so it sends producers to look for another: they would ask nobody else while they wait.
"""

from ropewalk.base.errors import NotEnoughReplicas, NotLeader
from ropewalk.base.ids import NodeId, Offset, TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.broker.watchers import Watchers
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.replication.leader import Leader, LeaderSettings


class Followers:
    __slots__ = ("_clock", "_name", "core", "is_doubted", "watchers")

    def __init__(self, name: TopicPartition, core: Leader, clock: Clock) -> None:
        self.core = core
        self.watchers = Watchers()
        """Told when the log has grown."""

        self.is_doubted = False
        """Whether another may well lead by now."""

        self._name = name
        self._clock = clock

    def check_enough(self) -> None:
        """Raise if a write that wants everybody's acknowledgement cannot have it."""
        core = self.core
        if self.is_doubted:
            raise NotLeader(
                f"{self._name}: its leader reaches neither a controller nor all replicas; another may lead by now"
            )
        if core.is_below_minimum:
            raise NotEnoughReplicas(
                f"{self._name} has {len(core.isr)} in-sync replicas, needs {core.settings.isr_count_min}"
            )

    def on_appended(self, end_offset: Offset, grown_bytes: int) -> None:
        self.core.on_appended(end_offset, self._now_ms())
        self.watchers.tell_of_growth(grown_bytes)

    def on_fetch(self, node_id: NodeId, broker_epoch: int, fetch_offset: Offset) -> bool:
        """A replica asked in this epoch, and its log continues this one. Whether it may join now."""
        return self.core.on_fetch(
            node_id, broker_epoch=broker_epoch, fetch_offset=fetch_offset, now_ms=self._now_ms()
        )

    def on_facts(self, facts: PartitionFacts, settings: LeaderSettings) -> None:
        if settings != self.core.settings:
            self.core.on_settings(settings)
        self.core.on_facts(facts, self._now_ms())

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())
