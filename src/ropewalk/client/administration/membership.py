"""The nodes of a cluster, and the state of its partitions, as an administrator sees them.

What a reader could get wrong
    A broker that is not ours tells only what Kafka knows: its `Node`s have neither roles nor doors, and nobody is named
    who decides.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ids import NodeId
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_cluster, describe_topic_partitions


class Node(Struct, frozen=True, gc=False):
    node_id: NodeId
    state: str
    """active, fenced or stopping."""
    address: Address | None
    """Where Kafka clients reach it, if they do."""
    rack: str | None
    roles: tuple[str, ...] = ()
    epoch: int | None = None
    doors: tuple[tuple[str, Address], ...] = ()
    version: str = ""
    """Of its software; empty where nobody knows."""
    level_min: int = 0
    level_max: int = 0
    """The levels that it works at; 0 where nobody knows."""
    in_maintenance: bool = False


class Loss(Struct, frozen=True, gc=False):
    """A replica led that may have lacked acknowledged records. The topic's name is empty if it is gone."""

    topic: str
    partition: int
    leader: NodeId
    leader_epoch: int
    at_ms: int
    reason: str


class Problem(Struct, frozen=True, gc=False):
    """What a node says is wrong with itself."""

    check: str
    problem: str


class Alert(Struct, frozen=True, gc=False):
    """What a node thinks should wake somebody."""

    name: str
    severity: str
    """critical or warning."""
    state: str
    """pending or firing."""
    summary: str
    labels: dict[str, str]
    since_ms: int
    silenced_until_ms: int | None = None


class Answerer(Struct, frozen=True, gc=False):
    """The node that gave an answer, and how good its knowledge of the cluster was."""

    node_id: NodeId
    version: str
    decides: bool
    age_ms: int
    """Since when it has not heard the controller, or as controller the home of the metadata."""
    metadata_offset: int
    controller_offset: int
    """Where the metadata ended when the controller was last heard."""
    session_timeout_ms: int
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    alerts: tuple[Alert, ...] = ()
    """Its own, and the cluster's where it decides."""


class Membership(Struct, frozen=True, gc=False):
    cluster_id: str
    controller: NodeId | None
    """The node that decides."""
    controller_epoch: int | None
    metadata_offset: int | None
    nodes: tuple[Node, ...]
    """By number."""
    losses: tuple[Loss, ...]
    answerer: Answerer | None = None
    """None where a broker that is not ours has answered."""
    level: int = 0
    """The level that the cluster works at; 0 where nobody knows."""
    finalize: str = ""
    """How it rises: auto or manual."""


class PartitionState(Struct, frozen=True, gc=False):
    index: int
    leader: NodeId | None
    leader_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    eligible: tuple[NodeId, ...]
    """Out of sync, yet they hold all that was acknowledged."""
    offline: tuple[NodeId, ...]
    observers: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    minimum_in_sync: int = 0
    """0 where the broker does not say."""


class TopicState(Struct, frozen=True, gc=False):
    name: str
    is_internal: bool
    owner: str | None
    created_at_ms: int | None
    modified_at_ms: int | None
    partitions: tuple[PartitionState, ...]
    queue: str | None = None
    """The name of the queue that it is of."""


