"""What a node is to a partition that it holds: its leader, or a follower; made from what the image says."""

from ropewalk.base.ids import NodeId, Offset, TopicId, TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.broker.home import Home
from ropewalk.broker.hosted import Hosted
from ropewalk.broker.partition import Partition
from ropewalk.broker.replica import Replica
from ropewalk.broker.topic_rules import record_rules
from ropewalk.log.log import Log
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.metadata.settings.applied import TopicSettings


class Roles:
    def __init__(self, node_id: NodeId, disk: Home, memory: Home, clock: Clock) -> None:
        self._node_id = node_id
        self._disk = disk
        self._memory = memory
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
        """With a high watermark if one is known from the role before."""
        commits = (self._memory if in_memory else self._disk).commits
        durable_first = settings.flush == "group" and not in_memory
        if facts.leader == self._node_id:
            return Partition(
                name,
                topic_id,
                log,
                leader_epoch=facts.leader_epoch,
                rules=record_rules(settings),
                durable_first=durable_first,
                in_memory=in_memory,
                commits=commits,
                clock=self._clock,
            )
        return Replica(
            name,
            topic_id,
            log,
            leader=facts.leader,
            leader_epoch=facts.leader_epoch,
            high_watermark=log.start_offset if high_watermark is None else high_watermark,
            durable_first=durable_first,
            in_memory=in_memory,
            commits=commits,
        )

    def update(self, hosted: Hosted, facts: PartitionFacts, settings: TopicSettings) -> bool:
        """Tell a role what has changed; False if it must be replaced, since the leader is another."""
        if isinstance(hosted, Partition):
            if facts.leader != self._node_id:
                return False
            hosted.set_leader_epoch(facts.leader_epoch)
            hosted.rules = record_rules(settings)
        else:
            if facts.leader == self._node_id:
                return False
            hosted.set_leader(facts.leader, facts.leader_epoch)
        hosted.set_durable_first(settings.flush == "group" and not hosted.in_memory)
        return True

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
