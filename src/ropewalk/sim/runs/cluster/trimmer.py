"""Somebody who deletes records from the beginning of partitions, whoever leads them, and whoever sees that they stay deleted.

What a reader could get wrong
    A leader that was deposed and does not know it may show what was deleted since. So what clients are shown is no evidence while
    there are faults. What the node holds that leads, in the newest epoch there is, is evidence at any time (P10).
    A start that nobody was told of may go back with the next leader, as in Kafka; one that was answered may not.
"""

from collections.abc import Callable, Iterable
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.metadata.image import Image
from ropewalk.node.life import Node
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.judges.history import Deleted, DeletionAsked
from ropewalk.sim.runs.cluster.guide import ELSEWHERE, Guide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import delete_records

TIMEOUTS_MS: Final = (500, 2500, 6000)


class StartJudge:
    """Knows what was answered, and looks at those who lead."""

    def __init__(self) -> None:
        self.answered: dict[TopicPartition, int] = {}
        self.violations: list[Violation] = []

    def on_deleted(self, partition: TopicPartition, before_offset: int) -> None:
        self.answered[partition] = max(before_offset, self.answered.get(partition, 0))

    def look(self, nodes: Iterable[Node], image: Image) -> None:
        """`image` is the cluster as it is, whoever may know of it."""
        for node in nodes:
            for led in node.partitions.all_led():
                topic = image.topics_by_id.get(led.topic_id)
                if topic is None:
                    continue
                facts = topic.partitions[led.name.partition]
                if (facts.leader, facts.leader_epoch) != (node.node_id, led.leader_epoch):
                    continue
                answered = self.answered.get(led.name, 0)
                if led.log.start_offset < answered and len(self.violations) < 20:
                    text = f"{led.name}: node {node.node_id} leads from {led.log.start_offset} on, {answered} was answered"
                    self.violations.append(Violation("P10", text))


class Trimmer:
    """`may_trim` tells by a topic's name whether records may be deleted from it."""

    def __init__(
        self, guide: Guide, judge: StartJudge, image: Image, may_trim: Callable[[str], bool]
    ) -> None:
        self._guide = guide
        self._judge = judge
        self._image = image
        self._may_trim = may_trim

    async def run(self) -> None:
        guide = self._guide
        while not guide.workload.is_over:
            await guide.pause(1.5)
            partition = guide.rng.choice(self.partitions())
            before_offset = guide.rng.randrange(guide.workload.end_seen.get(partition, 0) + 1)
            try:
                await self.trim(partition, before_offset)
            except LinkLost:
                guide.doubt()
        guide.close()

    def partitions(self) -> list[TopicPartition]:
        return [each for each in self._guide.workload.topics.partitions if self._may_trim(each.topic)]

    async def trim(self, partition: TopicPartition, before_offset: int) -> bool:
        """Whether it was answered that they are gone. Raises `LinkLost` where nobody answers."""
        guide, workload = self._guide, self._guide.workload
        link = await guide.connect_to_leader(partition)
        workload.journal.note(DeletionAsked(partition, before_offset))
        workload.operation_count += 1
        asked = delete_records.DeleteRecordsPartition(partition.partition, before_offset)
        topic = delete_records.DeleteRecordsTopic(partition.topic, (asked,))
        response = await link.send(
            delete_records.API,
            link.newest_version(delete_records.API),
            delete_records.DeleteRecordsRequest((topic,), guide.rng.choice(TIMEOUTS_MS)),
        )
        (answer,) = response.topics[0].partitions
        if answer.error_code == ErrorCode.NONE:
            self._on_deleted(partition, before_offset)
            return True
        if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
            workload.sometimes.note("a deletion was not followed by all in time")
        elif answer.error_code in ELSEWHERE:
            guide.doubt()
        return False

    def _on_deleted(self, partition: TopicPartition, before_offset: int) -> None:
        workload = self._guide.workload
        self._judge.on_deleted(partition, before_offset)
        workload.journal.note(Deleted(partition, before_offset))
        workload.sometimes.note("records were deleted")
        facts = self._image.topics[partition.topic].partitions[partition.partition]
        if before_offset and {*facts.replicas} - {*facts.isr}:
            workload.sometimes.note("records were deleted while a replica was away")