class ClusterViewer:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def describe(self, *, at: Address | None = None, deadline_ms: float | None = None) -> Membership:
        """As any node tells it, or the one at the address."""
        until_ms = self._until(deadline_ms)
        request = describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True, include_nodes=True
        )

        async def once() -> Membership:
            connection = await self._connection(at, until_ms)
            response = await connection.call(describe_cluster.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="DescribeCluster")
            return _membership(response)

        return await self._session.attempt((), once, deadline_ms=until_ms)

    async def topics(
        self, names: Sequence[str] = (), *, at: Address | None = None, deadline_ms: float | None = None
    ) -> list[TopicState]:
        """All topics, or those named, as any node tells them, or the one at the address; raises `RemoteError` for one that is not there."""
        until_ms = self._until(deadline_ms)
        found: dict[str, TopicState] = {}
        cursor: describe_topic_partitions.Cursor | None = None

        async def once() -> describe_topic_partitions.DescribeTopicPartitionsResponse:
            connection = await self._connection(at, until_ms)
            request = describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=tuple(map(describe_topic_partitions.TopicRequest, names)),
                cursor=cursor,
                include_details=True,
            )
            return await connection.call(describe_topic_partitions.API, request, deadline_ms=until_ms)

        while True:
            page = await self._session.attempt((), once, deadline_ms=until_ms)
            for topic in page.topics:
                if topic.error_code != ErrorCode.NONE:
                    raise RemoteError(topic.error_code, about=topic.name or "")
                state = _topic_state(topic)
                former = found[state.name].partitions if state.name in found else ()
                found[state.name] = _with_partitions(state, (*former, *state.partitions))
            cursor = page.next_cursor
            if cursor is None:
                return list(found.values())

    async def _connection(self, at: Address | None, until_ms: float) -> Connection:
        cluster = self._session.cluster
        if at is None:
            return await cluster.any_connection(deadline_ms=until_ms)
        return await cluster.connection_to(at, deadline_ms=until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms


def _membership(response: describe_cluster.DescribeClusterResponse) -> Membership:
    nodes = {NodeId(broker.broker_id): _node_of_kafka(broker) for broker in response.brokers}
    for known in response.nodes:
        node_id = NodeId(known.node_id)
        nodes[node_id] = Node(
            node_id,
            known.state,
            nodes[node_id].address if node_id in nodes else None,
            known.rack,
            known.roles,
            known.epoch,
            tuple((door.name, Address(door.host, door.port)) for door in known.doors),
            known.version,
            known.level_min,
            known.level_max,
            known.in_maintenance,
        )
    # A node that stands alone decides without ever having been elected.
    controller = response.deciding_id if response.deciding_id >= 0 else response.controller_id
    return Membership(
        response.cluster_id,
        NodeId(controller) if controller >= 0 else None,
        response.deciding_epoch if response.deciding_epoch >= 0 else None,
        response.metadata_offset if response.metadata_offset >= 0 else None,
        tuple(nodes[node_id] for node_id in sorted(nodes)),
        tuple(
            Loss(
                each.topic_name,
                each.index,
                NodeId(each.leader_id),
                each.leader_epoch,
                each.at_ms,
                each.reason,
            )
            for each in response.losses
        ),
        _answerer(response),
        response.level,
        response.finalize,
    )


def _answerer(response: describe_cluster.DescribeClusterResponse) -> Answerer | None:
    if response.answering_id < 0:
        return None
    return Answerer(
        NodeId(response.answering_id),
        response.answering_version,
        response.decides,
        response.age_ms,
        response.metadata_offset,
        response.controller_offset,
        response.session_timeout_ms,
        tuple(Problem(each.check, each.problem) for each in response.problems),
        response.warnings,
        tuple(
            Alert(
                each.name,
                each.severity,
                each.state,
                each.summary,
                {label.name: label.value for label in each.labels},
                each.since_ms,
                each.silenced_until_ms if each.silenced_until_ms >= 0 else None,
            )
            for each in response.alerts
        ),
    )


def _node_of_kafka(broker: describe_cluster.DescribeClusterBroker) -> Node:
    return Node(
        NodeId(broker.broker_id),
        "fenced" if broker.is_fenced else "active",
        Address(broker.host, broker.port),
        broker.rack,
    )


def _topic_state(topic: describe_topic_partitions.DescribeTopicPartitionsResponseTopic) -> TopicState:
    return TopicState(
        topic.name or "",
        topic.is_internal,
        topic.owner,
        topic.created_at_ms or None,
        topic.modified_at_ms or None,
        tuple(
            PartitionState(
                each.index,
                NodeId(each.leader_id) if each.leader_id >= 0 else None,
                each.leader_epoch,
                _nodes(each.replica_nodes),
                _nodes(each.isr_nodes),
                _nodes(each.eligible_leader_replicas or ()),
                _nodes(each.offline_replicas),
                _nodes(each.observers),
                _nodes(each.adding_replicas),
                _nodes(each.removing_replicas),
                each.minimum_in_sync,
            )
            for each in topic.partitions
        ),
        topic.queue,
    )


def _with_partitions(topic: TopicState, partitions: tuple[PartitionState, ...]) -> TopicState:
    return replace(topic, partitions=partitions)


def _nodes(numbers: Sequence[int]) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))
