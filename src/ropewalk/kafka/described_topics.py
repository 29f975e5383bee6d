"""The cluster as Metadata tells of it, described in turns, and again only where it has changed.

What a reader could get wrong
    An answer about all topics is of one image: what it names is noted before the first turn. Topics are replaced, never changed, so
    whatever is applied meanwhile does not get in.
    The same object is answered for as long as it is true. Whoever encodes it may keep the bytes beside it.
"""

from msgspec import Struct, structs

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.limits import REQUEST_PARTITIONS_PER_TURN
from ropewalk.kafka.brokers import (
    controller_for_clients,
    offline_replicas,
    reachable_brokers,
    serving_nodes,
)
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS
from ropewalk.runtime.steps import Pace
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class _Known(Struct, frozen=True):
    topic: Topic
    serving: frozenset[NodeId]
    described: MetadataResponseTopic


class DescribedTopics:
    def __init__(self, image: Image) -> None:
        self._image = image
        self._known: dict[tuple[TopicId, int], _Known] = {}
        self._all: dict[tuple[int, int, str], tuple[int, MetadataResponse]] = {}
        """By the operations that are told and the listener that was asked: the answer about all topics, and of which end of the image it is."""

    def cluster(self, operations: int, listener: str) -> MetadataResponse:
        """The answer without any topic; `operations` are those on the cluster, and brokers are told as clients of `listener` reach them."""
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(broker.node_id, endpoint.host, endpoint.port, broker.rack)
                for broker, endpoint in reachable_brokers(self._image, listener)
            ),
            cluster_id=self._image.cluster_id,
            controller_id=controller_for_clients(self._image, listener),
            cluster_authorized_operations=operations,
        )

    async def all(self, operations: int, cluster_operations: int, listener: str) -> MetadataResponse:
        key = operations, cluster_operations, listener
        end_offset, answer = self._all.get(key, (-1, None))
        if answer is not None and end_offset == self._image.end_offset:
            return answer
        end_offset = self._image.end_offset
        answer = self.cluster(cluster_operations, listener)
        topics, serving = list(self._image.topics.values()), serving_nodes(self._image)
        pace = Pace(REQUEST_PARTITIONS_PER_TURN)
        described = tuple([await self._describe(topic, operations, serving, pace) for topic in topics])
        answer = structs.replace(answer, topics=described)
        if end_offset >= self._all.get(key, (-1, answer))[0]:
            self._all[key] = end_offset, answer
        return answer

    async def one(self, topic: Topic, operations: int) -> MetadataResponseTopic:
        return await self._describe(
            topic, operations, serving_nodes(self._image), Pace(REQUEST_PARTITIONS_PER_TURN)
        )

    async def _describe(
        self, topic: Topic, operations: int, serving: frozenset[NodeId], pace: Pace
    ) -> MetadataResponseTopic:
        key = topic.topic_id, operations
        known = self._known.get(key)
        if known is not None and known.topic is topic and known.serving == serving:
            return known.described
        partitions: list[MetadataResponsePartition] = []
        for start in range(0, len(topic.partitions), REQUEST_PARTITIONS_PER_TURN):
            part = topic.partitions[start : start + REQUEST_PARTITIONS_PER_TURN]
            await pace.next(len(part))
            partitions += [_described(partition, serving) for partition in part]
        described = MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=tuple(partitions),
            topic_authorized_operations=operations,
        )
        if len(self._known) > 2 * len(self._image.topics):  # most of them have been deleted
            self._known = {
                key: known for key, known in self._known.items() if key[0] in self._image.topics_by_id
            }
        self._known[key] = _Known(topic, serving, described)
        return described


def _described(partition: Partition, serving: frozenset[NodeId]) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if partition.leader is not None else ErrorCode.LEADER_NOT_AVAILABLE,
        index=partition.index,
        leader_id=-1 if partition.leader is None else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline_replicas(partition.replicas, serving),
    )
