"""What this node asks of the controller: by a call in this process where it decides itself, else over the link.

The refusals are the same either way: errors of `base`, whichever side of a connection they were raised on.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from ropewalk.base import errors
from ropewalk.base.errors import ControllerUnavailable, NotController, RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, ProducerId, TopicId
from ropewalk.base.limits import MEMBERSHIP_CALL_MS
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.cluster.registry import Pulse, Registered, Registry
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import ConnectionLost, RemoteError, Unreachable
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.controller.brokers import Registration
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import Heartbeat
from ropewalk.controller.producer_ids import ProducerIdBlock
from ropewalk.metadata.image import Partition
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import allocate_producer_ids, alter_partition, node_heartbeat, register_node
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=ControllerAnswer)


class ToController:
    def __init__(
        self, cluster: Cluster, clock: Clock, registry: Registry, link: ControllerLink | None
    ) -> None:
        """Without a link on a node that is alone."""
        self._cluster = cluster
        self._clock = clock
        self._registry = registry
        self._link = link

    @property
    def local(self) -> Registry | None:
        """Where this node decides itself at the moment."""
        return self._registry if self._cluster.decides else None

    async def wait_lost(self) -> None:
        """Return when the connection that heartbeats go by has ended, at once where there is none."""
        if self._link is None:
            return
        try:
            deadline_ms = self._clock.monotonic_ms() + MEMBERSHIP_CALL_MS
            link = await self._link.link(Lane.HEARTBEATS, deadline_ms=deadline_ms)
        except Unreachable:
            return
        await link.wait_lost()

    def hang_up(self) -> None:
        """No heartbeat will come any more: let the controller hear so."""
        if self._link is not None:
            self._link.hang_up(Lane.HEARTBEATS)

    async def register(self, registration: Registration, *, timeout_ms: float) -> Registered:
        if (registry := self.local) is not None:
            return await registry.register(registration)
        request = register_node.RegisterNodeRequest(
            node_id=registration.node_id,
            cluster_id=registration.cluster_id,
            directory_id=registration.directory,
            endpoints=tuple(
                register_node.ListenerEndpoint(each.listener, each.host, each.port)
                for each in registration.endpoints
            ),
            rack=registration.rack,
            roles=tuple(registration.roles),
            now_ms=registration.clock_ms,
            is_clean=registration.is_clean,
            damaged=tuple(
                register_node.ReplicaOfPartition(topic_id, index)
                for topic_id, index in sorted(registration.damaged)
            ),
            unsynced=None
            if registration.unsynced is None
            else tuple(
                register_node.ReplicaOfPartition(topic_id, index)
                for topic_id, index in sorted(registration.unsynced)
            ),
            life=registration.life,
            process=registration.process,
            version=registration.software.version,
            level_min=registration.software.level_min,
            level_max=registration.software.level_max,
        )
        answer = await self._call(register_node.API, request, timeout_ms)
        return Registered(answer.broker_epoch, answer.cluster_id)

    async def heartbeat(self, heartbeat: Heartbeat, load: NodeLoad | None, *, timeout_ms: float) -> Pulse:
        if (registry := self.local) is not None:
            return await registry.heartbeat(heartbeat, load)
        request = node_heartbeat.NodeHeartbeatRequest(
            heartbeat.node_id,
            heartbeat.broker_epoch,
            heartbeat.metadata_offset,
            heartbeat.wants_to_stop,
            _load_in_words(load),
            tuple(node_heartbeat.NodeComplaint(each.check, each.problem) for each in heartbeat.complaints),
            heartbeat.position.end_offset,
            heartbeat.position.epoch,
            heartbeat.position.reign,
        )
        answer = await self._call(node_heartbeat.API, request, timeout_ms, Lane.HEARTBEATS)
        return Pulse(
            answer.is_fenced,
            answer.may_stop,
            NodeId(answer.controller_id),
            answer.metadata_end_offset,
            answer.clock_ms,
            answer.hindrance,
        )

    async def alter_partitions(
        self,
        node_id: NodeId,
        broker_epoch: int,
        alterations: Sequence[PartitionAlteration],
        *,
        timeout_ms: float,
    ) -> Sequence[AlteredPartition]:
        if (registry := self.local) is not None:
            return await registry.alter_partitions(node_id, broker_epoch, alterations)
        request = alter_partition.AlterPartitionRequest(
            node_id,
            broker_epoch,
            tuple(
                alter_partition.PartitionAlteration(
                    alteration.topic_id,
                    alteration.index,
                    alteration.leader_epoch,
                    alteration.partition_epoch,
                    tuple(alter_partition.InSync(member, epoch) for member, epoch in alteration.isr),
                    alteration.start_offset,
                )
                for alteration in alterations
            ),
        )
        answer = await self._call(alter_partition.API, request, timeout_ms)
        return [self._altered(each) for each in answer.partitions]

    async def allocate_producer_ids(
        self, node_id: NodeId, broker_epoch: int, *, timeout_ms: float
    ) -> ProducerIdBlock:
        if (registry := self.local) is not None:
            return await registry.allocate_producer_ids(node_id, broker_epoch)
        request = allocate_producer_ids.AllocateProducerIdsRequest(node_id, broker_epoch)
        answer = await self._call(allocate_producer_ids.API, request, timeout_ms)
        start = answer.first_producer_id
        return ProducerIdBlock(ProducerId(start), ProducerId(start + answer.count))

    async def _call(self, api: Api[Q, A], request: Q, timeout_ms: float, lane: Lane = Lane.CALLS) -> A:
        if self._link is None:
            self._cluster.check_decides()
            raise ControllerUnavailable("this node is alone and does not decide")
        try:
            return await self._link.call(
                api, request, deadline_ms=self._clock.monotonic_ms() + timeout_ms, lane=lane
            )
        except RemoteError as error:
            raise refusal(error) from None
        except ConnectionLost as error:
            raise errors.TimedOut(f"whether the controller did it is not known: {error}") from None

    def _altered(self, answer: alter_partition.PartitionAltered) -> AlteredPartition:
        topic_id = TopicId(answer.topic_id)
        if answer.error_code != ErrorCode.NONE:
            return AlteredPartition(topic_id, answer.index, refusal(RemoteError(answer.error_code)))
        # The image may be ahead of the answer: that a topic is gone by now says nothing about the others in it.
        known = self._cluster.image.topics_by_id.get(topic_id)
        partition = Partition(
            index=answer.index,
            replicas=() if known is None else known.partitions[answer.index].replicas,
            isr=tuple(NodeId(member) for member in answer.isr),
            leader=None if answer.leader < 0 else NodeId(answer.leader),
            leader_epoch=LeaderEpoch(answer.leader_epoch),
            partition_epoch=answer.partition_epoch,
        )
        return AlteredPartition(topic_id, answer.index, partition)


def _load_in_words(load: NodeLoad | None) -> node_heartbeat.NodeLoad | None:
    if load is None:
        return None
    partitions = tuple(
        node_heartbeat.PartitionLoad(
            each.topic_id, each.index, each.bytes_in, each.bytes_out, each.records_in
        )
        for each in load.partitions
    )
    return node_heartbeat.NodeLoad(load.cpu_permille, load.disk_used_bytes, load.disk_total_bytes, partitions)


_REFUSALS: Final[dict[ErrorCode, type[RopewalkError]]] = {
    ErrorCode.NOT_CONTROLLER: NotController,
    ErrorCode.STALE_BROKER_EPOCH: errors.StaleBrokerEpoch,
    ErrorCode.BROKER_ID_NOT_REGISTERED: errors.UnknownBroker,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: errors.DuplicateBroker,
    ErrorCode.INVALID_REGISTRATION: errors.DirectoryPutBack,
    ErrorCode.INCONSISTENT_CLUSTER_ID: errors.OtherCluster,
    ErrorCode.INELIGIBLE_REPLICA: errors.IneligibleReplica,
    ErrorCode.INVALID_UPDATE_VERSION: errors.StalePartitionEpoch,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: errors.NotLeader,
    ErrorCode.FENCED_LEADER_EPOCH: errors.FencedEpoch,
    ErrorCode.UNKNOWN_LEADER_EPOCH: errors.UnknownEpoch,
    ErrorCode.UNKNOWN_TOPIC_ID: errors.UnknownTopicId,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: errors.UnknownPartition,
    ErrorCode.OFFSET_OUT_OF_RANGE: errors.HistoryParted,
    ErrorCode.KAFKA_STORAGE_ERROR: errors.StorageFailed,
    ErrorCode.REQUEST_TIMED_OUT: errors.TimedOut,
    ErrorCode.UNSUPPORTED_VERSION: errors.VersionRefused,
    ErrorCode.INVALID_REQUEST: errors.InvalidRequest,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: errors.Throttled,
}


def refusal(error: RemoteError) -> RopewalkError:
    """What the controller raised before it was put into a code; the error itself where nothing here depends on it."""
    kind = _REFUSALS.get(error.code)
    return error if kind is None else kind(error.message)
