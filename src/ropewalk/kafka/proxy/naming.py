"""What clients of a front end are told about the cluster: one broker, which leads everything and looks after every group.

Behaviour worth knowing
    Leader epochs are the real ones, so that clients notice a change of leader where it matters to them.
    Clients are told the address that belongs to the listener they came by.
    A partition that nobody leads is told of as it is.
    Front ends that clients reach at one address, behind a load balancer, tell of one and the same broker: a client that connects again and comes to
    another of them would take two for two brokers, and forget the one it knows each time it hears of the other.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from ropewalk.base.ids import NodeId
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.served import Handle
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import Endpoint
from ropewalk.wire.messages import describe_cluster, describe_topic_partitions, find_coordinator, metadata
from ropewalk.wire.types import Message

_NOBODY: Final = -1


class Naming:
    def __init__(self, node_id: NodeId, endpoint: Callable[[str], Endpoint], image: Image) -> None:
        """`endpoint` is where clients that come by a listener reach this node."""
        self._node_id = node_id
        self._image = image
        self._endpoint = endpoint
        self._by_listener: dict[str, _Named] = {}

    def wrap(self, api_key: int, handle: Handle) -> Handle:
        """`handle`, with this node's name in the place of every other's."""
        renamed = self._renaming.get(api_key)
        if renamed is None:
            return handle

        async def handle_and_rename(request: Any, caller: Caller) -> Message | None:
            answer = await handle(request, caller)
            if answer is None:
                return None
            return renamed(self._named(caller.listener), answer)

        return handle_and_rename

    @property
    def _renaming(self) -> "dict[int, Callable[[_Named, Any], Message]]":
        return {
            metadata.API.key: _Named.rename_metadata,
            describe_cluster.API.key: _Named.rename_cluster,
            find_coordinator.API.key: _Named.rename_coordinator,
            describe_topic_partitions.API.key: _Named.rename_topic_partitions,
        }

    def _named(self, listener: str) -> "_Named":
        endpoint = self._endpoint(listener)
        found = min(
            [
                broker.node_id
                for broker in self._image.brokers.values()
                if "broker" not in broker.roles and endpoint in broker.endpoints
            ],
            default=self._node_id,
        )
        named = self._by_listener.get(listener)
        if named is None or named.node_id != found:
            named = self._by_listener[listener] = _Named(found, endpoint)
        return named


class _Named:
    """One broker that stands for all, as clients of one listener are told of it."""

    def __init__(self, node_id: int, endpoint: Endpoint) -> None:
        """`node_id` is the first of all whom clients reach at `endpoint`."""
        self.node_id = node_id
        self._endpoint = endpoint
        self._renamed: tuple[metadata.MetadataResponse, metadata.MetadataResponse] | None = None
        """The last answer to Metadata, and as it was told: it is mostly the same again."""

    def rename_metadata(self, answer: metadata.MetadataResponse) -> metadata.MetadataResponse:
        if self._renamed is not None and self._renamed[0] is answer:
            return self._renamed[1]
        endpoint = self._endpoint
        broker = metadata.MetadataResponseBroker(self.node_id, endpoint.host, endpoint.port, None)
        topics = tuple(
            structs.replace(topic, partitions=tuple(map(self._partition, topic.partitions)))
            for topic in answer.topics
        )
        renamed = structs.replace(answer, brokers=(broker,), controller_id=self.node_id, topics=topics)
        self._renamed = answer, renamed
        return renamed

    def rename_cluster(
        self, answer: describe_cluster.DescribeClusterResponse
    ) -> describe_cluster.DescribeClusterResponse:
        if answer.error_code:
            return answer
        endpoint = self._endpoint
        broker = describe_cluster.DescribeClusterBroker(self.node_id, endpoint.host, endpoint.port, None)
        return structs.replace(answer, brokers=(broker,), controller_id=self.node_id)

    def rename_coordinator(
        self, answer: find_coordinator.FindCoordinatorResponse
    ) -> find_coordinator.FindCoordinatorResponse:
        endpoint = self._endpoint
        if answer.coordinators:
            renamed = tuple(
                each
                if each.error_code
                else structs.replace(each, node_id=self.node_id, host=endpoint.host, port=endpoint.port)
                for each in answer.coordinators
            )
            return structs.replace(answer, coordinators=renamed)
        if answer.error_code:
            return answer
        return structs.replace(answer, node_id=self.node_id, host=endpoint.host, port=endpoint.port)

    def rename_topic_partitions(
        self, answer: describe_topic_partitions.DescribeTopicPartitionsResponse
    ) -> describe_topic_partitions.DescribeTopicPartitionsResponse:
        topics = tuple(
            structs.replace(
                topic,
                partitions=tuple(
                    structs.replace(
                        partition,
                        leader_id=self._leader(partition.leader_id),
                        replica_nodes=(self.node_id,),
                        isr_nodes=(self.node_id,),
                        eligible_leader_replicas=(),
                        last_known_elr=(),
                        offline_replicas=(),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in answer.topics
        )
        return structs.replace(answer, topics=topics)

    def _partition(self, partition: metadata.MetadataResponsePartition) -> metadata.MetadataResponsePartition:
        return structs.replace(
            partition,
            leader_id=self._leader(partition.leader_id),
            replica_nodes=(self.node_id,),
            isr_nodes=(self.node_id,),
            offline_replicas=(),
        )

    def _leader(self, leader_id: int) -> int:
        return _NOBODY if leader_id == _NOBODY else self.node_id
