"""What a node is to a partition that it holds: its leader, or a follower; made from what the image says.

What a reader could get wrong
    What the image says before it has this process's own registration is about a former process of the node. That one may
    have written, in an epoch that it leads by the image, what a power cut took from this one; to lead in the same epoch
    would be to write an offset of it twice. Until it has registered a node leads nothing.
"""

from collections.abc import Callable

from ropewalk.base.ids import NodeId, Offset, TopicId, TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.followers import Followers, InSync
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.page_cache_marks import PageCacheMarks
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.replica import Replica
from ropewalk.broker.partitions.topic_rules import record_rules
from ropewalk.log.log import Log
from ropewalk.metadata.image import Image
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.metadata.settings.applied import AppliedSettings, TopicSettings
from ropewalk.replication.leader import Leader, LeaderSettings


class Roles:
    def __init__(
        self,
        node_id: NodeId,
        *,
        image: Image,
        settings: AppliedSettings,
        disk: Home,
        memory: Home,
        marks: PageCacheMarks,
        in_sync: InSync,
        clock: Clock,
        may_lead: Callable[[], bool],
        is_withdrawn: Callable[[], bool],
    ) -> None:
        """`may_lead`: whether the image has this process's registration. `is_withdrawn`: whether it counts no more, whatever it has."""
        self._node_id = node_id
        self._may_lead = may_lead
        self._is_withdrawn = is_withdrawn
        self._image = image
        self._settings = settings
        self._disk = disk
        self._memory = memory
        self._marks = marks
        self._in_sync = in_sync
        self._clock = clock

    def make(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        facts: PartitionFacts,
        settings: TopicSettings,
        *,
        in_memory: bool,
        high_watermark: Offset | None = None,
    ) -> Hosted:
        """With a high watermark if one is known from the role before; else from the last life of the node."""
        home = self._memory if in_memory else self._disk
        if high_watermark is None:
            saved = home.directory.high_watermarks.get(str(name), topic_id)
            high_watermark = saved
        high_watermark = max(high_watermark, log.start_offset)  # nothing is deleted that is not committed
        commits = home.commits
        is_marked = self._marks.is_marked(name, topic_id)
        durable_first = not in_memory and (settings.flush == "group" or not is_marked)
        if self.leads(facts):
            partition = Partition(
                name,
                topic_id,
                log,
                leader_epoch=facts.leader_epoch,
                rules=record_rules(settings, self._image.queues.by_topic(topic_id)),
                durable_first=durable_first,
                in_memory=in_memory,
                commits=commits,
                clock=self._clock,
            )
            self._share(partition, facts, settings, high_watermark)
            return self._noted(partition, settings)
        replica = Replica(
            name,
            topic_id,
            log,
            leader=self._elsewhere(facts),
            leader_epoch=facts.leader_epoch,
            high_watermark=min(high_watermark, log.durable_offset if durable_first else log.end_offset),
            durable_first=durable_first,
            in_memory=in_memory,
            commits=commits,
        )
        return self._noted(replica, settings)

    def _noted(self, hosted: Hosted, settings: TopicSettings) -> Hosted:
        if not hosted.in_memory:
            self._marks.note(hosted, settings.flush)
        return hosted

    def retire(self, former: Hosted) -> Replica:
        """A copy of nobody's over the log of one that has ended."""
        return Replica(
            former.name,
            former.topic_id,
            former.log,
            leader=None,
            leader_epoch=former.leader_epoch,
            high_watermark=former.high_watermark,
            durable_first=former.durable_first,
            in_memory=former.in_memory,
            commits=(self._memory if former.in_memory else self._disk).commits,
        )

    def leads(self, facts: PartitionFacts) -> bool:
        return facts.leader == self._node_id and self._may_lead() and not self._is_withdrawn()

    def _elsewhere(self, facts: PartitionFacts) -> NodeId | None:
        """Whom to follow: nobody, where the image means a former process of this node, or counts no more."""
        return None if facts.leader == self._node_id or self._is_withdrawn() else facts.leader

    def update(self, hosted: Hosted, facts: PartitionFacts, settings: TopicSettings) -> bool:
        """Tell a role what has changed; False if it must be replaced, since the leader is another."""
        if isinstance(hosted, Partition):
            if not self.leads(facts):
                return False
            self._update_led(hosted, facts, settings)
            hosted.set_rules(record_rules(settings, self._image.queues.by_topic(hosted.topic_id)))
        else:
            if self.leads(facts):
                return False
            hosted.set_leader(self._elsewhere(facts), facts.leader_epoch)
        self._noted(hosted, settings)
        return True

    def _update_led(self, partition: Partition, facts: PartitionFacts, settings: TopicSettings) -> None:
        is_shared = len(facts.holders) > 1
        if facts.leader_epoch != partition.leader_epoch or is_shared != partition.is_replicated:
            self._share(partition, facts, settings, partition.high_watermark)
        elif partition.followers is not None:
            partition.followers.on_facts(facts, self._leader_settings(partition, facts, settings))

    def _share(
        self, partition: Partition, facts: PartitionFacts, settings: TopicSettings, high_watermark: Offset
    ) -> None:
        """Begin an epoch of leadership, with those who keep copies too."""
        followers = None
        if len(facts.holders) > 1:
            own = self._image.brokers.get(self._node_id)
            core = Leader(
                facts,
                node_id=self._node_id,
                broker_epoch=-1 if own is None else own.epoch,
                end_offset=partition.log.end_offset,
                durable_offset=partition.reached_offset,
                high_watermark=min(high_watermark, partition.reached_offset),
                settings=self._leader_settings(partition, facts, settings),
                now_ms=int(self._clock.monotonic_ms()),
                start_offset=partition.log.start_offset,
            )
            followers = Followers(partition, core, self._clock, self._in_sync)
        partition.share(followers, facts.leader_epoch)

    def _leader_settings(
        self, partition: Partition, facts: PartitionFacts, settings: TopicSettings
    ) -> LeaderSettings:
        """The minimum is the partition's own: by any other than the controller's, an eligible replica might lack records."""
        topic = self._image.topics_by_id.get(partition.topic_id)
        return LeaderSettings(
            isr_count_min=settings.min_insync_replicas
            if topic is None
            else self._settings.minimum_in_sync(topic, facts),
            lag_ms_max=self._settings.of_broker.replica_lag_time_max_ms,
            straggler_ms=settings.replica_straggler_ms if settings.ack_policy == "quorum" else None,
        )

    def replace(self, former: Hosted, facts: PartitionFacts, settings: TopicSettings) -> Hosted:
        """The other role over the log of one that has ended."""
        return self.make(
            former.name,
            former.topic_id,
            former.log,
            facts,
            settings,
            in_memory=former.in_memory,
            high_watermark=former.high_watermark,
        )
